import { test } from 'tap'
import { addressHolders, type Sharer } from './address-holders.ts'

const ip = '192.0.2.240'
const other = '192.0.2.241'
const dns = { key: 'shop/dns', backend: '' }
const sharer = (key: string, ports: readonly string[], sharing?: Sharer['sharing']): Sharer => ({
  ...{ key, ports, ...(sharing && { sharing }) },
})
const tcp = sharer('shop/tcp', ['TCP/53', 'TCP/80'], dns)

test('an address that nothing has can be given', async (t) => {
  const holders = addressHolders([], [])
  t.same([holders.has(ip), holders.refusal(ip, tcp)], [false, undefined])
  holders.give(ip, tcp)
  t.same([holders.has(ip), holders.refusal(ip, tcp)], [true, undefined], 'it is its own')
})

test('an address of a Service is shared by those that it allows, as MetalLB does', async (t) => {
  const elsewhere = `Address ${ip} is in use by Service shop/tcp: request another one, or none`
  const together =
    `${elsewhere}, put the ports of both into one Service, ` +
    'or give both the annotation metallb.io/allow-shared-ip with the same value'
  const backends =
    `Address ${ip} is in use by Service shop/tcp: to share it, ` +
    'give both Services externalTrafficPolicy Cluster, or both Local and the same selector'
  const cases: readonly (readonly [title: string, Sharer, refusal: string | undefined])[] = [
    ['other ports', sharer('shop/udp', ['UDP/53', 'UDP/80'], dns), undefined],
    ['no ports', sharer('shop/udp', [], dns), undefined],
    [
      'a port of it',
      sharer('shop/udp', ['UDP/53', 'TCP/80'], dns),
      `Port TCP/80 of address ${ip} is in use by Service shop/tcp: change the port, or request another address`,
    ],
    ['no sharing key', sharer('shop/udp', ['UDP/53']), together],
    ['another sharing key', sharer('shop/udp', ['UDP/53'], { ...dns, key: 'shop/mail' }), together],
    ['another namespace', sharer('bar/udp', ['UDP/53'], { ...dns, key: 'bar/dns' }), elsewhere],
    ['a namespace that begins alike', sharer('shop-2/udp', ['UDP/53']), elsewhere],
    ['other endpoints', sharer('shop/udp', ['UDP/53'], { ...dns, backend: '[["app","dns"]]' }), backends],
  ]
  const holders = addressHolders([], [])
  holders.give(ip, tcp)
  for (const [title, service, refusal] of cases) t.equal(holders.refusal(ip, service), refusal, title)
  holders.give(ip, sharer('shop/udp', ['UDP/53'], dns))
  t.match(holders.refusal(ip, sharer('shop/third', ['UDP/53'], dns)), /^Port UDP\/53 .* Service shop\/udp/)
})

test('a Service without a sharing key shares with none, also where that is asked by the other', async (t) => {
  const holders = addressHolders([], [])
  holders.give(ip, sharer('shop/web', ['TCP/80']))
  t.match(holders.refusal(ip, tcp), /^Address 192\.0\.2\.240 is in use by Service shop\/web/)
  t.match(holders.refusal(ip, sharer('shop/web-2', ['TCP/81'])), /in use by Service shop\/web/)
})

test('addresses of nodes and of other load balancers are refused, whatever is shared', async (t) => {
  const foreign = { ...sharer('metal/web', ['TCP/80']), ips: [other] }
  const holders = addressHolders([[ip, 'node pi-1']], [foreign])
  t.equal(holders.refusal(ip, tcp), `Address ${ip} is in use by node pi-1: request another one, or none`)
  t.equal(
    holders.refusal(other, tcp),
    `Address ${other} is in use by a Service of another load balancer: request another one, or none`,
  )
})

test('an address that is withdrawn from a Service stays shared, and is given to no further one', async (t) => {
  const leaving = { ...tcp, ips: [ip] }
  const holders = addressHolders([], [leaving])
  const udp = sharer('shop/udp', ['UDP/53'], dns)
  t.equal(holders.refusal(ip, udp), undefined, 'one that has it keeps it')
  t.match(holders.refusal(ip, sharer('shop/web', ['TCP/80'], dns)), /^Port TCP\/80 /)
  t.equal(holders.shared('IPv4', udp), undefined)
})

test('a Service gets an address of those with which it shares, of the family, where its ports are free', async (t) => {
  const holders = addressHolders([], [])
  for (const address of [ip, other, '2001:db8::1']) holders.give(address, tcp)
  holders.give(ip, sharer('shop/udp', ['UDP/53'], dns))
  t.equal(holders.shared('IPv4', sharer('shop/udp-2', ['UDP/443'], dns)), ip)
  t.equal(holders.shared('IPv4', sharer('shop/udp-2', ['UDP/53'], dns)), other)
  t.equal(holders.shared('IPv6', sharer('shop/udp-2', ['UDP/53'], dns)), '2001:db8::1')
  t.equal(holders.shared('IPv4', sharer('shop/web', ['TCP/80'], dns)), undefined)
  t.equal(holders.shared('IPv4', sharer('shop/udp-2', ['UDP/53'])), undefined, 'it shares with none')
  t.equal(holders.shared('IPv4', sharer('shop/udp-2', ['UDP/53'], { ...dns, backend: '[]' })), undefined)
})

test('sixteen shared addresses are tried, however many there are', async (t) => {
  const holders = addressHolders([], [])
  const full = Array.from({ length: 16 }, (_, index) => `192.0.2.${index + 1}`)
  for (const [index, address] of full.entries()) holders.give(address, sharer(`shop/web-${index}`, ['TCP/80'], dns))
  holders.give(ip, sharer('shop/free', ['TCP/81'], dns))
  t.equal(holders.shared('IPv4', sharer('shop/web', ['TCP/80'], dns)), undefined)
})
