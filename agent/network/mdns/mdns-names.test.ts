import { test } from 'tap'
import { aService } from '../testing/services.ts'
import { linksToUse, namesToPublish } from './mdns-names.ts'

const eth0 = { device: 'eth0', address: '192.168.1.5', range: '192.168.1.0/24' }
const wlan0 = { device: 'wlan0', address: '192.168.2.5', range: '192.168.2.0/24' }
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
  t.same(namesToPublish(facts, wlan0, settings), [{ name: 'pi-1.local', address: '192.168.2.5' }])
})

test('a node whose name has a dot has no name in the house', async (t) => {
  t.same(namesToPublish({ ...facts, nodeName: 'pi.1' }, eth0, settings), [])
})

test('load balancers are published by the node that has their address, on the link of that address', async (t) => {
  t.same(namesToPublish(facts, eth0, { ...settings, services: true }), [
    { name: 'pi-1.local', address: '192.168.1.5' },
    { name: 'api.shop.local', address: '192.168.1.241' },
    { name: 'web.shop.local', address: '192.168.1.240' },
  ])
  t.same(namesToPublish(facts, wlan0, { ...settings, services: true }), [
    { name: 'pi-1.local', address: '192.168.2.5' },
  ])
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
