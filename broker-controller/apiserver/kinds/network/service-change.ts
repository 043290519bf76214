/**
 * The fields of a Service that depend on each other: what an update that leaves some of them out means
 * (patchAllocatedValues, NormalizeClusterIPs and dropTypeDependentFields below pkg/registry/core/service).
 */
import {
  allocatesNodePorts,
  isExternallyAccessible,
  needsHealthCheckPort,
  needsNodePorts,
  type Service,
  type ServicePort,
  type ServiceSpec,
} from '../../../../api/network/service.ts'
import { equalJSON } from '../../../store/equal-json.ts'

type Draft = { -readonly [Field in keyof ServiceSpec]: ServiceSpec[Field] }

/** `clusterIPs` from `clusterIP`, which older clients send alone. */
export function newService({ status: _, ...service }: Service): Service {
  const spec = service.spec ?? {}
  const { clusterIP, clusterIPs = [] } = spec
  const paired = clusterIP && clusterIPs.length === 0 ? { ...spec, clusterIPs: [clusterIP] } : spec
  return { ...service, spec: paired, status: { loadBalancer: {} } }
}

/** `now` with the allocated values of `old` that its author left out, and without those that its type has no use for. */
export function changedService(old: Service, now: Service): Service {
  const before = old.spec ?? {}
  const kept = withPairedAddresses(before, withAllocatedValues(before, now.spec ?? {}))
  const spec = withoutUnusedFields(before, kept)
  const { status, ...rest } = now
  const balanced = spec.type === 'LoadBalancer' && status?.loadBalancer !== undefined
  return { ...rest, spec, status: { ...status, loadBalancer: balanced ? status.loadBalancer : {} } }
}

function withAllocatedValues(before: ServiceSpec, now: ServiceSpec): ServiceSpec {
  const spec: Draft = { ...now }
  if (hasAddress(before) && hasAddress(now)) {
    if (!now.clusterIP && before.clusterIP) spec.clusterIP = before.clusterIP
    if (isEmpty(now.clusterIPs) && before.clusterIPs) spec.clusterIPs = before.clusterIPs
  }
  if (allocatesNodePorts(before) && allocatesNodePorts(now)) spec.ports = portsWithNodePorts(before.ports, now.ports)
  if (needsHealthCheckPort(before) && needsHealthCheckPort(now) && !now.healthCheckNodePort) {
    if (before.healthCheckNodePort) spec.healthCheckNodePort = before.healthCheckNodePort
  }
  return spec
}

/** Ports of the same name keep their node port, unless another port took it. */
function portsWithNodePorts(
  before: readonly ServicePort[] = [],
  now: readonly ServicePort[] = [],
): readonly ServicePort[] {
  const inUse = new Set(now.map(({ nodePort = 0 }) => nodePort))
  const earlier = new Map(before.map(({ name = '', nodePort = 0 }) => [name, nodePort]))
  return now.map((port) => {
    const nodePort = earlier.get(port.name ?? '') ?? 0
    return port.nodePort || nodePort === 0 || inUse.has(nodePort) ? port : { ...port, nodePort }
  })
}

/** A client that changes or clears `clusterIP` alone means `clusterIPs`, too. */
function withPairedAddresses(before: ServiceSpec, now: ServiceSpec): ServiceSpec {
  const { clusterIPs: _, ...single } = now
  const sameIPs = equalJSON(before.clusterIPs ?? [], now.clusterIPs ?? [])
  if ((before.clusterIP ?? '') === (now.clusterIP ?? '')) {
    return isEmpty(now.clusterIPs) && before.clusterIPs ? { ...now, clusterIPs: before.clusterIPs } : now
  }
  if (!(sameIPs || isEmpty(now.clusterIPs))) return now
  return now.clusterIP ? { ...now, clusterIPs: [now.clusterIP] } : single
}

type Fields = readonly (keyof ServiceSpec)[]

/** Fields that a Service has a use for while `isUsed`. Those of one list go together, if their author changed none of them. */
const dependentFields: readonly {
  readonly isUsed: (spec: ServiceSpec) => boolean
  readonly lists: readonly Fields[]
}[] = [
  { isUsed: hasAddress, lists: [['clusterIP', 'clusterIPs'], ['ipFamilies'], ['ipFamilyPolicy']] },
  { isUsed: needsHealthCheckPort, lists: [['healthCheckNodePort']] },
  {
    isUsed: ({ type }) => type === 'LoadBalancer',
    lists: [['allocateLoadBalancerNodePorts'], ['loadBalancerClass']],
  },
  { isUsed: isExternallyAccessible, lists: [['externalTrafficPolicy']] },
]

/** Without the fields that the new type has no use for, if their author did not change them. */
function withoutUnusedFields(before: ServiceSpec, now: ServiceSpec): ServiceSpec {
  const isSame = (field: keyof ServiceSpec) => equalJSON(before[field] ?? null, now[field] ?? null)
  const unused = dependentFields
    .filter(({ isUsed }) => isUsed(before) && !isUsed(now))
    .flatMap(({ lists }) => lists.filter((fields) => fields.every(isSame)).flat())
  const spec: Draft = { ...now }
  for (const field of unused) delete spec[field]
  if (needsNodePorts(before) && !needsNodePorts(now) && hasNoNewNodePort(before, now)) {
    spec.ports = (now.ports ?? []).map(({ nodePort: _, ...port }) => port)
  }
  return spec
}

function hasAddress({ type }: ServiceSpec): boolean {
  return type !== 'ExternalName'
}

function hasNoNewNodePort(before: ServiceSpec, now: ServiceSpec): boolean {
  const had = new Set((before.ports ?? []).map(({ nodePort = 0 }) => nodePort))
  return (now.ports ?? []).every(({ nodePort = 0 }) => nodePort === 0 || had.has(nodePort))
}

function isEmpty(list: readonly string[] | undefined): boolean {
  return (list ?? []).length === 0
}
