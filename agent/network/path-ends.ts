/** Where in the fleet an address is, how this node reaches it, and what is missing on the way. */
import type { NetworkMessage } from '../../api/network/pod-network.ts'
import type { ServiceState } from '../../api/network/service-endpoints.ts'
import { rangeHas } from '../../api/text/address-block.ts'
import type { NetworkReport, NodeRoute } from './network-report.ts'

export type PathFindings = {
  readonly message: NetworkMessage
  /** What this node has received. */
  readonly services: readonly ServiceState[]
  readonly report: NetworkReport
  /** Whose endpoints of each family this node leaves out, as they do not answer. undefined: not known. */
  readonly silentNodes?: { readonly ipv4: readonly string[]; readonly ipv6: readonly string[] }
}

/** One of the places that a connection may be led to. */
export type PathEnd = {
  /** Port of the Service: `80/TCP`; undefined: the packet keeps its port. */
  readonly port?: string
  /** `10.244.1.5:8080`, `[fd00:10:244:1::5]:8080`, or an address alone. */
  readonly address: string
  readonly node: string
  readonly way: string
  /** This node leads connections there. */
  readonly used: boolean
}

/** The node that has the address, of itself or of a pod, and the way of a packet to it; `-`: no node of the fleet. */
export function placeOfAddress(ip: string, findings: PathFindings): Pick<PathEnd, 'node' | 'way'> {
  const { message, report } = findings
  const route = nodeOfPod(ip, findings)
  if (route !== undefined) return { node: route.name, way: wayText(route) }
  const node = message.nodes.find(({ address, ipv6 }) => address === ip || ipv6?.address === ip)
  if (node !== undefined)
    return { node: node.name, way: node.name === report.node ? 'this node' : 'network of the machine' }
  return { node: '-', way: 'network of the machine' }
}

/** The node with that address in the range of its pods, and the way to it by the family of the address. */
export function nodeOfPod(ip: string, { message, report }: PathFindings): NodeRoute | undefined {
  const routes = report.network?.nodes ?? []
  if (!ip.includes(':')) return routes.find(({ podCIDR }) => rangeHas(podCIDR, ip))
  const node = message.nodes.find(({ ipv6 }) => ipv6 !== undefined && rangeHas(ipv6.podCIDR, ip))
  const route = routes.find(({ name }) => name === node?.name)
  if (route === undefined) return undefined
  return { ...route, address: node?.ipv6?.address ?? route.address, state: route.ipv6?.state ?? 'not reached' }
}

function wayText({ way, address, relay, state }: NodeRoute): string {
  if (state === 'this node') return state
  const by = { route: `route by ${address}`, tunnel: 'VXLAN', wireguard: 'WireGuard', none: 'none' }[way]
  const whole = relay === undefined ? by : `WireGuard by ${relay}`
  return state === 'in place' ? whole : `${whole} (${state})`
}

/** The used ends whose nodes are not reached, as sentences. */
export function lostWays(ends: readonly PathEnd[], { report }: PathFindings): readonly string[] {
  const usedIn = (isIPv6: boolean) =>
    new Set(ends.flatMap(({ node, address, used }) => (used && isIPv6 === isOfIPv6(address) ? [node] : [])))
  const [byIPv4, byIPv6] = [usedIn(false), usedIn(true)]
  return (report.network?.nodes ?? []).flatMap(({ name, state, ipv6 = { state: 'not reached' } }) => [
    ...(byIPv4.has(name) && !isWhole(state) ? [`No complete route to the pods of ${name}: ${state}`] : []),
    ...(byIPv6.has(name) && !isWhole(ipv6.state)
      ? [`No complete IPv6 route to the pods of ${name}: ${ipv6.state}`]
      : []),
  ])
}

function isWhole(state: string): boolean {
  return state === 'this node' || state === 'in place'
}

/** `address`: with or without a port. */
function isOfIPv6(address: string): boolean {
  return address.split(':').length > 2
}
