/** What `bramble-agent network NAME` prints: where a packet of this node to a name or an address goes. */
import type { NetworkMessage } from '../../api/network/pod-network.ts'
import type { ServiceState } from '../../api/network/service-endpoints.ts'
import { isWithin } from '../../api/text/cidr.ts'
import { isIPv4 } from '../../api/text/ip-address.ts'
import { zoneQuestion } from './names/zone-question.ts'
import type { NetworkReport, NodeRoute } from './network-report.ts'
import { endpointsOf, type NodePlace, type PortEndpoint, usableEndpoints } from './services/usable-endpoints.ts'
import { textColumns } from './text-columns.ts'

export type PathFindings = {
  readonly message: NetworkMessage
  /** Of the checkpoint. */
  readonly services: readonly ServiceState[]
  readonly report: NetworkReport
}

export type NetworkPath = {
  readonly name: string
  /** What it is, as a sentence without its full stop. */
  readonly meaning: string
  readonly ends: readonly PathEnd[]
  /** Why packets do not arrive, as sentences. */
  readonly problems: readonly string[]
}

/** One of the places that a connection may be led to. */
export type PathEnd = {
  /** Of the Service: `80/TCP`; undefined: the packet keeps its port. */
  readonly port?: string
  /** `10.244.1.5:8080`, or an address alone. */
  readonly address: string
  readonly node: string
  readonly way: string
  /** This node leads connections there. */
  readonly used: boolean
}

/**
 * `name`: `NAMESPACE/SERVICE`, a name of DNS with or without the domain of the fleet, `SERVICE` of the namespace `default`, the name of
 * a node, or an address. undefined: the fleet has nothing of this name.
 */
export function networkPath(name: string, findings: PathFindings): NetworkPath | undefined {
  const plain = name.toLowerCase().replace(/\.$/, '')
  if (isIPv4(plain)) return pathToAddress(plain, findings)
  const { message, services } = findings
  const node = message.nodes.find((one) => one.name === plain)
  for (const candidate of candidates(plain, message.clusterDomain)) {
    const question = zoneQuestion(candidate, message.clusterDomain)
    if (question?.of === 'pod') return { ...pathToAddress(question.address, findings), name }
    if (question?.of === 'node' && message.nodes.some((one) => one.name === question.node))
      return { ...pathToNode(question.node, findings), name }
    if (question?.of !== 'service' && question?.of !== 'endpoint') continue
    const service = services.find((one) => one.namespace === question.namespace && one.name === question.service)
    if (service === undefined) continue
    return pathToService(name, service, question.of === 'endpoint' ? question.endpoint : undefined, findings)
  }
  return node && { ...pathToNode(node.name, findings), name }
}

/** Names of DNS, complete, in the order of the search domains of a pod of `default`. */
function candidates(name: string, domain: string): readonly string[] {
  if (name.includes('/')) {
    const [namespace = '', service = ''] = name.split('/')
    return [`${service}.${namespace}.svc.${domain}`]
  }
  return [name, `${name}.default.svc.${domain}`, `${name}.svc.${domain}`, `${name}.${domain}`]
}

function pathToService(
  name: string,
  service: ServiceState,
  endpoint: string | undefined,
  findings: PathFindings,
): NetworkPath {
  const title = `${service.namespace}/${service.name}`
  if (service.type === 'ExternalName')
    return { name, meaning: `Service ${title}, an alias for ${service.externalName ?? ''}`, ends: [], problems: [] }
  const isHeadless = service.clusterIPs.length === 0
  const isOne = (ip: string) => endpoint === undefined || endpointNames(service, ip).includes(endpoint)
  const ends = service.ports.flatMap((port) => {
    const all = endpointsOf(service, port, placeOfNode(findings)).filter(({ ip }) => isOne(ip))
    const used = new Set(isHeadless ? all.filter(({ ready }) => ready) : usedOf(service, all, findings))
    return all.map((one): PathEnd => {
      const [number, address] = [`${port.port}/${port.protocol}`, `${one.ip}:${one.port}`]
      return { port: number, address, ...placeOf(one.ip, findings), used: used.has(one) }
    })
  })
  const withoutPorts = service.endpoints.flatMap(({ addresses }) =>
    service.ports.length > 0
      ? []
      : addresses
          .filter(({ ip }) => isOne(ip))
          .map(({ ip, ready }): PathEnd => ({ address: ip, ...placeOf(ip, findings), used: ready })),
  )
  const address = isHeadless ? 'headless: its names lead to its endpoints' : `address ${service.clusterIPs.join(', ')}`
  const others = [...(service.externalIPs ?? []), ...(service.loadBalancerIPs ?? [])]
  const outside = others.length === 0 ? '' : `, also ${others.join(', ')}`
  return {
    name,
    meaning: `Service ${title}, ${address}${outside}`,
    ends: [...ends, ...withoutPorts],
    problems: [...withoutEnds(service, [...ends, ...withoutPorts]), ...lost([...ends, ...withoutPorts], findings)],
  }
}

function usedOf(service: ServiceState, all: readonly PortEndpoint[], findings: PathFindings) {
  const isLocal = service.internalTrafficPolicy === 'Local'
  const usable = usableEndpoints(all, { cluster: !isLocal, local: isLocal }, placeOfNode(findings))
  return isLocal ? usable.local : usable.cluster
}

function placeOfNode({ message, report }: PathFindings): NodePlace {
  return { nodeName: report.node, zone: message.nodes.find(({ name }) => name === report.node)?.zone ?? '' }
}

function withoutEnds({ internalTrafficPolicy, clusterIPs }: ServiceState, ends: readonly PathEnd[]): readonly string[] {
  if (ends.some(({ used }) => used)) return []
  if (clusterIPs.length === 0) return ['No endpoint is ready: its names have no addresses']
  if (internalTrafficPolicy === 'Local' && ends.length > 0)
    return [
      'No endpoint on this node is ready, and internalTrafficPolicy is Local: connections of this node are dropped',
    ]
  return ['No endpoint is ready: connections are refused']
}

/** The host name of an endpoint, and the name that its address gives it. */
function endpointNames(service: ServiceState, ip: string): readonly string[] {
  const own = service.endpoints.flatMap(({ addresses }) => addresses.filter((one) => one.ip === ip))
  return [ip.replaceAll('.', '-'), ...own.flatMap(({ hostname }) => hostname ?? [])]
}

function pathToAddress(address: string, findings: PathFindings): NetworkPath {
  const { services, message, report } = findings
  const service = services.find(({ clusterIPs, externalIPs = [], loadBalancerIPs = [] }) =>
    [...clusterIPs, ...externalIPs, ...loadBalancerIPs].includes(address),
  )
  if (service !== undefined) return pathToService(address, service, undefined, findings)
  const node = message.nodes.find((one) => one.address === address)
  if (node !== undefined) return { ...pathToNode(node.name, findings), name: address }
  if (isWithin(address, message.serviceCIDR)) {
    const problems = ['No Service has this address: packets to it are dropped']
    return { name: address, meaning: `an address of the range of Services ${message.serviceCIDR}`, ends: [], problems }
  }
  const end: PathEnd = { address, ...placeOf(address, findings), used: true }
  if (!isWithin(address, message.clusterCIDR))
    return { name: address, meaning: 'an address outside of the fleet', ends: [end], problems: [] }
  const pods = services.flatMap(({ namespace, endpoints }) =>
    endpoints.flatMap(({ addresses }) =>
      addresses.flatMap(({ ip, pod }) => (ip === address && pod !== undefined ? [`${namespace}/${pod}`] : [])),
    ),
  )
  const isOwned = (report.network?.nodes ?? []).some(({ podCIDR }) => isWithin(address, podCIDR))
  const problems = isOwned ? lost([end], findings) : ['No node has a range for pods with this address']
  return {
    name: address,
    meaning: pods[0] === undefined ? 'an address of a pod' : `pod ${pods[0]}`,
    ends: [end],
    problems,
  }
}

function pathToNode(node: string, findings: PathFindings): NetworkPath {
  const address = findings.message.nodes.find(({ name }) => name === node)?.address ?? ''
  const end: PathEnd = { address, ...placeOf(address, findings), used: true }
  return { name: node, meaning: `node ${node}`, ends: [end], problems: [] }
}

function placeOf(ip: string, { message, report }: PathFindings): Pick<PathEnd, 'node' | 'way'> {
  const route = report.network?.nodes.find(({ podCIDR }) => isWithin(ip, podCIDR))
  if (route !== undefined) return { node: route.name, way: wayText(route) }
  const node = message.nodes.find(({ address }) => address === ip)
  if (node !== undefined)
    return { node: node.name, way: node.name === report.node ? 'this node' : 'network of the machine' }
  return { node: '-', way: 'network of the machine' }
}

function wayText({ way, address, relay, state }: NodeRoute): string {
  if (state === 'this node') return state
  const by = { route: `route by ${address}`, tunnel: 'VXLAN', wireguard: 'WireGuard', none: 'none' }[way]
  const whole = relay === undefined ? by : `WireGuard by ${relay}`
  return state === 'in place' ? whole : `${whole} (${state})`
}

/** The used ends whose nodes are not reached. */
function lost(ends: readonly PathEnd[], { report }: PathFindings): readonly string[] {
  const used = new Set(ends.flatMap(({ node, used: isUsed }) => (isUsed ? [node] : [])))
  return (report.network?.nodes ?? [])
    .filter(({ name, state }) => used.has(name) && state !== 'this node' && state !== 'in place')
    .map(({ name, state }) => `The way to the pods of ${name} is not whole: ${state}`)
}

export function pathText({ name, meaning, ends, problems }: NetworkPath): string {
  const rows = ends.map(({ port = '-', address, node, way, used }) => [port, address, node, used ? 'yes' : 'no', way])
  const table = ends.length === 0 ? [] : ['', ...textColumns([['PORT', 'TO', 'NODE', 'USED', 'BY'], ...rows])]
  const found = problems.length === 0 ? [] : ['', 'Problems:', ...problems.map((problem) => `- ${problem}`)]
  return `${[`${name}: ${meaning}`, ...table, ...found].join('\n')}\n`
}
