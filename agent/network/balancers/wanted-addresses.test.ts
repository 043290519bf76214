import { test } from 'tap'
import type { NetworkMessage } from '../../../api/network/pod-network.ts'
import type { ServiceState } from '../../../api/network/service-endpoints.ts'
import { aService } from '../testing/services.ts'
import { addressPartners, wantedAddresses } from './wanted-addresses.ts'

const network: NetworkMessage = {
  epoch: 'e',
  version: 1,
  clusterCIDR: '10.244.0.0/16',
  serviceCIDR: '10.96.0.0/12',
  clusterDomain: 'cluster.local',
  nodes: [{ name: 'pi-1', podCIDR: '10.244.1.0/24', address: '192.168.1.1', segment: 'lan' }],
}
const balancer = (ip: string, given: Partial<ServiceState> = {}) =>
  aService({ type: 'LoadBalancer', loadBalancerIPs: [ip], loadBalancerNode: 'pi-1', name: `web-${ip}`, ...given })
const wanted = (...services: readonly ServiceState[]) =>
  wantedAddresses(new Map(services.map((one) => [`${one.namespace}/${one.name}`, one])), network, 'pi-1')

test('a node answers for the addresses that name it, and for no others', async (t) => {
  t.same(
    wanted(
      balancer('192.168.1.240'),
      balancer('192.168.1.241', { loadBalancerNode: 'pi-2' }),
      balancer('192.168.1.242', { type: 'NodePort' }),
      balancer('192.168.1.240', { name: 'again' }),
    ),
    ['192.168.1.240'],
  )
})

test('of two nodes that Services name for one address the node of the first Service answers for it', async (t) => {
  const tcp = balancer('192.168.1.240', { name: 'dns-tcp', loadBalancerNode: 'pi-2' })
  const udp = balancer('192.168.1.240', { name: 'dns-udp' })
  t.same(wanted(tcp, udp), [])
  t.same(wanted(udp, { ...tcp, name: 'dns-zone' }), ['192.168.1.240'])
  t.same(wanted(udp, { ...tcp, type: 'NodePort' }), ['192.168.1.240'])
})

test('addresses of nodes, pods, Services and of the machine itself are never taken', async (t) => {
  for (const ip of ['192.168.1.1', '10.244.1.9', '10.96.0.1', '127.0.0.1', '169.254.20.10', 'fd00::1']) {
    t.same(wanted(balancer(ip)), [], ip)
  }
})

const ranges = { clusterCIDR: 'fd00:10:244::/56', serviceCIDR: 'fd00:10:96::/112' }
const [node] = network.nodes
const dual: NetworkMessage = {
  ...network,
  ipv6: ranges,
  nodes: node === undefined ? [] : [{ ...node, ipv6: { podCIDR: 'fd00:10:244:1::/64', address: 'fd00:9::1' } }],
}
const ofIPv6 = (...loadBalancerIPs: readonly string[]) => ({
  ipv6: { clusterIPs: ['fd00:10:96::7'], loadBalancerIPs, endpoints: [] },
})
const byName = (...services: readonly ServiceState[]) =>
  new Map(services.map((one) => [`${one.namespace}/${one.name}`, one]))

test('a node answers for the addresses of both families, those of IPv4 first', async (t) => {
  const alone = aService({ type: 'LoadBalancer', loadBalancerNode: 'pi-1', name: 'a', ...ofIPv6('2001:db8::7') })
  const both = balancer('192.168.1.240', ofIPv6('fd00:9::240'))
  const far = balancer('192.168.1.241', { loadBalancerNode: 'pi-2', ...ofIPv6('fd00:9::241') })
  const services = byName(alone, both, far)
  t.same(wantedAddresses(services, dual, 'pi-1'), ['192.168.1.240', '2001:db8::7', 'fd00:9::240'])
  t.same(wantedAddresses(services, network, 'pi-1'), ['192.168.1.240'], 'not where the fleet has no IPv6')
  t.same([...addressPartners(services, 'pi-1')], [['fd00:9::240', '192.168.1.240']])
})

test('IPv6 addresses of nodes, pods, Services, and those that no single machine has, are never taken', async (t) => {
  for (const ip of ['fd00:9::1', 'fd00:10:244:1::5', 'fd00:10:96::7', '::1', 'fe80::1', 'ff02::1', '192.168.1.9']) {
    t.same(wantedAddresses(byName(balancer('192.168.1.240', ofIPv6(ip))), dual, 'pi-1'), ['192.168.1.240'], ip)
  }
})
