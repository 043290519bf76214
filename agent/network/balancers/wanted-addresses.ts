/** Which addresses of load balancers this node answers for. */
import type { NetworkMessage } from '../../../api/network/pod-network.ts'
import type { ServiceState } from '../../../api/network/service-endpoints.ts'
import { isWithin } from '../../../api/text/cidr.ts'
import { ipv4Rules } from '../rule-family.ts'
import { addressesOf } from '../services/rule-text.ts'

/** A pool of the controller has no more. */
const mostAddresses = 4_096
/** Of the machine itself, and of links without DHCP. */
const local = ['127.0.0.0/8', '169.254.0.0/16']

/**
 * In the order of the Services' names. Addresses of pods, Services and nodes are left out: the controller chooses none of them, and a node that
 * took one would cut it off.
 */
export function wantedAddresses(
  services: ReadonlyMap<string, ServiceState>,
  { clusterCIDR, serviceCIDR, nodes }: NetworkMessage,
  nodeName: string,
): readonly string[] {
  const refused = [clusterCIDR, serviceCIDR, ...local]
  const ofNodes = new Set(nodes.map(({ address }) => address))
  const mayTake = (ip: string) => !ofNodes.has(ip) && !refused.some((range) => isWithin(ip, range))
  const own = [...services].filter(([, { loadBalancerNode }]) => loadBalancerNode === nodeName)
  const ips = own
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .flatMap(([, { type, loadBalancerIPs }]) =>
      type === 'LoadBalancer' ? addressesOf(ipv4Rules, loadBalancerIPs).filter(mayTake) : [],
    )
  return [...new Set(ips)].slice(0, mostAddresses)
}
