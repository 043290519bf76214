/** Decides what every node is sent of a Service: a Service and its EndpointSlices → `ServiceState`. */
import type { EndpointSlice } from '../../../api/network/endpoint-slice.ts'
import { loadBalancerNodeOf } from '../../../api/network/load-balancer.ts'
import { needsHealthCheckPort, needsNodePorts, type Service, type ServiceSpec } from '../../../api/network/service.ts'
import type { EndpointAddressState, ServiceState } from '../../../api/network/service-endpoints.ts'
import { type FamilyFacts, familyFacts } from './family-facts.ts'

/** core/v1 DefaultClientIPServiceAffinitySeconds. */
const usualAffinitySeconds = 10_800
/** kube-proxy reads no Service with one of these, whatever its value (cmd/kube-proxy/app/server.go, Run). */
const notProxied = ['service.kubernetes.io/service-proxy-name', 'service.kubernetes.io/headless']
const types = ['ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName'] as const

/**
 * `slices`: of this Service, in any order. Ports of SCTP are left out: nodes forward TCP and UDP. `ipv6`: pods of the fleet have addresses
 * of both families; otherwise those of IPv6 are left out.
 */
export function serviceState(service: Service, slices: readonly EndpointSlice[], ipv6 = false): ServiceState {
  const { metadata, spec = {} } = service
  const type = types.find((one) => one === spec.type) ?? 'ClusterIP'
  const { clusterIPs, externalIPs, loadBalancerIPs, sourceRanges, endpoints } = addressesIn(
    familyFacts.IPv4,
    service,
    slices,
  )
  const node = loadBalancerNodeOf(service)
  const ofIPv6 = ipv6 ? ipv6Part(service, slices) : {}
  const hasBalancer = loadBalancerIPs !== undefined || ofIPv6.ipv6?.loadBalancerIPs !== undefined
  return {
    namespace: metadata.namespace ?? 'default',
    name: metadata.name ?? '',
    type,
    clusterIPs,
    ...(externalIPs && { externalIPs }),
    ...(loadBalancerIPs && { loadBalancerIPs }),
    ...(hasBalancer && node !== undefined && { loadBalancerNode: node }),
    ...(sourceRanges && { sourceRanges }),
    ...(type === 'ExternalName' && { externalName: spec.externalName ?? '' }),
    ports: portsOf(spec),
    ...affinityPart(spec),
    internalTrafficPolicy: spec.internalTrafficPolicy === 'Local' ? 'Local' : 'Cluster',
    externalTrafficPolicy: spec.externalTrafficPolicy === 'Local' ? 'Local' : 'Cluster',
    ...healthCheckPart(spec),
    ...(spec.publishNotReadyAddresses && { publishNotReadyAddresses: true }),
    ...(notProxied.some((label) => metadata.labels?.[label] !== undefined) && { proxiedElsewhere: true }),
    endpoints,
    ...ofIPv6,
  }
}

function affinityPart({ sessionAffinity, sessionAffinityConfig }: ServiceSpec) {
  if (sessionAffinity !== 'ClientIP') return {}
  return { affinitySeconds: sessionAffinityConfig?.clientIP?.timeoutSeconds ?? usualAffinitySeconds }
}

function healthCheckPart(spec: ServiceSpec) {
  const { healthCheckNodePort } = spec
  return needsHealthCheckPort(spec) && healthCheckNodePort ? { healthCheckNodePort } : {}
}

type Addresses = NonNullable<ServiceState['ipv6']>

/** IPv6 addresses, if the Service has that family: as kube-proxy, nodes forward in the families of the Service only. */
function ipv6Part(service: Service, slices: readonly EndpointSlice[]): Pick<ServiceState, 'ipv6'> {
  const addresses = addressesIn(familyFacts.IPv6, service, slices)
  const isOfIPv6 = service.spec?.ipFamilies?.includes('IPv6') || addresses.clusterIPs.length > 0
  const isEmpty = addresses.clusterIPs.length === 0 && addresses.endpoints.length === 0
  return isOfIPv6 && !isEmpty ? { ipv6: addresses } : {}
}

/** What the Service has of one family. */
function addressesIn(facts: FamilyFacts, service: Service, slices: readonly EndpointSlice[]): Addresses {
  const { spec = {}, status } = service
  const addresses = (texts: readonly string[]) => texts.flatMap((text) => facts.address(text) ?? [])
  const isLoadBalancer = spec.type === 'LoadBalancer'
  const externalIPs = addresses(spec.externalIPs ?? [])
  // Those of mode Proxy are reached through the balancer only (core/v1 LoadBalancerIPModeProxy).
  const ingress = (isLoadBalancer ? status?.loadBalancer?.ingress : undefined) ?? []
  const loadBalancerIPs = addresses(ingress.flatMap(({ ip = '', ipMode }) => (ipMode === 'Proxy' ? [] : ip)))
  const sourceRanges = isLoadBalancer ? rangesOf(facts, spec) : []
  return {
    clusterIPs: addresses(spec.clusterIPs ?? [spec.clusterIP ?? '']),
    ...(externalIPs.length > 0 && { externalIPs }),
    ...(loadBalancerIPs.length > 0 && { loadBalancerIPs }),
    ...(sourceRanges.length > 0 && { sourceRanges }),
    endpoints: spec.type === 'ExternalName' ? [] : endpointsOf(facts, slices),
  }
}

type Spec = NonNullable<Service['spec']>

/** Where those that are ranges are of the other family, no client of this one is meant: without one, all would be. */
function rangesOf(facts: FamilyFacts, { loadBalancerSourceRanges = [] }: Spec): readonly string[] {
  const ranges = loadBalancerSourceRanges.map((range) => range.trim())
  const own = ranges.flatMap((range) => facts.range(range) ?? [])
  return own.length === 0 && ranges.some(facts.isForeignRange) ? [facts.noClient] : own
}

function portsOf(spec: Spec): ServiceState['ports'] {
  return (spec.ports ?? []).flatMap(({ name, port, protocol, nodePort }) => {
    const forwarded = protocolOf(protocol)
    if (forwarded === undefined) return []
    return [{ ...named(name), port, protocol: forwarded, ...(needsNodePorts(spec) && nodePort && { nodePort }) }]
  })
}

/** Slices with the same ports are joined; an address that two of them have is kept once, the ready one first. */
function endpointsOf(facts: FamilyFacts, slices: readonly EndpointSlice[]): ServiceState['endpoints'] {
  const sets = new Map<string, { ports: SlicePorts; addresses: Map<string, EndpointAddressState> }>()
  for (const { addressType, ports: written, endpoints } of slices) {
    if (addressType !== facts.family) continue
    const ports = slicePorts(written ?? [])
    const key = JSON.stringify(ports)
    const set = sets.get(key) ?? { ports, addresses: new Map<string, EndpointAddressState>() }
    sets.set(key, set)
    for (const state of (endpoints ?? []).flatMap((endpoint) => addressState(facts, endpoint))) {
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
function addressState(
  facts: FamilyFacts,
  {
    addresses: [address = ''],
    conditions: { ready, serving, terminating } = {},
    hostname,
    targetRef,
    nodeName,
    zone,
    hints,
  }: SliceEndpoint,
): readonly EndpointAddressState[] {
  const ip = facts.address(address)
  if (ip === undefined) return []
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
