/** Decides what other nodes are sent of a Node: how they reach its pods. */
import type { NetworkPeer } from '../../../api/network/pod-network.ts'
import { segmentOf } from '../../../api/network/segment.ts'
import type { Node } from '../../../api/node.ts'
import { parseCidr } from '../../../api/text/cidr.ts'
import { ipVersion } from '../../../api/text/ip-address.ts'

const zoneLabel = 'topology.kubernetes.io/zone'

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
    segment: segmentOf(metadata.annotations, address),
    ...(zone && { zone }),
  }
}
