/** Decides what other nodes are sent of a Node: how they reach its pods. */

import type { NetworkPeer } from '../../../api/network/pod-network.ts'
import type { Node } from '../../../api/node.ts'
import { parseCidr } from '../../../api/text/cidr.ts'
import { ipVersion } from '../../../api/text/ip-address.ts'

/** Names the link that a node is on; nodes of one segment reach each other without a router. */
export const segmentAnnotation = 'bramble.dev/segment'
const zoneLabel = 'topology.kubernetes.io/zone'
const longestSegment = 253

/** undefined: the node has no IPv4 range for pods yet, or no IPv4 address. */
export function networkPeer({ metadata, spec, status }: Node): NetworkPeer | undefined {
  const podCIDR = [spec?.podCIDR ?? '', ...(spec?.podCIDRs ?? [])].find((range) => parseCidr(range) !== undefined)
  const address = status?.addresses?.find((one) => one.type === 'InternalIP' && ipVersion(one.address) === 4)?.address
  if (podCIDR === undefined || address === undefined || metadata.name === undefined) return undefined
  const zone = metadata.labels?.[zoneLabel]
  return {
    name: metadata.name,
    podCIDR,
    address,
    segment: metadata.annotations?.[segmentAnnotation]?.slice(0, longestSegment) || usualSegment(address),
    ...(zone && { zone }),
  }
}

/** The /24 of the address: what most networks of homes and offices are. */
function usualSegment(address: string): string {
  return `${address.slice(0, address.lastIndexOf('.'))}.0/24`
}
