import { test } from 'tap'
import { serviceNetwork } from './service-network.ts'

test('a range gives its addresses by their place, in both families', async (t) => {
  const [v4, v6, ...more] = serviceNetwork('192.0.2.0/24', { serviceCIDR: '2001:db8::/112' }).ranges
  t.match(
    [v4, v6],
    [
      { family: 'IPv4', text: '192.0.2.0/24', usable: 254 },
      { family: 'IPv6', text: '2001:db8::/112', usable: 65_535 },
    ],
  )
  t.same(more, [])
  t.same(
    [0, 1, 254, 255].map((place) => v4?.at(place)),
    ['192.0.2.0', '192.0.2.1', '192.0.2.254', '192.0.2.255'],
  )
  t.same(
    [0, 1, 65_535].map((place) => v6?.at(place)),
    ['2001:db8::', '2001:db8::1', '2001:db8::ffff'],
  )
  for (const [ip, place] of [
    ['192.0.2.0', 0],
    ['192.0.2.7', 7],
    ['192.0.2.255', 255],
    ['192.0.1.255', undefined],
    ['192.0.3.0', undefined],
    ['2001:db8::7', undefined],
    ['here', undefined],
  ] as const) {
    t.equal(v4?.placeOf(ip), place, ip)
  }
  for (const [ip, place] of [
    ['2001:db8::', 0],
    ['2001:DB8:0::7', 7],
    ['2001:db8::ffff', 65_535],
    ['2001:db8::1:0', undefined],
    ['2001:db7:ffff:ffff:ffff:ffff:ffff:ffff', undefined],
    ['192.0.2.7', undefined],
  ] as const) {
    t.equal(v6?.placeOf(ip), place, ip)
  }
})

test('a fleet without IPv6 has one range, and the default is that of kubeadm', async (t) => {
  t.match(serviceNetwork().ranges, [{ family: 'IPv4', text: '10.96.0.0/12', usable: 2 ** 20 - 2 }])
  t.equal(serviceNetwork().ranges.length, 1)
})

test('an invalid range is an error', async (t) => {
  for (const text of ['192.0.2.0', '192.0.2.77/28', '2001:db8::/112'])
    t.throws(() => serviceNetwork(text), new TypeError(`${text} is not a CIDR`))
  t.throws(
    () => serviceNetwork('192.0.2.0/24', { serviceCIDR: '192.0.2.0/24' }),
    new TypeError('192.0.2.0/24 is not an IPv6 CIDR'),
  )
})
