/** How this node reaches the pods of other segments by WireGuard: itself, or through a relay. */
import type { NetworkPeer } from '../../../api/network/pod-network.ts'
import { noEndpoint } from '../../../api/network/wireguard.ts'
import { type Cidr, formatCidr, formatIPv4 } from '../../../api/text/cidr.ts'
import { type PodRoute, type WireguardPeer, type WireguardTunnel, wireguardDevice } from './tunnels.ts'

/** A node, and the range of its pods. */
export type ReachablePeer = { readonly peer: NetworkPeer; readonly range: Cidr }

export type WireguardWays = {
  /** To the pods of nodes of other segments. */
  readonly routes: readonly PodRoute[]
  readonly tunnel: WireguardTunnel
  /** The nodes that are reached through another one: its name by theirs. */
  readonly relays: ReadonlyMap<string, string>
  /** Why pods of some nodes are not reached, each as a sentence. */
  readonly gaps: readonly string[]
}

export type WireguardFacts = {
  readonly own: NetworkPeer
  /** This node's end of the tunnel. */
  readonly address: string
  /** That all nodes listen on. */
  readonly port: number
  readonly peers: readonly ReachablePeer[]
}

/**
 * Two nodes exchange packets themselves if one of them can be reached. If not, both use the same relay, which each of them finds in the
 * message: a packet that comes through another peer than its answer would take is dropped.
 */
export function wireguardWays({ own, address, port, peers }: WireguardFacts): WireguardWays {
  const relay = peers.filter(({ peer }) => peer.relay === true && isReachable(peer)).sort(byName)[0]
  const routes: PodRoute[] = []
  const relays = new Map<string, string>()
  const gaps: string[] = []
  /** By the name of the peer that packets are exchanged with. */
  const ranges = new Map<string, string[]>()
  const through = (peer: NetworkPeer, range: Cidr) => {
    const text = formatCidr(range)
    const others = ranges.get(peer.name)
    if (others === undefined) ranges.set(peer.name, [text])
    else others.push(text)
    routes.push({ range: text, gateway: formatIPv4(range.first), device: wireguardDevice })
  }
  for (const { peer, range } of peers.filter((one) => one.peer.segment !== own.segment)) {
    const isDirect = isReachable(own) || isReachable(peer)
    if (!isDirect && relay !== undefined) relays.set(peer.name, relay.peer.name)
    const next = isDirect ? peer : relay?.peer
    if (next === undefined) gaps.push(noWay(peer))
    else if (next.segment === own.segment)
      routes.push({ range: formatCidr(range), gateway: next.address, source: address })
    else if (next.wireguardKey === undefined) gaps.push(noKey(next))
    else through(next, range)
  }
  const tunnelPeers = peers.flatMap(({ peer }): readonly WireguardPeer[] => {
    const { name, wireguardKey: publicKey } = peer
    const passed = ranges.get(name)
    if (publicKey === undefined || passed === undefined) return []
    const endpoint = isReachable(peer) ? (peer.wireguardEndpoint ?? `${peer.address}:${port}`) : undefined
    return [{ name, publicKey, endpoint, ranges: passed.sort(), keepsAlive: !isReachable(own) }]
  })
  return { routes, relays, gaps: [...new Set(gaps)], tunnel: { kind: 'wireguard', address, port, peers: tunnelPeers } }
}

function isReachable({ wireguardEndpoint }: NetworkPeer): boolean {
  return wireguardEndpoint !== noEndpoint
}

function byName(one: ReachablePeer, other: ReachablePeer): number {
  return one.peer.name < other.peer.name ? -1 : 1
}

function noWay({ name }: NetworkPeer): string {
  return `no route to the pods of ${name}: neither node can be reached from outside, and no node that can is annotated bramble.dev/relay=true`
}

function noKey({ name }: NetworkPeer): string {
  return `node ${name} has not reported a WireGuard key: its agent is older than this one, or its log has the reason`
}
