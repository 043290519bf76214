import { test } from 'tap'
import { aService } from '../testing/services.ts'
import { isOnLink, linksToUse, namesToPublish, withoutZone } from './mdns-names.ts'

const eth0 = { device: 'eth0', address: '192.168.1.5', range: '192.168.1.0/24', ipv6: undefined }
const wlan0 = { device: 'wlan0', address: '192.168.2.5', range: '192.168.2.0/24', ipv6: undefined }
const both = { ...eth0, ipv6: { addresses: ['2001:db8::5', 'fd00:7::5'], ranges: ['2001:db8::/64', 'fd00:7::/64'] } }
const settings = { interfaces: undefined, services: false }
const balanced = { type: 'LoadBalancer', loadBalancerNode: 'pi-1' } as const
const services = new Map(
  [
    aService({ ...balanced, loadBalancerIPs: ['192.168.1.240'] }),
    aService({ ...balanced, name: 'api', loadBalancerIPs: ['192.168.1.241'] }),
    aService({ ...balanced, name: 'far', loadBalancerIPs: ['192.168.1.242'], loadBalancerNode: 'pi-2' }),
    aService({ ...balanced, name: 'late', loadBalancerIPs: ['192.168.1.243'] }),
    aService({ name: 'inner' }),
  ].map((one) => [`${one.namespace}/${one.name}`, one]),
)
const balancers = new Set(['192.168.1.240', '192.168.1.241', '192.168.1.242'])
const facts = { nodeName: 'pi-1', services, balancers }

test('the link with the address of the node is used, or those that are named', async (t) => {
  t.same(linksToUse([eth0, wlan0], settings, '192.168.2.5'), [wlan0])
  t.same(linksToUse([eth0, wlan0], settings, undefined), [])
  t.same(linksToUse([eth0, wlan0], { ...settings, interfaces: ['eth0', 'eth1'] }, '192.168.2.5'), [eth0])
})

test('a node has its name with its address on the link', async (t) => {
  t.same(namesToPublish(facts, wlan0, settings), [{ name: 'pi-1.local', addresses: ['192.168.2.5'] }])
  t.same(namesToPublish(facts, both, settings), [
    { name: 'pi-1.local', addresses: ['192.168.1.5', '2001:db8::5', 'fd00:7::5'] },
  ])
  const addresses = Array.from({ length: 10 }, (_, index) => `fd00:7::${index + 1}`)
  const many = { ...both, ipv6: { ...both.ipv6, addresses } }
  t.equal(namesToPublish(facts, many, settings)[0]?.addresses.length, 5, 'of IPv6 four')
})

test('a node whose name has a dot has no name in the house', async (t) => {
  t.same(namesToPublish({ ...facts, nodeName: 'pi.1' }, eth0, settings), [])
})

test('load balancers are published by the node that has their address, on the link of that address', async (t) => {
  t.same(namesToPublish(facts, eth0, { ...settings, services: true }), [
    { name: 'pi-1.local', addresses: ['192.168.1.5'] },
    { name: 'api.shop.local', addresses: ['192.168.1.241'] },
    { name: 'web.shop.local', addresses: ['192.168.1.240'] },
  ])
  t.same(namesToPublish(facts, wlan0, { ...settings, services: true }), [
    { name: 'pi-1.local', addresses: ['192.168.2.5'] },
  ])
})

test('a load balancer has an address of each family that the link has', async (t) => {
  const published = (link: typeof eth0 | typeof both, ...loadBalancerIPs: readonly string[]) => {
    const services = new Map([['shop/web', aService({ ...balanced, loadBalancerIPs })]])
    const given = { ...facts, services, balancers: new Set(['192.168.1.240', 'fd00:7::240', 'fd00:9::240']) }
    return namesToPublish(given, link, { ...settings, services: true })[1]?.addresses
  }
  t.same(published(both, 'fd00:7::240', '192.168.1.240'), ['192.168.1.240', 'fd00:7::240'])
  t.same(published(both, 'fd00:7::240'), ['fd00:7::240'], 'of IPv6 alone')
  t.same(published(both, 'fd00:9::240'), undefined, 'an address of another link')
  t.same(published(both, 'fd00:7::241'), undefined, 'one that another node has')
  t.same(published(eth0, 'fd00:7::240', '192.168.1.240'), ['192.168.1.240'], 'a link without IPv6')
})

test('messages of an address of the link, or of its ranges, are of the link', async (t) => {
  for (const from of ['192.168.1.9', 'fe80::1%eth0', 'fe80::1', 'febf::1', 'fd00:7::9', '2001:db8::9'])
    t.ok(isOnLink(from, both), from)
  for (const from of ['192.168.2.9', 'fd00:8::9', '::ffff:192.168.1.9', '::1', 'fec0::1', '', 'x'])
    t.notOk(isOnLink(from, both), from)
  t.equal(withoutZone('fe80::1%eth0'), 'fe80::1')
})

test('no more than 64 names are published', async (t) => {
  const many = new Map(
    Array.from({ length: 100 }, (_, index) => {
      const one = aService({ ...balanced, name: `s-${index}`, loadBalancerIPs: ['192.168.1.240'] })
      return [one.name, one] as const
    }),
  )
  t.equal(namesToPublish({ ...facts, services: many }, eth0, { ...settings, services: true }).length, 64)
})
