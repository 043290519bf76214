/** How this node reaches the pods of the others: decided from the message that every node receives. */
import type { NetworkMessage, NetworkPeer } from '../../../api/network/pod-network.ts'
import { type Cidr, cidrContains, cidrsOverlap, formatCidr, formatIPv4, parseCidr } from '../../../api/text/cidr.ts'

/** The interface that carries packets to nodes of other segments, in UDP. */
export const tunnelDevice = 'bramble-vxlan'
/** Of VXLAN in Linux before it had a port assigned, and of flannel: what networks of Kubernetes let through. */
export const tunnelPort = 8472
/** 50 bytes less than Ethernet: the headers of VXLAN, UDP, IP and the inner Ethernet frame (RFC 7348, 5). */
export const tunnelMtu = 1450

export type PodRoute = {
  /** The address range of the pods of a node: `10.244.3.0/24`. */
  readonly range: string
  /** The node itself on the same segment, or its end of the tunnel. */
  readonly gateway: string
  /** Left out: the link that the gateway is on. */
  readonly device?: typeof tunnelDevice
}

/** The far end of the tunnel at one node. */
export type TunnelPeer = { readonly address: string; readonly mac: string; readonly node: string }

export type PeerNetwork = {
  readonly clusterCIDR: string
  /** Of the pods of this node. */
  readonly podCIDR: string
  /** Of all nodes: their processes may reach all pods, as in Kubernetes. */
  readonly nodeAddresses: readonly string[]
  readonly routes: readonly PodRoute[]
  /** This node's end of the tunnel; undefined where all nodes are on one segment. */
  readonly tunnel: { readonly address: string; readonly mac: string; readonly peers: readonly TunnelPeer[] } | undefined
}

/** undefined: the message does not have this node, or not with a range of the cluster; it cannot have routes yet. */
export function peerNetworkOf(message: NetworkMessage, nodeName: string): PeerNetwork | undefined {
  const cluster = parseCidr(message.clusterCIDR)
  const own = message.nodes.find(({ name }) => name === nodeName)
  const ownRange = own && parseCidr(own.podCIDR)
  if (cluster === undefined || own === undefined || ownRange === undefined) return undefined
  if (!cidrContains(cluster, ownRange)) return undefined
  const peers = reachable(message.nodes, own, ownRange, cluster)
  const far = peers.filter(({ peer }) => peer.segment !== own.segment)
  return {
    clusterCIDR: formatCidr(cluster),
    podCIDR: formatCidr(ownRange),
    nodeAddresses: [...new Set([own, ...peers.map(({ peer }) => peer)].map(({ address }) => address))].sort(),
    routes: peers.map(({ peer, range }) =>
      peer.segment === own.segment
        ? { range: formatCidr(range), gateway: peer.address }
        : { range: formatCidr(range), gateway: formatIPv4(range.first), device: tunnelDevice },
    ),
    tunnel:
      far.length === 0
        ? undefined
        : {
            ...tunnelEnd(ownRange),
            peers: far.map(({ peer, range }) => ({ ...tunnelEnd(range), node: peer.address })),
          },
  }
}

type ReachablePeer = { readonly peer: NetworkPeer; readonly range: Cidr }

/**
 * The nodes whose range no other has. A route outside the cluster's range could take the machine's own connections; the node itself
 * and others with its address are on this machine.
 */
function reachable(
  nodes: readonly NetworkPeer[],
  own: NetworkPeer,
  ownRange: Cidr,
  cluster: Cidr,
): readonly ReachablePeer[] {
  const taken: Cidr[] = [ownRange]
  return nodes.flatMap((peer) => {
    const range = parseCidr(peer.podCIDR)
    if (peer.address === own.address || range === undefined) return []
    if (!cidrContains(cluster, range) || taken.some((other) => cidrsOverlap(other, range))) return []
    taken.push(range)
    return [{ peer, range }]
  })
}

/** From the range alone, so that nodes need not exchange them. A locally administered address (IEEE 802, bit 1 of the first byte). */
function tunnelEnd({ first }: Cidr): { readonly address: string; readonly mac: string } {
  const bytes = [24, 16, 8, 0].map((shift) => (Math.floor(first / 2 ** shift) % 256).toString(16).padStart(2, '0'))
  return { address: formatIPv4(first), mac: ['02', '62', ...bytes].join(':') }
}
