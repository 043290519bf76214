/** The MTU of a tunnel: its packets, with their headers, fit into the link of the node. */
import { type TunnelDevice, tunnelDevice } from './tunnels.ts'

/** Of VXLAN, UDP, IP and the inner Ethernet frame (RFC 7348, 5). */
const vxlanHeaders = 50
/** Of WireGuard (32), UDP (8) and IPv6 (40). */
const wireguardHeaders = 80
/** Of Ethernet. A link with larger packets may have others behind it. */
const usualMtu = 1500
/** Of IPv6 (RFC 8200, 5): the kernel takes it off an interface with less. The machine sends packets of the tunnel in fragments then. */
const leastMtu = 1280

/** `linkMtu`: of the link with the InternalIP of this node; undefined: that of Ethernet. */
export function tunnelMtu(device: TunnelDevice, linkMtu = usualMtu): number {
  const headers = device === tunnelDevice ? vxlanHeaders : wireguardHeaders
  return Math.max(leastMtu, Math.min(linkMtu, usualMtu) - headers)
}
