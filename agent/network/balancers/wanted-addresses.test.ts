import { test } from 'tap'
import type { NetworkMessage } from '../../../api/network/pod-network.ts'
import type { ServiceState } from '../../../api/network/service-endpoints.ts'
import { aService } from '../testing/services.ts'
import { wantedAddresses } from './wanted-addresses.ts'

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

test('addresses of nodes, pods, Services and of the machine itself are never taken', async (t) => {
  for (const ip of ['192.168.1.1', '10.244.1.9', '10.96.0.1', '127.0.0.1', '169.254.20.10', 'fd00::1']) {
    t.same(wanted(balancer(ip)), [], ip)
  }
})
