/** Which endpoints of a Service's port a node sends packets to (pkg/proxy/topology.go, CategorizeEndpoints). */
import type { ServiceState } from '../../../api/network/service-endpoints.ts'
import { isAddressOf, type RuleFamily } from '../rule-family.ts'

export type ServicePortState = ServiceState['ports'][number]

export type PortEndpoint = {
  readonly ip: string
  readonly port: number
  /** A pod of this node, or this node. */
  readonly isLocal: boolean
  /** Its node does not answer this one. */
  readonly isSilent: boolean
  readonly ready: boolean
  readonly serving: boolean
  readonly terminating: boolean
  /** The zones that should use it; empty: no hint. */
  readonly zones: readonly string[]
}

/** Place of this node: its name, and its zone (`topology.kubernetes.io/zone`), '' where it has none. */
export type NodePlace = {
  readonly nodeName: string
  readonly zone: string
  /** Nodes that do not answer this one, while there is no controller to judge them. Default: none. */
  readonly silentNodes?: readonly string[]
  /** Family of the table that the endpoints are for. Default: IPv4. */
  readonly family: RuleFamily
}

export type UsedPolicies = {
  /** Some packets may go to endpoints of any node. */
  readonly cluster: boolean
  /** Some packets may go to endpoints of this node only. */
  readonly local: boolean
}

export type UsableEndpoints = {
  /** Where any node may answer. Empty where the Service does not use that policy. */
  readonly cluster: readonly PortEndpoint[]
  /** Where this node has to answer. Empty where the Service does not use that policy. */
  readonly local: readonly PortEndpoint[]
  /** Both, without duplicates. */
  readonly reachable: readonly PortEndpoint[]
  /** Some node has an endpoint to use, even if this one may not use it. */
  readonly exist: boolean
}

const none: UsableEndpoints = { cluster: [], local: [], reachable: [], exist: false }

/** All endpoints behind a port, each address once. Addresses and ports that a packet cannot have are left out. */
export function endpointsOf(service: ServiceState, port: ServicePortState, place: NodePlace): PortEndpoint[] {
  const { nodeName, silentNodes = [], family } = place
  const found = new Map<string, PortEndpoint>()
  for (const { ports, addresses } of service.endpoints) {
    const target = ports.find(({ name = '', protocol }) => name === (port.name ?? '') && protocol === port.protocol)
    if (target === undefined || !isPortNumber(target.port)) continue
    for (const { ip, node, zones = [], ready, serving, terminating } of addresses) {
      const key = `${ip}:${target.port}`
      if (found.has(key) || !isAddressOf(family, ip)) continue
      const isReady = ready || service.publishNotReadyAddresses === true
      const [isLocal, isSilent] = [node === nodeName, node !== undefined && silentNodes.includes(node)]
      found.set(key, { ip, port: target.port, isLocal, isSilent, ready: isReady, serving, terminating, zones })
    }
  }
  return [...found.values()]
}

/** Ready ones; where there are none, those that end and still serve, for each policy by itself (KEP-1669). */
export function usableEndpoints(
  endpoints: readonly PortEndpoint[],
  policies: UsedPolicies,
  { zone }: NodePlace,
): UsableEndpoints {
  if (endpoints.length === 0) return none
  const ready = answering(endpoints.filter((endpoint) => endpoint.ready))
  const ending = answering(endpoints.filter(({ serving, terminating }) => serving && terminating))
  const inZone = byHints(ready, zone)
  const cluster = !policies.cluster ? [] : ready.length > 0 ? inZone : ending
  const exist = ready.length > 0 || ending.length > 0
  if (!policies.local) return { cluster, local: [], reachable: cluster, exist }
  const readyHere = ready.filter(({ isLocal }) => isLocal)
  const local = readyHere.length > 0 ? readyHere : ending.filter(({ isLocal }) => isLocal)
  return { cluster, local, reachable: [...new Set([...cluster, ...local])], exist }
}

/** Where no node answers, all of them: this node may be what is cut off. */
function answering(endpoints: readonly PortEndpoint[]): readonly PortEndpoint[] {
  const left = endpoints.filter(({ isSilent }) => !isSilent)
  return left.length > 0 ? left : endpoints
}

/** Hints are followed where each ready endpoint has one and the zone of this node has an endpoint (KEP-2433). */
function byHints(ready: readonly PortEndpoint[], zone: string): readonly PortEndpoint[] {
  if (zone === '' || ready.some(({ zones }) => zones.length === 0)) return ready
  const near = ready.filter(({ zones }) => zones.includes(zone))
  return near.length > 0 ? near : ready
}

export function isPortNumber(port: number | undefined): port is number {
  return port !== undefined && Number.isInteger(port) && port > 0 && port < 65536
}
