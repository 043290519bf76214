/**
 * The addresses and the node ports of a Service, which no other Service has. They are in use as long as a stored Service names
 * them, so there is no record of its own that a crash could leave wrong (pkg/registry/core/service/storage/alloc.go,
 * ipallocator and portallocator; messages as there).
 */
import {
  allocatesNodePorts,
  needsHealthCheckPort,
  noClusterIP,
  type Service,
  type ServicePort,
  type ServiceSpec,
} from '../../../../api/network/service.ts'
import { isKubernetesService, kubernetesServicePlace } from '../../../../api/network/service-range.ts'
import { invalid } from '../../../../api/problem.ts'
import { canonicalIPv6 } from '../../../../api/text/ip-address.ts'
import type { ServiceRange } from '../../handlers/service-network.ts'
import { invalidService, withFamilies } from './service-families.ts'

/** As kube-apiserver's `--service-node-port-range`. */
const nodePorts = { first: 30_000, last: 32_767 } as const

/** Node ports of one Service. The whole fleet shares the range. */
export const mostNodePorts = 250

export type AllocationFacts = {
  /** All stored Services. The one that is replaced is among them. */
  readonly services: readonly Service[]
  readonly ranges: readonly ServiceRange[]
  readonly random: () => number
}

/** The Service with its addresses, IP families and node ports. Throws ApiError Invalid when one it asks for is in use. */
export function withAllocations(service: Service, old: Service | undefined, facts: AllocationFacts): Service {
  const others = facts.services.filter((one) => !isSame(one, service))
  const spec = service.spec ?? {}
  const configured = facts.ranges.map(({ family }) => family)
  const placed = withFamilies(service, spec, old?.spec, configured)
  refuseManyNodePorts(service, old)
  const addressed = withAddresses(service, placed, old?.spec, others, facts)
  return { ...service, spec: withNodePorts(service, addressed, others, facts) }
}

/** A field that is left out, or empty behind the first, gets a free address of its family. One that the Service had stays, wherever it is. */
function withAddresses(
  service: Service,
  spec: ServiceSpec,
  old: ServiceSpec | undefined,
  others: readonly Service[],
  { ranges, random }: AllocationFacts,
): ServiceSpec {
  if (spec.type === 'ExternalName' || spec.clusterIP === noClusterIP) return spec
  const inUse = new Set(others.flatMap((other) => (other.spec?.clusterIPs ?? []).map(canonicalAddress)))
  const [first] = ranges
  if (first !== undefined && !isKubernetesService(service)) inUse.add(first.at(kubernetesServicePlace))
  const { ipFamilies = [], clusterIPs = [] } = spec
  const addresses = ipFamilies.map((family, index) => {
    const asked = clusterIPs[index] ?? ''
    const range = ranges.find((one) => one.family === family)
    if (range === undefined || (asked !== '' && asked === old?.clusterIPs?.[index])) return asked
    if (asked === '') return allocated(service, spec, freeAddress(range, inUse, random))
    const problem = addressProblem(asked, range, inUse)
    if (problem === undefined) return asked
    throw invalidService(service, [
      invalid('spec.clusterIPs', clusterIPs, `failed to allocate IP ${asked}: ${problem}`),
    ])
  })
  const [clusterIP, ...more] = addresses.filter((address) => address !== '')
  return clusterIP === undefined ? spec : { ...spec, clusterIP, clusterIPs: [clusterIP, ...more] }
}

function allocated(service: Service, { clusterIPs = [] }: ServiceSpec, free: string | undefined): string {
  if (free !== undefined) return free
  throw invalidService(service, [invalid('spec.clusterIPs', clusterIPs, 'failed to allocate IP: range is full')])
}

function addressProblem(ip: string, range: ServiceRange, inUse: ReadonlySet<string>): string | undefined {
  const place = range.placeOf(ip) ?? 0
  if (place < 1 || place > range.usable) {
    return `the provided IP (${ip}) is not in the valid range. The range of valid IPs is ${range.text}`
  }
  return inUse.has(canonicalAddress(ip)) ? 'provided IP is already allocated' : undefined
}

/** One of IPv6 may be written in several ways. */
function canonicalAddress(ip: string): string {
  return ip.includes(':') ? (canonicalIPv6(ip) ?? ip) : ip
}

/**
 * The lower part of the range is left to Services that ask for an address, as long as there are others (KEP-3070): a
 * sixteenth of the whole range, of which the first address, and in IPv4 the last one, is not usable.
 */
function freeAddress(range: ServiceRange, inUse: ReadonlySet<string>, random: () => number): string | undefined {
  const { usable } = range
  const forAsking = usable < 16 ? 0 : Math.min(Math.max(16, Math.ceil(usable / 16)), 256)
  const within = (first: number, count: number) => freeWithin({ range, first, count }, inUse, random)
  return within(1 + forAsking, usable - forAsking) ?? within(1, forAsking)
}

type Places = { readonly range: ServiceRange; readonly first: number; readonly count: number }

/** From a random one of `count` addresses on, so that an address is not used again soon. */
function freeWithin({ range, first, count }: Places, inUse: ReadonlySet<string>, random: () => number) {
  const start = Math.floor(random() * count)
  for (let step = 0; step < Math.min(count, inUse.size + 1); step++) {
    const address = range.at(first + ((start + step) % count))
    if (!inUse.has(address)) return address
  }
  return undefined
}

function withNodePorts(
  service: Service,
  spec: ServiceSpec,
  others: readonly Service[],
  { random }: AllocationFacts,
): ServiceSpec {
  const inUse = new Set(others.flatMap(nodePortsOf))
  const taken = new Set(inUse)
  const claim = (field: string, port: number, used: ReadonlySet<number> = inUse) => {
    const valid = `${nodePorts.first}-${nodePorts.last}`
    const problem =
      port < nodePorts.first || port > nodePorts.last
        ? `provided port is not in the valid range. The range of valid ports is ${valid}`
        : used.has(port) && 'provided port is already allocated'
    if (problem) throw invalidService(service, [invalid(field, port, problem)])
    taken.add(port)
  }
  const choose = (): number => {
    const port = freeNodePort(taken, random)
    if (port === undefined) throw invalidService(service, [noPortLeft])
    taken.add(port)
    return port
  }
  const ports = spec.ports ?? []
  for (const [index, { nodePort = 0 }] of ports.entries()) {
    if (nodePort !== 0) claim(`spec.ports[${index}].nodePort`, nodePort)
  }
  const checks = needsHealthCheckPort(spec)
  if (checks && spec.healthCheckNodePort) claim('spec.healthCheckNodePort', spec.healthCheckNodePort, taken)
  const health = checks && !spec.healthCheckNodePort ? { healthCheckNodePort: choose() } : {}
  if (!allocatesNodePorts(spec)) return { ...spec, ...health }
  const [given, earlier] = [twinPorts(), twinPorts()]
  for (const port of ports) given.add(port)
  const complete = ports.map((port) => {
    // One number for both protocols of a port, such as 53 over TCP and UDP (findRequestedNodePort).
    const twin = earlier.of(port) ?? given.of(port)
    const placed = port.nodePort ? port : { ...port, nodePort: twin?.nodePort || choose() }
    earlier.add(placed)
    return placed
  })
  return { ...spec, ...health, ports: complete }
}

/** Finds the first port that was added with the same number and another protocol. A Service may have thousands of ports. */
function twinPorts() {
  /** By number: the first one, and the first with another protocol than that. */
  const byNumber = new Map<number, { readonly first: ServicePort; other?: ServicePort }>()
  return {
    add(port: ServicePort): void {
      const present = byNumber.get(port.port)
      if (present === undefined) byNumber.set(port.port, { first: port })
      else if (present.first.protocol !== port.protocol) present.other ??= port
    },
    of({ port, protocol }: ServicePort): ServicePort | undefined {
      const present = byNumber.get(port)
      return present?.first.protocol === protocol ? present?.other : present?.first
    },
  }
}

/** Throws ApiError Invalid for a Service with more than its share of the range. One of an earlier version may keep what it has. */
function refuseManyNodePorts(service: Service, old: Service | undefined): void {
  const [count, before] = [nodePortCount(service), old === undefined ? 0 : nodePortCount(old)]
  if (count <= Math.max(mostNodePorts, before)) return
  const message = `Too many: ${count}: must have at most ${mostNodePorts} ports that need a node port`
  throw invalidService(service, [{ field: 'spec.ports', reason: 'FieldValueTooMany', message }])
}

function nodePortCount({ spec = {} }: Service): number {
  return allocatesNodePorts(spec) ? (spec.ports ?? []).length : 0
}

const noPortLeft = invalid('spec.ports', [], 'failed to allocate a nodePort: range is full')

function nodePortsOf({ spec = {} }: Service): readonly number[] {
  const ports = (spec.ports ?? []).map(({ nodePort = 0 }) => nodePort)
  return [...ports, spec.healthCheckNodePort ?? 0].filter((port) => port !== 0)
}

/** A 32nd of the range is left to Services that ask for a port, as long as there are others (KEP-3668). */
const firstChosen = nodePorts.first + 86

function freeNodePort(inUse: ReadonlySet<number>, random: () => number): number | undefined {
  const within = (first: number, last: number) => freePortWithin(first, last - first + 1, inUse, random)
  return within(firstChosen, nodePorts.last) ?? within(nodePorts.first, firstChosen - 1)
}

function freePortWithin(first: number, count: number, inUse: ReadonlySet<number>, random: () => number) {
  const start = Math.floor(random() * count)
  for (let step = 0; step < count; step++) {
    const port = first + ((start + step) % count)
    if (!inUse.has(port)) return port
  }
  return undefined
}

function isSame({ metadata: one }: Service, { metadata: other }: Service): boolean {
  return one.name === other.name && one.namespace === other.namespace
}
