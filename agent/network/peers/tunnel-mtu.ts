/** The MTU of a tunnel: its packets, with their headers, fit into the link of the node. */
import { type TunnelDevice, tunnelDevice } from './tunnels.ts'

/** Bytes of the VXLAN, UDP, IP and inner Ethernet headers (RFC 7348, 5). */
const vxlanHeaders = 50
/** Bytes of the WireGuard (32), UDP (8) and IPv6 (40) headers. */
const wireguardHeaders = 80
/** MTU of Ethernet. Behind a link with larger packets there may be links with this one. */
const usualMtu = 1500
/**
 * Least MTU of IPv6 (RFC 8200, 5): the kernel disables IPv6 on an interface with less. The machine then sends the
 * packets of the tunnel in fragments.
 */
const leastMtu = 1280

/** `linkMtu`: of the link with the InternalIP of this node; undefined: that of Ethernet. */
export function tunnelMtu(device: TunnelDevice, linkMtu = usualMtu): number {
  const headers = device === tunnelDevice ? vxlanHeaders : wireguardHeaders
  return Math.max(leastMtu, Math.min(linkMtu, usualMtu) - headers)
}
