/** The interfaces that carry packets between nodes of different segments. */

/** VXLAN: packets in UDP, as they are. */
export const tunnelDevice = 'bramble-vxlan'

/** WireGuard: packets in UDP, encrypted. */
export const wireguardDevice = 'bramble-wg'

export type TunnelDevice = typeof tunnelDevice | typeof wireguardDevice

/** The far end of VXLAN at one node. */
export type TunnelPeer = {
  readonly address: string
  readonly mac: string
  readonly node: string
  /** Its IPv6 address in the tunnel. */
  readonly ipv6?: string
}

/** A node that this one exchanges encrypted packets with. */
export type WireguardPeer = {
  readonly name: string
  readonly publicKey: string
  /** `HOST:PORT`; undefined: this node cannot reach it, and learns its address when it connects. */
  readonly endpoint: string | undefined
  /** Ranges of the pods whose packets it sends and receives: its own, and those that it forwards for others. Sorted. */
  readonly ranges: readonly string[]
  /** This node cannot be reached: it keeps the way through its NAT open. */
  readonly keepsAlive: boolean
}

export type Tunnel =
  | {
      readonly kind: 'vxlan'
      /** IPv4 address of this node in the tunnel. */
      readonly address: string
      readonly mac: string
      /** IPv6 address of this node in the tunnel. */
      readonly ipv6?: string
      readonly peers: readonly TunnelPeer[]
    }
  | WireguardTunnel

export type WireguardTunnel = {
  readonly kind: 'wireguard'
  readonly address: string
  /** As that of VXLAN. */
  readonly ipv6?: string
  readonly port: number
  readonly peers: readonly WireguardPeer[]
}

export type PodRoute = {
  /** The address range of the pods of a node: `10.244.3.0/24`. */
  readonly range: string
  /** The node itself on the same segment, a relay there, or the node's end of the tunnel. */
  readonly gateway: string
  /** Default: the link that the gateway is on. */
  readonly device?: TunnelDevice
  /** The address that processes of this node have on it. Default: that of the link. */
  readonly source?: string
}
