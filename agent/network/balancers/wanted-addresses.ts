/** Which addresses of load balancers this node answers for. */
import type { NetworkMessage } from '../../../api/network/pod-network.ts'
import type { ServiceState } from '../../../api/network/service-endpoints.ts'
import { isWithin } from '../../../api/text/cidr.ts'
import { isInIPv6Range, isRoutableIPv6, parseIPv6 } from '../../../api/text/ipv6-range.ts'
import { ipv4Rules, ipv6Rules } from '../rule-family.ts'
import { addressesOf } from '../services/rule-text.ts'

/** The controller's limit of addresses of one family in a pool. */
const mostAddresses = 4_096
/** Ranges of the machine itself and of links without DHCP. */
const local = ['127.0.0.0/8', '169.254.0.0/16']

/**
 * In the order of the Services' names, those of IPv4 first. Services that share an address name one node; while their messages differ, that of
 * the first Service counts. Addresses of pods, Services and nodes are omitted: the controller chooses none of them, and a node that took one
 * would cut it off. No IPv6 addresses where the fleet has no IPv6 ranges.
 */
export function wantedAddresses(
  services: ReadonlyMap<string, ServiceState>,
  network: NetworkMessage,
  nodeName: string,
): readonly string[] {
  const own = ownServices(services, nodeName)
  const ofIPv4 = own.flatMap(([, { loadBalancerIPs }]) => addressesOf(ipv4Rules, loadBalancerIPs))
  const ofIPv6 = own.flatMap(([, { ipv6 }]) => addressesOf(ipv6Rules, ipv6?.loadBalancerIPs))
  const mayHave = [...firstOf(ofIPv4.filter(mayTake(network))), ...firstOf(ofIPv6.filter(mayTakeIPv6(network)))]
  const elsewhere = ofOtherNodes(services, own, nodeName)
  return elsewhere.size === 0 ? mayHave : mayHave.filter((ip) => !elsewhere.has(ip))
}

/** Addresses of `own` that a Service before theirs has on another node. */
function ofOtherNodes(
  services: ReadonlyMap<string, ServiceState>,
  own: readonly (readonly [string, ServiceState])[],
  nodeName: string,
): ReadonlySet<string> {
  const first = new Map<string, string>()
  for (const [name, service] of own) for (const ip of balancerIPs(service)) if (!first.has(ip)) first.set(ip, name)
  const others = [...services].filter(
    ([, { type, loadBalancerNode = nodeName }]) => type === 'LoadBalancer' && loadBalancerNode !== nodeName,
  )
  return new Set(others.flatMap(([name, service]) => balancerIPs(service).filter((ip) => name < (first.get(ip) ?? ''))))
}

function balancerIPs({ loadBalancerIPs = [], ipv6 }: ServiceState): readonly string[] {
  return [...loadBalancerIPs, ...(ipv6?.loadBalancerIPs ?? [])]
}

/** The IPv4 address of the same Service, by its IPv6 address. One node answers for both. */
export function addressPartners(
  services: ReadonlyMap<string, ServiceState>,
  nodeName: string,
): ReadonlyMap<string, string> {
  return new Map(
    ownServices(services, nodeName).flatMap(([, { loadBalancerIPs = [], ipv6 }]) => {
      const [partner] = loadBalancerIPs
      return partner === undefined ? [] : (ipv6?.loadBalancerIPs ?? []).map((ip): [string, string] => [ip, partner])
    }),
  )
}

function ownServices(
  services: ReadonlyMap<string, ServiceState>,
  nodeName: string,
): readonly (readonly [string, ServiceState])[] {
  return [...services]
    .filter(([, { type, loadBalancerNode }]) => type === 'LoadBalancer' && loadBalancerNode === nodeName)
    .sort(([one], [other]) => (one < other ? -1 : 1))
}

function firstOf(ips: readonly string[]): readonly string[] {
  return [...new Set(ips)].slice(0, mostAddresses)
}

function mayTake({ clusterCIDR, serviceCIDR, nodes }: NetworkMessage): (ip: string) => boolean {
  const refused = [clusterCIDR, serviceCIDR, ...local]
  const ofNodes = new Set(nodes.map(({ address }) => address))
  return (ip) => !ofNodes.has(ip) && !refused.some((range) => isWithin(ip, range))
}

function mayTakeIPv6({ ipv6, nodes }: NetworkMessage): (ip: string) => boolean {
  if (ipv6 === undefined) return () => false
  const ofNodes = new Set(nodes.map((node) => node.ipv6?.address))
  return (ip) => {
    const address = parseIPv6(ip)
    if (address === undefined || !isRoutableIPv6(address) || ofNodes.has(ip)) return false
    return !isInIPv6Range(ip, ipv6.clusterCIDR) && !isInIPv6Range(ip, ipv6.serviceCIDR)
  }
}
