/** What `bramble-agent network NAME` prints: where a packet of this node to a name or an address goes. */
import type { ServiceState } from '../../api/network/service-endpoints.ts'
import { rangeHas } from '../../api/text/address-block.ts'
import { canonicalIPv6, hostPort, isIPv4 } from '../../api/text/ip-address.ts'
import { zoneQuestion } from './names/zone-question.ts'
import { lostWays, nodeOfPod, type PathEnd, type PathFindings, placeOfAddress } from './path-ends.ts'
import { ipv4Rules, ipv6Rules, type RuleFamily } from './rule-family.ts'
import { inIPv6 } from './services/ipv6-services.ts'
import { endpointsOf, type NodePlace, type PortEndpoint, usableEndpoints } from './services/usable-endpoints.ts'
import { textColumns } from './text-columns.ts'

export type NetworkPath = {
  readonly name: string
  /** What it is, as a sentence without its full stop. */
  readonly meaning: string
  readonly ends: readonly PathEnd[]
  /** Why packets do not arrive, as sentences. */
  readonly problems: readonly string[]
}

/**
 * `name`: `NAMESPACE/SERVICE`, a DNS name with or without the domain of the fleet, `SERVICE` of the namespace `default`, the name of
 * a node, or an address. undefined: the fleet has nothing of this name.
 */
export function networkPath(name: string, findings: PathFindings): NetworkPath | undefined {
  const plain = name.toLowerCase().replace(/\.$/, '')
  const address = isIPv4(plain) ? plain : canonicalIPv6(plain)
  if (address !== undefined) return pathToAddress(address, findings)
  const { message } = findings
  for (const candidate of candidates(plain, message.clusterDomain)) {
    const path = pathToName(candidate, findings)
    if (path !== undefined) return { ...path, name }
  }
  const node = message.nodes.find((one) => one.name === plain)
  return node && { ...pathToNode(node.name, findings), name }
}

/** `dnsName` is complete: no search domain is added. */
function pathToName(dnsName: string, findings: PathFindings): NetworkPath | undefined {
  const { message, services } = findings
  const question = zoneQuestion(dnsName, message.clusterDomain)
  switch (question?.of) {
    case 'pod':
      return pathToAddress(question.address, findings)
    case 'node':
      return message.nodes.some((one) => one.name === question.node) ? pathToNode(question.node, findings) : undefined
    case 'service':
    case 'endpoint': {
      const service = services.find((one) => one.namespace === question.namespace && one.name === question.service)
      const endpoint = question.of === 'endpoint' ? question.endpoint : undefined
      return service && pathToService(dnsName, service, endpoint, findings)
    }
    default:
      return undefined
  }
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
  const parts = partsOf(service)
  const isOne = (ip: string) => endpoint === undefined || endpointNames(parts, ip).includes(endpoint)
  const isHeadless = parts.every(({ state }) => state.clusterIPs.length === 0)
  const addresses = parts.flatMap(({ state }) => state.clusterIPs).join(', ')
  const address = isHeadless ? 'headless: its names lead to its endpoints' : `address ${addresses}`
  const others = parts.flatMap(({ state }) => [...(state.externalIPs ?? []), ...(state.loadBalancerIPs ?? [])])
  const outside = others.length === 0 ? '' : `, also ${others.join(', ')}`
  const found = parts.map((part) => ({ part, ends: endsOf(part, isHeadless, isOne, findings) }))
  const ends = found.flatMap((one) => one.ends)
  return {
    name,
    meaning: `Service ${title}, ${address}${outside}`,
    ends,
    problems: [...found.flatMap((one) => withoutEnds(one.part, isHeadless, one.ends)), ...lostWays(ends, findings)],
  }
}

/** A Service as it is in one family. */
type ServicePart = { readonly state: ServiceState; readonly family: RuleFamily }

/** Those with an address or endpoints; that of IPv4 if there is none. */
function partsOf(service: ServiceState): readonly ServicePart[] {
  const ofIPv4: ServicePart = { state: service, family: ipv4Rules }
  const ipv6 = inIPv6(service)
  const all = [ofIPv4, ...(ipv6 === undefined ? [] : [{ state: ipv6, family: ipv6Rules }])]
  const used = all.filter(({ state }) => state.clusterIPs.length + state.endpoints.length > 0)
  return used.length > 0 ? used : [ofIPv4]
}

function endsOf(
  { state, family }: ServicePart,
  isHeadless: boolean,
  isOne: (ip: string) => boolean,
  findings: PathFindings,
): readonly PathEnd[] {
  const place = placeOfNode(findings, family)
  if (state.ports.length === 0)
    return state.endpoints.flatMap(({ addresses }) =>
      addresses
        .filter(({ ip }) => isOne(ip))
        .map(({ ip, ready }): PathEnd => ({ address: ip, ...placeOfAddress(ip, findings), used: ready })),
    )
  return state.ports.flatMap((port) => {
    const all = endpointsOf(state, port, place).filter(({ ip }) => isOne(ip))
    const used = new Set(isHeadless ? all.filter(({ ready }) => ready) : usedOf(state, all, place))
    return all.map((one): PathEnd => {
      const address = hostPort(one.ip, one.port)
      return {
        port: `${port.port}/${port.protocol}`,
        address,
        ...placeOfAddress(one.ip, findings),
        used: used.has(one),
      }
    })
  })
}

function usedOf(service: ServiceState, all: readonly PortEndpoint[], place: NodePlace) {
  const isLocal = service.internalTrafficPolicy === 'Local'
  const usable = usableEndpoints(all, { cluster: !isLocal, local: isLocal }, place)
  return isLocal ? usable.local : usable.cluster
}

function placeOfNode({ message, report, silentNodes }: PathFindings, family: RuleFamily): NodePlace {
  const zone = message.nodes.find(({ name }) => name === report.node)?.zone ?? ''
  const silent = family.family === 'IPv4' ? silentNodes?.ipv4 : silentNodes?.ipv6
  return { nodeName: report.node, zone, silentNodes: silent ?? [], family }
}

function withoutEnds({ state, family }: ServicePart, isHeadless: boolean, ends: readonly PathEnd[]): readonly string[] {
  if (ends.some(({ used }) => used)) return []
  const none = family.family === 'IPv4' ? 'No endpoint' : 'No IPv6 endpoint'
  if (isHeadless) return [`${none} is ready: its names have no addresses`]
  if (state.internalTrafficPolicy === 'Local' && ends.length > 0)
    return [`${none} on this node is ready, and internalTrafficPolicy is Local: connections of this node are dropped`]
  return [`${none} is ready: connections are refused`]
}

/** The host name of an endpoint, and the name that its address gives it. */
function endpointNames(parts: readonly ServicePart[], ip: string): readonly string[] {
  const all = parts.flatMap(({ state }) => state.endpoints.flatMap(({ addresses }) => addresses))
  const own = all.filter((one) => one.ip === ip)
  return [ip.replaceAll(/[.:]/g, '-'), ...own.flatMap(({ hostname }) => hostname ?? [])]
}

function pathToAddress(address: string, findings: PathFindings): NetworkPath {
  const { services, message } = findings
  const service = services.find((one) =>
    partsOf(one).some(({ state: { clusterIPs, externalIPs = [], loadBalancerIPs = [] } }) =>
      [...clusterIPs, ...externalIPs, ...loadBalancerIPs].includes(address),
    ),
  )
  if (service !== undefined) return pathToService(address, service, undefined, findings)
  const node = message.nodes.find((one) => one.address === address || one.ipv6?.address === address)
  if (node !== undefined) return { ...pathToNode(node.name, findings), name: address }
  const serviceRange = [message.serviceCIDR, message.ipv6?.serviceCIDR ?? ''].find((range) => rangeHas(range, address))
  if (serviceRange !== undefined) {
    const problems = ['No Service has this address: packets to it are dropped']
    return { name: address, meaning: `an address of the range of Services ${serviceRange}`, ends: [], problems }
  }
  const end: PathEnd = { address, ...placeOfAddress(address, findings), used: true }
  if (![message.clusterCIDR, message.ipv6?.clusterCIDR ?? ''].some((range) => rangeHas(range, address)))
    return { name: address, meaning: 'an address outside of the fleet', ends: [end], problems: [] }
  const pods = services.flatMap(({ namespace, endpoints, ipv6 }) =>
    [...endpoints, ...(ipv6?.endpoints ?? [])].flatMap(({ addresses }) =>
      addresses.flatMap(({ ip, pod }) => (ip === address && pod !== undefined ? [`${namespace}/${pod}`] : [])),
    ),
  )
  const problems =
    nodeOfPod(address, findings) === undefined
      ? ['No node has a range for pods with this address']
      : lostWays([end], findings)
  return {
    name: address,
    meaning: pods[0] === undefined ? 'an address of a pod' : `pod ${pods[0]}`,
    ends: [end],
    problems,
  }
}

/** One end for each address of the node. */
function pathToNode(node: string, findings: PathFindings): NetworkPath {
  const found = findings.message.nodes.find(({ name }) => name === node)
  const addresses = [found?.address ?? '', found?.ipv6?.address ?? []].flat()
  const ends = addresses.map((address): PathEnd => ({ address, ...placeOfAddress(address, findings), used: true }))
  return { name: node, meaning: `node ${node}`, ends, problems: [] }
}

export function pathText({ name, meaning, ends, problems }: NetworkPath): string {
  const rows = ends.map(({ port = '-', address, node, way, used }) => [port, address, node, used ? 'yes' : 'no', way])
  const table = ends.length === 0 ? [] : ['', ...textColumns([['PORT', 'TO', 'NODE', 'USED', 'BY'], ...rows])]
  const found = problems.length === 0 ? [] : ['', 'Problems:', ...problems.map((problem) => `- ${problem}`)]
  return `${[`${name}: ${meaning}`, ...table, ...found].join('\n')}\n`
}
