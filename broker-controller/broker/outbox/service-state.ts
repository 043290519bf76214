/** Decides what every node is sent of a Service: a Service and its EndpointSlices of IPv4 → `ServiceState`. */
import type { EndpointSlice } from '../../../api/network/endpoint-slice.ts'
import { loadBalancerNodeOf } from '../../../api/network/load-balancer.ts'
import { needsHealthCheckPort, needsNodePorts, type Service } from '../../../api/network/service.ts'
import type { EndpointAddressState, ServiceState } from '../../../api/network/service-endpoints.ts'
import { hasIPv6Range } from '../../../api/text/address-block.ts'
import { parseCidr } from '../../../api/text/cidr.ts'
import { isIPv4 } from '../../../api/text/ip-address.ts'

/** core/v1 DefaultClientIPServiceAffinitySeconds. */
const usualAffinitySeconds = 10_800
/** kube-proxy reads no Service with one of these, whatever its value (cmd/kube-proxy/app/server.go, Run). */
const notProxied = ['service.kubernetes.io/service-proxy-name', 'service.kubernetes.io/headless']
const types = ['ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName'] as const

/** `slices`: of this Service, in any order. Ports of SCTP are left out: nodes forward TCP and UDP. */
export function serviceState(service: Service, slices: readonly EndpointSlice[]): ServiceState {
  const { metadata, spec = {}, status } = service
  const type = types.find((one) => one === spec.type) ?? 'ClusterIP'
  const isLoadBalancer = type === 'LoadBalancer'
  const [externalIPs, sourceRanges] = [spec.externalIPs?.filter(isIPv4) ?? [], isLoadBalancer ? rangesOf(spec) : []]
  // Those of mode Proxy are reached through the balancer only (core/v1 LoadBalancerIPModeProxy).
  const ingress = (isLoadBalancer ? status?.loadBalancer?.ingress : undefined) ?? []
  const loadBalancerIPs = ingress.flatMap(({ ip = '', ipMode }) => (isIPv4(ip) && ipMode !== 'Proxy' ? [ip] : []))
  const node = loadBalancerNodeOf(service)
  return {
    namespace: metadata.namespace ?? 'default',
    name: metadata.name ?? '',
    type,
    clusterIPs: (spec.clusterIPs ?? [spec.clusterIP ?? '']).filter(isIPv4),
    ...(externalIPs.length > 0 && { externalIPs }),
    ...(loadBalancerIPs.length > 0 && { loadBalancerIPs, ...(node !== undefined && { loadBalancerNode: node }) }),
    ...(sourceRanges.length > 0 && { sourceRanges }),
    ...(type === 'ExternalName' && { externalName: spec.externalName ?? '' }),
    ports: portsOf(spec),
    ...(spec.sessionAffinity === 'ClientIP' && {
      affinitySeconds: spec.sessionAffinityConfig?.clientIP?.timeoutSeconds ?? usualAffinitySeconds,
    }),
    internalTrafficPolicy: spec.internalTrafficPolicy === 'Local' ? 'Local' : 'Cluster',
    externalTrafficPolicy: spec.externalTrafficPolicy === 'Local' ? 'Local' : 'Cluster',
    ...(needsHealthCheckPort(spec) && spec.healthCheckNodePort && { healthCheckNodePort: spec.healthCheckNodePort }),
    ...(spec.publishNotReadyAddresses && { publishNotReadyAddresses: true }),
    ...(notProxied.some((label) => metadata.labels?.[label] !== undefined) && { proxiedElsewhere: true }),
    endpoints: type === 'ExternalName' ? [] : endpointsOf(slices),
  }
}

type Spec = NonNullable<Service['spec']>

/** No client has it. */
const noClient = '0.0.0.0/32'

/** Where those that are ranges are of IPv6, no client of IPv4 is meant: without one, all would be. */
function rangesOf({ loadBalancerSourceRanges = [] }: Spec): readonly string[] {
  const ranges = loadBalancerSourceRanges.map((range) => range.trim())
  const ofIPv4 = ranges.filter((range) => parseCidr(range) !== undefined)
  return ofIPv4.length === 0 && ranges.some(hasIPv6Range) ? [noClient] : ofIPv4
}

function portsOf(spec: Spec): ServiceState['ports'] {
  return (spec.ports ?? []).flatMap(({ name, port, protocol, nodePort }) => {
    const forwarded = protocolOf(protocol)
    if (forwarded === undefined) return []
    return [{ ...named(name), port, protocol: forwarded, ...(needsNodePorts(spec) && nodePort && { nodePort }) }]
  })
}

/** Slices with the same ports are joined; an address that two of them have is kept once, the ready one first. */
function endpointsOf(slices: readonly EndpointSlice[]): ServiceState['endpoints'] {
  const sets = new Map<string, { ports: SlicePorts; addresses: Map<string, EndpointAddressState> }>()
  for (const { addressType, ports: written, endpoints } of slices) {
    if (addressType !== 'IPv4') continue
    const ports = slicePorts(written ?? [])
    const key = JSON.stringify(ports)
    const set = sets.get(key) ?? { ports, addresses: new Map<string, EndpointAddressState>() }
    sets.set(key, set)
    for (const state of (endpoints ?? []).flatMap(addressState)) {
      if (state.ready || !set.addresses.has(state.ip)) set.addresses.set(state.ip, state)
    }
  }
  return [...sets]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, { ports, addresses }]) => ({ ports, addresses: [...addresses.values()].sort(byAddress) }))
    .filter(({ addresses }) => addresses.length > 0)
}

type SlicePorts = ServiceState['endpoints'][number]['ports']

function slicePorts(ports: NonNullable<EndpointSlice['ports']>): SlicePorts {
  return ports.flatMap(({ name, port, protocol }) => {
    const forwarded = protocolOf(protocol)
    return port && forwarded ? [{ ...named(name), port, protocol: forwarded }] : []
  })
}

type SliceEndpoint = NonNullable<EndpointSlice['endpoints']>[number]

/** The first address only, as kube-proxy does: the others mean the same endpoint (discovery/v1 Endpoint.addresses). */
function addressState({
  addresses: [ip = ''],
  conditions: { ready, serving, terminating } = {},
  hostname,
  targetRef,
  nodeName,
  zone,
  hints,
}: SliceEndpoint): readonly EndpointAddressState[] {
  if (!isIPv4(ip)) return []
  const zones = hints?.forZones?.map(({ name }) => name) ?? []
  return [
    {
      ip,
      ...(hostname && { hostname }),
      ...(targetRef?.kind === 'Pod' && targetRef.name && { pod: targetRef.name }),
      ...(nodeName && { node: nodeName }),
      ...(zone && { zone }),
      ...(zones.length > 0 && { zones }),
      // Unknown is ready, and serving is then what ready is (discovery/v1 EndpointConditions).
      ready: ready ?? true,
      serving: serving ?? ready ?? true,
      terminating: terminating ?? false,
    },
  ]
}

function protocolOf(protocol: string | undefined): 'TCP' | 'UDP' | undefined {
  if (protocol === undefined || protocol === '' || protocol === 'TCP') return 'TCP'
  return protocol === 'UDP' ? 'UDP' : undefined
}

function named(name: string | undefined): { readonly name?: string } {
  return name ? { name } : {}
}

function byAddress(a: EndpointAddressState, b: EndpointAddressState): number {
  return a.ip < b.ip ? -1 : 1
}
