/** How this node reaches the pods of the others: decided from the message that every node receives. */
import type { NetworkMessage, NetworkPeer } from '../../../api/network/pod-network.ts'
import { type Cidr, cidrContains, formatCidr, formatIPv4, parseCidr } from '../../../api/text/cidr.ts'
import type { PeerNetwork } from './family-network.ts'
import { ipv6PartOf } from './peer-ipv6.ts'
import { type PodRoute, type Tunnel, tunnelDevice } from './tunnels.ts'
import { type ReachablePeer, wireguardWays } from './wireguard-ways.ts'

/**
 * undefined: the message does not have this node, or not with a range of the cluster; it cannot have routes yet. `hasIPv6`: the machine
 * has it on.
 */
export function peerNetworkOf(message: NetworkMessage, nodeName: string, hasIPv6 = true): PeerNetwork | undefined {
  const cluster = parseCidr(message.clusterCIDR)
  const own = message.nodes.find(({ name }) => name === nodeName)
  const ownRange = own && parseCidr(own.podCIDR)
  if (cluster === undefined || own === undefined || ownRange === undefined) return undefined
  if (!cidrContains(cluster, ownRange)) return undefined
  const peers = reachable(message, own, ownRange, cluster)
  const far = peers.filter(({ peer }) => peer.segment !== own.segment)
  const isGuarded = message.wireguard !== undefined
  const ways = message.wireguard && wireguardWays({ own, ...tunnelEnd(ownRange), ...message.wireguard, peers })
  const trusted = isGuarded ? peers.filter(({ peer }) => peer.segment === own.segment) : peers
  const network: PeerNetwork = {
    address: own.address,
    clusterCIDR: formatCidr(cluster),
    serviceCIDR: message.serviceCIDR,
    podCIDR: formatCidr(ownRange),
    nodeAddresses: [...new Set([own, ...trusted.map(({ peer }) => peer)].map(({ address }) => address))].sort(),
    routes: [...peers.flatMap((one) => routeTo(one, own, isGuarded)), ...(ways?.routes ?? [])],
    tunnel: ways?.tunnel ?? vxlanTunnel(ownRange, far),
    isGuarded,
    relays: ways?.relays ?? new Map(),
    gaps: ways?.gaps ?? [],
  }
  return message.ipv6 === undefined ? network : { ...network, ...ipv6PartOf(network, message, own, hasIPv6) }
}

/** By WireGuard only some nodes have a route: see `wireguardWays`. */
function routeTo({ peer, range: cidr }: ReachablePeer, own: NetworkPeer, hasWays: boolean): readonly PodRoute[] {
  const range = formatCidr(cidr)
  if (peer.segment === own.segment) return [{ range, gateway: peer.address }]
  return hasWays ? [] : [{ range, gateway: formatIPv4(cidr.first), device: tunnelDevice }]
}

function vxlanTunnel(ownRange: Cidr, far: readonly ReachablePeer[]): Tunnel | undefined {
  if (far.length === 0) return undefined
  const peers = far.map(({ peer, range }) => ({ ...tunnelEnd(range), node: peer.address }))
  return { kind: 'vxlan', ...tunnelEnd(ownRange), peers }
}

/**
 * The nodes whose range no other has. A route outside the cluster's range could take the machine's own connections; the node itself
 * and others with its address are on this machine. Behind NAT machines of different sites have the same addresses.
 */
function reachable(
  { nodes, wireguard }: NetworkMessage,
  own: NetworkPeer,
  ownRange: Cidr,
  cluster: Cidr,
): readonly ReachablePeer[] {
  const take = rangesWithin(cluster)
  take(ownRange)
  return nodes.flatMap((peer) => {
    const range = parseCidr(peer.podCIDR)
    const isElsewhere = wireguard !== undefined && peer.segment !== own.segment
    if ((peer.address === own.address && !isElsewhere) || range === undefined) return []
    return cidrContains(cluster, range) && take(range) ? [{ peer, range }] : []
  })
}

/** Takes ranges within `whole`, each in a time that does not grow with their number: false where it overlaps one that was taken. */
function rangesWithin(whole: Cidr): (range: Cidr) => boolean {
  const taken = new Set<number>()
  const above = new Set<number>()
  return ({ first, bits }) => {
    /** The ranges that it is in, and itself at the end. */
    const keys: number[] = []
    for (let wide = whole.bits; wide <= bits; wide++) keys.push((first - (first % 2 ** (32 - wide))) * 64 + wide)
    if (keys.some((key) => taken.has(key)) || above.has(first * 64 + bits)) return false
    taken.add(first * 64 + bits)
    for (const key of keys) above.add(key)
    return true
  }
}

/** From the range alone, so that nodes need not exchange them. A locally administered address (IEEE 802, bit 1 of the first byte). */
function tunnelEnd({ first }: Cidr): { readonly address: string; readonly mac: string } {
  const bytes = [24, 16, 8, 0].map((shift) => (Math.floor(first / 2 ** shift) % 256).toString(16).padStart(2, '0'))
  return { address: formatIPv4(first), mac: ['02', '62', ...bytes].join(':') }
}
