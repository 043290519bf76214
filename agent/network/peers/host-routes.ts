/** The routes of this machine, and the steps that change them. */
import type { Cidr } from '../../../api/text/cidr.ts'
import type { PodRoute, TunnelDevice, TunnelPeer } from './tunnels.ts'

export type ServiceRoute = {
  /** In canonical form. */
  readonly range: string
  /** The address of this node that processes have as their source; undefined: the kernel chooses. */
  readonly source?: string
}

export type RouteStep =
  | { readonly step: 'addRoute'; readonly route: PodRoute }
  | { readonly step: 'removeRoute'; readonly route: PodRoute }
  | { readonly step: 'openTunnel'; readonly address: string; readonly mac: string; readonly mtu: number }
  | { readonly step: 'addTunnelPeer'; readonly peer: TunnelPeer }
  | { readonly step: 'removeTunnelPeer'; readonly peer: TunnelPeer }
  | { readonly step: 'closeTunnel' }
  | { readonly step: 'openWireguard'; readonly address: string; readonly mtu: number }
  | { readonly step: 'closeWireguard' }
  | { readonly step: 'setTunnelMtu'; readonly device: TunnelDevice; readonly mtu: number }
  | { readonly step: 'addTunnelIPv6'; readonly device: TunnelDevice; readonly address: string }
  | { readonly step: 'removeTunnelIPv6'; readonly device: TunnelDevice; readonly address: string }
  | { readonly step: 'addGuard'; readonly range: string }
  | { readonly step: 'removeGuard'; readonly range: string }
  | { readonly step: 'addServiceRoute'; readonly route: ServiceRoute }
  | { readonly step: 'removeServiceRoute'; readonly route: ServiceRoute }

/** A route in the kernel's main table. */
export type HostRoute = {
  readonly interface: string
  readonly range: Cidr
  /** Undefined: the range is on the link itself. */
  readonly gateway?: string
  readonly metric?: number
}

/** The same of IPv6; `range` in canonical form. */
export type HostIPv6Route = Omit<HostRoute, 'range'> & { readonly range: string }
