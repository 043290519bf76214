/** IPv6 of this node and the others, and how it reaches their pods: the way of IPv4, with IPv6 addresses. */
import { ipv6NodeMaskSize } from '../../../api/network/ipv6-ranges.ts'
import type { NetworkMessage, NetworkPeer } from '../../../api/network/pod-network.ts'
import { formatCidr, parseCidr } from '../../../api/text/cidr.ts'
import { formatIPv6, type IPv6Range, ipv6RangesOverlap, parseIPv6Range } from '../../../api/text/ipv6-range.ts'
import type { FamilyNetwork, PeerNetwork } from './family-network.ts'
import { serviceRouteOf } from './service-route.ts'
import type { PodRoute, Tunnel } from './tunnels.ts'

/** The range of the pods of this node, in canonical form; undefined: they have no IPv6 addresses. */
export function podRangeOfIPv6(message: NetworkMessage | undefined, nodeName: string): string | undefined {
  const cluster = parseIPv6Range(message?.ipv6?.clusterCIDR ?? '')
  const own = message?.nodes.find(({ name }) => name === nodeName)
  return cluster && own && rangeOf(own, cluster) && own.ipv6?.podCIDR
}

/** The network that the pods of this node are to have: see the engine's networks of pods. */
export type PodNetworkForm = { readonly mode: 'node' | 'routed' | 'dual'; readonly ipv6CIDR?: string }

/** `hasIPv6`: as of `peerNetworkOf`. */
export function podNetworkForm(
  message: NetworkMessage | undefined,
  nodeName: string,
  hasIPv6: boolean,
): PodNetworkForm {
  if (message === undefined) return { mode: 'node' }
  const ipv6CIDR = hasIPv6 ? podRangeOfIPv6(message, nodeName) : undefined
  return ipv6CIDR === undefined ? { mode: 'routed' } : { mode: 'dual', ipv6CIDR }
}

export type IPv6Part = {
  /** Undefined: pods of this node have no IPv6 addresses. */
  readonly ipv6?: FamilyNetwork
  /** The same as `network.tunnel`, with IPv6 addresses. */
  readonly tunnel: Tunnel | undefined
  /** Why pods of this node, or of others, are not reached by IPv6, each as a sentence. */
  readonly ipv6Gaps: readonly string[]
}

/** `network`: of IPv4. `hasIPv6`: the kernel of this machine has it on. */
export function ipv6PartOf(
  network: PeerNetwork,
  message: NetworkMessage,
  own: NetworkPeer,
  hasIPv6: boolean,
): IPv6Part {
  const { tunnel } = network
  const cluster = parseIPv6Range(message.ipv6?.clusterCIDR ?? '')
  if (message.ipv6 === undefined || cluster === undefined) return { tunnel, ipv6Gaps: [] }
  const podCIDR = podRangeOfIPv6(message, own.name)
  if (!hasIPv6) return { tunnel, ipv6Gaps: [noIPv6] }
  if (podCIDR === undefined) return { tunnel, ipv6Gaps: ['The controller has not assigned an IPv6 range for pods'] }
  const peers = peersByRange(message, own, cluster)
  const source = firstOfIPv6Range(podCIDR)
  const serviceRoute = serviceRouteOf(message.ipv6, own)
  const ways = network.routes.map((route) => wayTo(route, { own, message, source, peer: peers.get(route.range) }))
  const trusted = message.nodes.filter(({ segment }) => !network.isGuarded || segment === own.segment)
  return {
    ipv6: {
      clusterCIDR: message.ipv6.clusterCIDR,
      serviceCIDR: message.ipv6.serviceCIDR,
      podCIDR,
      nodeAddresses: [...new Set([own, ...trusted].flatMap(({ ipv6 }) => ipv6?.address ?? []))].sort(),
      routes: ways.flatMap(({ route }) => route ?? []),
      ...(serviceRoute && { serviceRoute }),
    },
    tunnel: tunnel && tunnelWith(tunnel, source, peers),
    ipv6Gaps: [...new Set(ways.flatMap(({ gap }) => gap ?? []))],
  }
}

const noIPv6 =
  'This machine has IPv6 off (net.ipv6.conf.all.disable_ipv6, or the kernel): its pods have IPv4 addresses only'

/** In the range of the cluster, and as large as that of every node. */
function rangeOf({ ipv6 }: NetworkPeer, cluster: IPv6Range): IPv6Range | undefined {
  const range = parseIPv6Range(ipv6?.podCIDR ?? '')
  return range?.bits === ipv6NodeMaskSize && ipv6RangesOverlap(cluster, range) ? range : undefined
}

/** The other nodes by their IPv4 range. If two have the same IPv6 range, the first one gets it. */
function peersByRange(
  { nodes }: NetworkMessage,
  own: NetworkPeer,
  cluster: IPv6Range,
): ReadonlyMap<string, NetworkPeer> {
  const taken = new Set([own.ipv6?.podCIDR])
  const found = new Map<string, NetworkPeer>()
  for (const peer of nodes) {
    const range = parseCidr(peer.podCIDR)
    if (range === undefined || rangeOf(peer, cluster) === undefined || taken.has(peer.ipv6?.podCIDR)) continue
    taken.add(peer.ipv6?.podCIDR)
    found.set(formatCidr(range), peer)
  }
  return found
}

type Ends = {
  readonly own: NetworkPeer
  readonly message: NetworkMessage
  /** This node's end of the tunnel. */
  readonly source: string
  readonly peer: NetworkPeer | undefined
}

/** Empty if the peer has no IPv6 range: its pods have no IPv6 addresses. */
function wayTo(
  { gateway, device, source }: PodRoute,
  { own, message, peer, ...ends }: Ends,
): { readonly route?: PodRoute; readonly gap?: string } {
  const range = peer?.ipv6?.podCIDR
  if (peer === undefined || range === undefined) return {}
  if (device !== undefined) return { route: { range, gateway: firstOfIPv6Range(range), device } }
  if (own.ipv6?.address === undefined)
    return { gap: 'pods of other nodes of this segment are not reached by IPv6: this node has no IPv6 InternalIP' }
  const next = message.nodes.find((node) => node.address === gateway && node.segment === own.segment)
  const address = next?.ipv6?.address
  if (address === undefined || address === own.ipv6.address)
    return { gap: `pods of ${peer.name} are not reached by IPv6: ${next?.name ?? gateway} has no IPv6 InternalIP` }
  return { route: { range, gateway: address, ...(source !== undefined && { source: ends.source }) } }
}

function tunnelWith(tunnel: Tunnel, ipv6: string, peers: ReadonlyMap<string, NetworkPeer>): Tunnel {
  if (tunnel.kind === 'wireguard') {
    const ranges = (all: readonly string[]) => [
      ...all,
      ...all.flatMap((range) => peers.get(range)?.ipv6?.podCIDR ?? []),
    ]
    return { ...tunnel, ipv6, peers: tunnel.peers.map((peer) => ({ ...peer, ranges: ranges(peer.ranges).sort() })) }
  }
  const ends = new Map([...peers].map(([range, peer]) => [range.replace(/\/.*/, ''), peer.ipv6?.podCIDR]))
  return {
    ...tunnel,
    ipv6,
    peers: tunnel.peers.map((peer) => {
      const range = ends.get(peer.address)
      return range === undefined ? peer : { ...peer, ipv6: firstOfIPv6Range(range) }
    }),
  }
}

/** The first address of a range: a node's end of a tunnel, as in IPv4. */
export function firstOfIPv6Range(range: string): string {
  return formatIPv6(parseIPv6Range(range)?.first ?? 0n)
}
