/** Checks of what WireGuard between sites needs, on a node of a fleet that uses it. */
import type { NetworkMessage } from '../../api/network/pod-network.ts'
import { peerNetworkOf } from '../network/peers/peer-network.ts'
import { contactOf, noContactWith, type WireguardState } from '../network/wireguard/wireguard-plan.ts'
import { type DoctorFinding, ok, problem, unknown, warning } from './doctor-finding.ts'

export type WireguardReading = {
  readonly message: NetworkMessage
  readonly nodeName: string | undefined
  readonly hasProgram: boolean
  /** There is an interface, or a module for one; undefined: the lists of modules cannot be read. */
  readonly hasKernel: boolean | undefined
  /** undefined: it cannot be read. */
  readonly state: WireguardState | undefined
  readonly nowSeconds: number
}

export function wireguardFindings(reading: WireguardReading): readonly DoctorFinding[] {
  return [program(reading), kernel(reading), ...peers(reading)]
}

function program({ hasProgram }: WireguardReading): DoctorFinding {
  const check = 'wireguard-tools'
  if (hasProgram) return ok(check, 'wg is installed')
  return problem(check, 'wg is not installed: pods of other sites are not reached', 'apt-get install wireguard-tools')
}

function kernel({ hasKernel }: WireguardReading): DoctorFinding {
  const check = 'wireguard-kernel'
  if (hasKernel === undefined) return unknown(check, 'The modules of the kernel are not shown')
  if (hasKernel) return ok(check, 'The kernel has WireGuard')
  const remedy = 'Install a kernel that has the module wireguard, as those of Debian and Raspberry Pi OS have'
  return problem(check, 'The kernel has no WireGuard: pods of other sites are not reached', remedy)
}

function peers({ message, nodeName, state, nowSeconds }: WireguardReading): readonly DoctorFinding[] {
  const check = 'wireguard-peers'
  const tunnel = nodeName === undefined ? undefined : peerNetworkOf(message, nodeName)?.tunnel
  if (tunnel?.kind !== 'wireguard' || state === undefined) return []
  const silent = tunnel.peers.filter(
    (peer) => contactOf(peer, state.peers.get(peer.publicKey), nowSeconds) === 'no contact yet',
  )
  const [first, ...others] = silent
  if (first === undefined) return [ok(check, 'All nodes of other sites have answered')]
  const more = others.length === 0 ? '' : `, and ${others.length} more`
  const remedy = `Let UDP port ${tunnel.port} pass to nodes that can be reached, and annotate them with bramble.dev/wireguard-endpoint=HOST:PORT, the others with none`
  return [warning(check, `Pods of other sites may not be reached: ${noContactWith(first)}${more}`, remedy)]
}
