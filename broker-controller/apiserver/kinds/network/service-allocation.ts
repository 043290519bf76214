/**
 * The address and the node ports of a Service, which no other Service has. They are in use as long as a stored Service names
 * them, so there is no record of its own that a crash could leave wrong (pkg/registry/core/service/storage/alloc.go,
 * ipallocator and portallocator; messages as there).
 */
import {
  needsHealthCheckPort,
  needsNodePorts,
  noClusterIP,
  type Service,
  type ServicePort,
  type ServiceSpec,
} from '../../../../api/network/service.ts'
import { isKubernetesService, kubernetesServiceAddress } from '../../../../api/network/service-range.ts'
import { invalid, invalidObject, type Problem } from '../../../../api/problem.ts'
import { resources } from '../../../../api/resources.ts'
import { type Cidr, formatCidr, formatIPv4, parseCidr, sizeOfCidr } from '../../../../api/text/cidr.ts'
import { ipVersion } from '../../../../api/text/ip-address.ts'
import { equalJSON } from '../../../store/equal-json.ts'

/** As kube-apiserver's `--service-node-port-range`. */
const nodePorts = { first: 30_000, last: 32_767 } as const

export type AllocationFacts = {
  /** All stored Services. The one that is replaced is among them. */
  readonly services: readonly Service[]
  readonly range: Cidr
  readonly random: () => number
}

/** The Service with its address, IP families and node ports. Throws ApiError Invalid when one it asks for is in use. */
export function withAllocations(service: Service, old: Service | undefined, facts: AllocationFacts): Service {
  const others = facts.services.filter((one) => !isSame(one, service))
  const spec = service.spec ?? {}
  const addressed = withAddress(service, withFamilies(service, spec, old?.spec), others, facts)
  return { ...service, spec: withNodePorts(service, addressed, others, facts) }
}

/** IP families of a fleet that has IPv4 addresses for Services (initIPFamilyFields). */
function withFamilies(service: Service, given: ServiceSpec, old: ServiceSpec | undefined): ServiceSpec {
  if (given.type === 'ExternalName') return given
  const { clusterIP, selector = {} } = given
  const isBare = clusterIP === noClusterIP && Object.keys(selector).length === 0
  const ipFamilyPolicy = given.ipFamilyPolicy ?? old?.ipFamilyPolicy ?? (isBare ? 'RequireDualStack' : 'SingleStack')
  const isSingle = ipFamilyPolicy === 'SingleStack'
  const spec = isSingle && old !== undefined ? withOneFamily(given, old) : given
  const { clusterIPs = [], ipFamilies = [] } = spec
  const released = (what: string, has: readonly string[], had: readonly string[] = []): readonly Problem[] =>
    !isSingle && has.length > 0 && has.length < had.length
      ? [invalid('spec.ipFamilyPolicy', ipFamilyPolicy, `must be 'SingleStack' to release the secondary ${what}`)]
      : []
  const many = (what: string, count: number): readonly Problem[] =>
    isSingle && count === 2
      ? [
          invalid(
            'spec.ipFamilyPolicy',
            ipFamilyPolicy,
            `must be 'RequireDualStack' or 'PreferDualStack' when multiple ${what} are specified`,
          ),
        ]
      : []
  const foreign = clusterIPs.flatMap((ip, index) =>
    ipVersion(ip) === 6 && ipFamilies[index] === undefined
      ? [invalid(`spec.clusterIPs[${index}]`, clusterIPs, 'IPv6 is not configured on this cluster')]
      : [],
  )
  refuse(service, [
    ...released('cluster IP', clusterIPs, old?.clusterIPs),
    ...released('IP family', ipFamilies, old?.ipFamilies),
    ...many('cluster IPs', clusterIPs.length),
    ...many('IP families', ipFamilies.length),
    ...foreign,
  ])
  if (isBare) {
    const [first = 'IPv4', second = first === 'IPv4' ? 'IPv6' : 'IPv4'] = ipFamilies
    return { ...spec, ipFamilyPolicy, ipFamilies: isSingle ? [first] : [first, second] }
  }
  const dual = 'this cluster is not configured for dual-stack services'
  refuse(service, [
    ...(ipFamilyPolicy === 'RequireDualStack' ? [invalid('spec.ipFamilyPolicy', ipFamilyPolicy, dual)] : []),
    ...ipFamilies.flatMap((family, index) =>
      family === 'IPv4' ? [] : [invalid(`spec.ipFamilies[${index}]`, family, 'not configured on this cluster')],
    ),
  ])
  return { ...spec, ipFamilyPolicy, ipFamilies: ['IPv4'] }
}

/** A Service that becomes `SingleStack` loses what is second of the fields that its author left as they were. */
function withOneFamily(spec: ServiceSpec, old: ServiceSpec): ServiceSpec {
  const first = (has: readonly string[] | undefined, had: readonly string[] | undefined) =>
    equalJSON(has ?? [], had ?? []) ? has?.slice(0, 1) : has
  const clusterIPs = first(spec.clusterIPs, old.clusterIPs)
  const ipFamilies = first(spec.ipFamilies, old.ipFamilies)
  return { ...spec, ...(clusterIPs && { clusterIPs }), ...(ipFamilies && { ipFamilies }) }
}

function withAddress(
  service: Service,
  spec: ServiceSpec,
  others: readonly Service[],
  { range, random }: AllocationFacts,
): ServiceSpec {
  if (spec.type === 'ExternalName' || spec.clusterIP === noClusterIP) return spec
  const inUse = new Set(others.flatMap((other) => other.spec?.clusterIPs ?? []))
  if (!isKubernetesService(service)) inUse.add(kubernetesServiceAddress(range))
  const asked = spec.clusterIP ?? ''
  if (asked === '') {
    const free = freeAddress(range, inUse, random)
    if (free === undefined) {
      refuse(service, [invalid('spec.clusterIPs', spec.clusterIPs ?? [], 'failed to allocate IP: range is full')])
    }
    return free === undefined ? spec : { ...spec, clusterIP: free, clusterIPs: [free] }
  }
  const problem = isUsable(asked, range)
    ? inUse.has(asked) && 'provided IP is already allocated'
    : `the provided IP (${asked}) is not in the valid range. The range of valid IPs is ${formatCidr(range)}`
  if (problem)
    refuse(service, [invalid('spec.clusterIPs', spec.clusterIPs, `failed to allocate IP ${asked}: ${problem}`)])
  return spec
}

/** The first and the last address of a range stay unused. */
function isUsable(ip: string, range: Cidr): boolean {
  const address = parseCidr(`${ip}/32`)?.first
  if (address === undefined) return false
  return address > range.first && address < range.first + sizeOfCidr(range) - 1
}

/** The lower part of the range is left to Services that ask for an address, as long as there are others (KEP-3070). */
function freeAddress(range: Cidr, inUse: ReadonlySet<string>, random: () => number): string | undefined {
  const usable = sizeOfCidr(range) - 2
  const forAsking = usable < 16 ? 0 : Math.min(Math.max(16, Math.floor(usable / 16)), 256)
  return (
    freeWithin(range.first + 1 + forAsking, usable - forAsking, inUse, random) ??
    freeWithin(range.first + 1, forAsking, inUse, random)
  )
}

/** From a random one of `count` addresses on, so that an address is not used again soon. */
function freeWithin(first: number, count: number, inUse: ReadonlySet<string>, random: () => number) {
  const start = Math.floor(random() * count)
  for (let step = 0; step < Math.min(count, inUse.size + 1); step++) {
    const address = formatIPv4(first + ((start + step) % count))
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
  const own = new Set<number>()
  const claim = (field: string, port: number) => {
    const valid = `${nodePorts.first}-${nodePorts.last}`
    const problem =
      port < nodePorts.first || port > nodePorts.last
        ? `provided port is not in the valid range. The range of valid ports is ${valid}`
        : inUse.has(port) && 'provided port is already allocated'
    if (problem) refuse(service, [invalid(field, port, problem)])
    own.add(port)
  }
  const choose = (): number => {
    const port = freeNodePort(new Set([...inUse, ...own]), random)
    if (port === undefined) throw invalidObject(resources.services, service.metadata.name ?? '', [noPortLeft])
    own.add(port)
    return port
  }
  const ports = spec.ports ?? []
  for (const [index, { nodePort = 0 }] of ports.entries()) {
    if (nodePort !== 0) claim(`spec.ports[${index}].nodePort`, nodePort)
  }
  const checks = needsHealthCheckPort(spec)
  if (checks && spec.healthCheckNodePort) claim('spec.healthCheckNodePort', spec.healthCheckNodePort)
  const health = checks && !spec.healthCheckNodePort ? { healthCheckNodePort: choose() } : {}
  if (!needsNodePorts(spec) || spec.allocateLoadBalancerNodePorts === false) return { ...spec, ...health }
  const complete: ServicePort[] = []
  for (const port of ports) {
    // One number for both protocols of a port, such as 53 over TCP and UDP (findRequestedNodePort).
    const twin = [...complete, ...ports].find((other) => other.port === port.port && other.protocol !== port.protocol)
    complete.push(port.nodePort ? port : { ...port, nodePort: twin?.nodePort || choose() })
  }
  return { ...spec, ...health, ports: complete }
}

const noPortLeft = invalid('spec.ports', [], 'failed to allocate a nodePort: range is full')

function nodePortsOf({ spec = {} }: Service): readonly number[] {
  const ports = (spec.ports ?? []).map(({ nodePort = 0 }) => nodePort)
  return [...ports, spec.healthCheckNodePort ?? 0].filter((port) => port !== 0)
}

function freeNodePort(inUse: ReadonlySet<number>, random: () => number): number | undefined {
  const count = nodePorts.last - nodePorts.first + 1
  const start = Math.floor(random() * count)
  for (let step = 0; step < count; step++) {
    const port = nodePorts.first + ((start + step) % count)
    if (!inUse.has(port)) return port
  }
  return undefined
}

function isSame({ metadata: one }: Service, { metadata: other }: Service): boolean {
  return one.name === other.name && one.namespace === other.namespace
}

function refuse({ metadata }: Service, problems: readonly Problem[]): void {
  if (problems.length > 0) throw invalidObject(resources.services, metadata.name ?? '', problems)
}
