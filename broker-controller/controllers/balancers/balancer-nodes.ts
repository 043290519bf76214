/** Which nodes may receive the packets of load balancers. */
import { segmentOf, usualSegment } from '../../../api/network/segment.ts'
import { ipv6PodRangeOf } from '../../../api/node/pod-range.ts'
import type { Node } from '../../../api/node.ts'
import { ipVersion } from '../../../api/text/ip-address.ts'
import { formatIPv6, formatIPv6Range, isRoutableIPv6, parseIPv6 } from '../../../api/text/ipv6-range.ts'

export type BalancerNode = {
  readonly name: string
  /** The InternalIP, of IPv4. */
  readonly address: string
  /** The IPv6 InternalIP that routers forward, in canonical form; undefined: it forwards nothing in IPv6. */
  readonly ipv6?: string
  /** Nodes of one segment are on one link. */
  readonly segment: string
  /** It runs, and its rules and routes are in place. */
  readonly isReady: boolean
  /** An operator has taken it out of load balancers. */
  readonly isExcluded: boolean
}

/** core/v1 LabelNodeExcludeBalancers: whatever its value. */
const excludeLabel = 'node.kubernetes.io/exclude-from-external-load-balancers'

/** With one of them packets to Services go nowhere on the node. */
const offNetwork = ['NetworkUnavailable', 'FleetNetworkUnavailable']

/** undefined: the node has no address. `withIPv6`: pods of the fleet have addresses of both families. */
export function balancerNode({ metadata, spec, status }: Node, withIPv6: boolean): BalancerNode | undefined {
  const internal = (status?.addresses ?? []).flatMap((one) => (one.type === 'InternalIP' ? [one.address] : []))
  const address = internal.find((one) => ipVersion(one) === 4)
  // Without a range for its pods a node has no IPv6 rules.
  const isInIPv6 = withIPv6 && ipv6PodRangeOf({ spec }) !== undefined
  const ipv6 = (isInIPv6 ? internal : []).map(parseIPv6).find((one) => one !== undefined && isRoutableIPv6(one))
  if (metadata.name === undefined || address === undefined) return undefined
  const statusOf = (type: string) => status?.conditions?.find((one) => one.type === type)?.status
  return {
    name: metadata.name,
    address,
    ...(ipv6 !== undefined && { ipv6: formatIPv6(ipv6) }),
    segment: segmentOf(metadata.annotations, address),
    isReady: statusOf('Ready') === 'True' && offNetwork.every((type) => statusOf(type) !== 'True'),
    isExcluded: metadata.labels?.[excludeLabel] !== undefined,
  }
}

/** Addresses with the same text are taken to be on one link: the /24 of IPv4, the /64 of IPv6. */
export function usualLink(ip: string): string {
  const ipv6 = parseIPv6(ip)
  return ipv6 === undefined ? usualSegment(ip) : formatIPv6Range({ first: (ipv6 >> 64n) << 64n, bits: 64 })
}

/** Nodes on the link that has this address: those beside a node with one of the same `usualLink`. Where no node is, any node may have it. */
export function nodesOnLink(nodes: readonly BalancerNode[], ip: string): readonly BalancerNode[] {
  const link = usualLink(ip)
  const isBeside = ({ address, ipv6 = '' }: BalancerNode) => usualLink(ip.includes(':') ? ipv6 : address) === link
  const segments = new Set(nodes.filter(isBeside).map((one) => one.segment))
  return segments.size === 0 ? nodes : nodes.filter(({ segment }) => segments.has(segment))
}
