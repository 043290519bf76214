/**
 * The names of the fleet: Services, their endpoints, pods and nodes (Kubernetes DNS-Based Service Discovery 1.1.0). Where that leaves
 * a choice, the answer is that of CoreDNS' kubernetes plugin (plugin/kubernetes/kubernetes.go).
 */
import { nodeDnsAddress } from '../../../api/network/cluster-dns.ts'
import type { NetworkMessage } from '../../../api/network/pod-network.ts'
import type { EndpointAddressState, ServiceState } from '../../../api/network/service-endpoints.ts'
import { rangeHas } from '../../../api/text/address-block.ts'
import { ipVersion } from '../../../api/text/ip-address.ts'
import { type DnsCode, dnsCodes, dnsTypes } from './dns-query.ts'
import type { DnsRecord } from './dns-response.ts'
import { serviceIndex } from './service-index.ts'
import { reverseQuestion, type ZoneQuestion, zoneQuestion } from './zone-question.ts'

export type ZoneAnswer = {
  readonly code: DnsCode
  readonly answers: readonly DnsRecord[]
  readonly additional: readonly DnsRecord[]
  /** SOA of an answer without records: it limits how long clients may keep that answer. */
  readonly authorities: readonly DnsRecord[]
  /** The name that the last record of `answers` is an alias for, outside of the domain: another server has its address. */
  readonly target?: string
}

export type ZoneFacts = {
  readonly network: NetworkMessage
  /** By `namespace/name`. */
  readonly services: ReadonlyMap<string, ServiceState>
  /** A Service that `services` lacks does not exist. False: whether it does is not known yet. */
  readonly isComplete: boolean
  /** Serial of the SOA; each change of the zone raises it. */
  readonly serial: number
}

export interface Zone {
  /** undefined: the name is not one of the fleet's. `name`: in lower case, without a final dot; `type`: a number of DNS. */
  answer(name: string, type: number): ZoneAnswer | undefined
}

/** Seconds; the default of the plugin. Answers come from the node itself, so that caches save little and delay changes. */
const ttl = 5
const schemaVersion = '1.1.0'
const schemaTtl = 28_800
/** Refresh, retry and expiry are for secondary servers, which this zone does not have. */
const soaTimes = [7_200, 1_800, 86_400] as const
/** A chain of aliases that is longer, or a circle, ends without an address. */
const mostAliases = 8

/** Costs nothing until the first question that needs the index of addresses. */
export function clusterZone(facts: ZoneFacts): Zone {
  const { network, services, isComplete, serial } = facts
  const { clusterDomain: domain } = network
  const index = serviceIndex(services)
  const nodes = new Map(network.nodes.map(({ name, address, ipv6 }) => [name, [address, ipv6?.address ?? []].flat()]))
  const nodeAddresses = new Set([...nodes.values()].flat())
  const numbers = [serial, ...soaTimes, ttl]
  const soa = (name: string): DnsRecord => {
    const [server, mailbox] = [`ns.dns.${domain}`, `hostmaster.${domain}`]
    return { type: 'SOA', name, ttl, server, mailbox, numbers }
  }
  const without = (code: DnsCode, zone = domain): ZoneAnswer =>
    code === dnsCodes.nameError && !isComplete
      ? { code: dnsCodes.serverFailure, answers: [], additional: [], authorities: [] }
      : { code, answers: [], additional: [], authorities: [soa(zone)] }
  const withRecords = (answers: readonly DnsRecord[], additional: readonly DnsRecord[] = []): ZoneAnswer =>
    answers.length === 0 ? without(dnsCodes.noError) : { code: dnsCodes.noError, answers, additional, authorities: [] }

  const answerService = (question: ServiceQuestion, type: number, aliases: number): ZoneAnswer => {
    const service = services.get(`${question.namespace}/${question.service}`)
    if (service === undefined) return without(dnsCodes.nameError)
    if (service.type === 'ExternalName') {
      const target = (service.externalName ?? '').toLowerCase().replace(/\.$/, '')
      // An address cannot be the target of an alias.
      if (question.of !== 'service' || target === '' || ipVersion(target)) return without(dnsCodes.nameError)
      return answerAlias(target, type, aliases)
    }
    const found = placesOf(service, question, domain)
    if (found.length === 0) return without(dnsCodes.nameError)
    if (type !== dnsTypes.SRV) {
      return withRecords(
        addressRecords(
          found.map(({ address }) => address),
          type,
        ),
      )
    }
    const targets = new Map(found.map(({ address, target }) => [`${target} ${address}`, { address, target }]))
    return withRecords(
      serviceRecords(found),
      [...targets.values()].map(({ address, target }) => ({ ...addressRecord(address), name: target })),
    )
  }

  const answerAlias = (target: string, type: number, aliases: number): ZoneAnswer => {
    const isAsked = type === dnsTypes.A || type === dnsTypes.AAAA || type === dnsTypes.CNAME
    if (!isAsked) return without(dnsCodes.noError)
    const alias: DnsRecord = { type: 'CNAME', ttl, target }
    if (type === dnsTypes.CNAME || aliases >= mostAliases) return withRecords([alias])
    const question = zoneQuestion(target, domain)
    if (question === undefined) return { ...withRecords([alias]), target }
    const next = answerQuestion(question, type, aliases + 1)
    const rest = next.answers.map((record) => ({ name: target, ...record }))
    return { ...withRecords([alias, ...rest]), ...(next.target !== undefined && { target: next.target }) }
  }

  const answerQuestion = (question: ZoneQuestion, type: number, aliases: number): ZoneAnswer => {
    const addressed = (addresses: readonly string[] | undefined) =>
      addresses === undefined ? without(dnsCodes.nameError) : withRecords(addressRecords(addresses, type))
    switch (question.of) {
      case 'apex':
        return type === dnsTypes.SOA ? withRecords([soa(domain)]) : withRecords(...delegation(type, domain))
      case 'branch':
        return without(dnsCodes.noError)
      case 'schema':
        return withRecords(type === dnsTypes.TXT ? [{ type: 'TXT', ttl: schemaTtl, text: schemaVersion }] : [])
      case 'server':
        return addressed([nodeDnsAddress])
      case 'namespace':
        return without(index.hasNamespace(question.namespace) ? dnsCodes.noError : dnsCodes.nameError)
      case 'pod':
        return addressed(isPodAddress(question.address, network, nodeAddresses) ? [question.address] : undefined)
      case 'node':
        return addressed(nodes.get(question.node))
      case 'nothing':
        return without(dnsCodes.nameError)
      case 'service':
      case 'endpoint':
      case 'port':
        return answerService(question, type, aliases)
    }
  }

  return {
    answer(name, type) {
      const question = zoneQuestion(name, domain)
      if (question !== undefined) return answerQuestion(question, type, 0)
      const reverse = reverseQuestion(name)
      if (reverse === undefined || !isOfFleet(reverse.address, network)) return undefined
      const names = index.namesOf(reverse.address).map((one) => `${one}.svc.${domain}`)
      if (names.length === 0) return without(dnsCodes.nameError, reverse.zone)
      if (type !== dnsTypes.PTR) return without(dnsCodes.noError, reverse.zone)
      return withRecords(names.map((target) => ({ type: 'PTR', ttl, target })))
    },
  }
}

type ServiceQuestion = Extract<ZoneQuestion, { readonly of: 'service' | 'endpoint' | 'port' }>

/** `port`: undefined where the Service has none. `target`: the name that has the address. */
type Place = { readonly address: string; readonly port: number | undefined; readonly target: string }

/** Ports of a Service with its own address; ports of the ready endpoints for a headless Service or a named endpoint. */
function placesOf(service: ServiceState, question: ServiceQuestion, domain: string): readonly Place[] {
  const name = `${service.name}.${service.namespace}.svc.${domain}`
  const isWanted = (port: { readonly name?: string; readonly protocol: string }) =>
    question.of !== 'port' || (question.port === (port.name ?? '') && question.protocol === port.protocol.toLowerCase())
  const portsOf = <T extends { readonly name?: string; readonly port: number; readonly protocol: string }>(
    ports: readonly T[],
  ) => {
    const numbers = ports.filter(isWanted).map(({ port }) => port)
    return ports.length === 0 && question.of !== 'port' ? [undefined] : numbers
  }
  const clusterIPs = [...service.clusterIPs, ...(service.ipv6?.clusterIPs ?? [])]
  if (clusterIPs.length > 0 && question.of !== 'endpoint') {
    const ports = portsOf(service.ports)
    return clusterIPs.flatMap((address) => ports.map((port) => ({ address, port, target: name })))
  }
  return [...service.endpoints, ...(service.ipv6?.endpoints ?? [])].flatMap(({ ports, addresses }) => {
    const numbers = portsOf(ports)
    return addresses
      .filter((one) => one.ready && (question.of !== 'endpoint' || endpointName(one) === question.endpoint))
      .flatMap((one) => numbers.map((port) => ({ address: one.ip, port, target: `${endpointName(one)}.${name}` })))
  })
}

/** The host name of the pod, or its address: `10-244-1-5`, `fd00-10-244-1--5`. */
function endpointName({ hostname, ip }: EndpointAddressState): string {
  return hostname || ip.replaceAll(/[.:]/g, '-')
}

/** Records of the requested type, each once: A for IPv4 addresses, AAAA for IPv6 addresses. */
function addressRecords(addresses: readonly string[], type: number): readonly DnsRecord[] {
  return [...new Set(addresses)].map(addressRecord).filter((record) => dnsTypes[record.type] === type)
}

function addressRecord(address: string) {
  return { type: address.includes(':') ? 'AAAA' : 'A', ttl, address } as const
}

/** All have the same share, as those of CoreDNS. */
function serviceRecords(places: readonly Place[]): readonly DnsRecord[] {
  const weight = Math.max(1, Math.floor(100 / places.length))
  const unique = new Map(places.map(({ port, target }) => [`${port} ${target}`, { port, target }]))
  return [...unique.values()].flatMap(({ port, target }) =>
    port === undefined ? [] : [{ type: 'SRV' as const, ttl, priority: 0, weight, port, target }],
  )
}

function serverRecords(domain: string): [answers: DnsRecord[], additional: DnsRecord[]] {
  const target = `ns.dns.${domain}`
  return [[{ type: 'NS', ttl, target }], [{ type: 'A', name: target, ttl, address: nodeDnsAddress }]]
}

function isOfFleet(address: string, { clusterCIDR, serviceCIDR, ipv6 }: NetworkMessage): boolean {
  const ranges = [clusterCIDR, serviceCIDR, ...(ipv6 === undefined ? [] : [ipv6.clusterCIDR, ipv6.serviceCIDR])]
  return isAddress(address) && ranges.some((range) => rangeHas(range, address))
}

/** A pod has an address of the fleet, or that of its node. Other addresses have no names here, so that the domain names no stranger. */
function isPodAddress(address: string, { clusterCIDR, ipv6 }: NetworkMessage, nodes: ReadonlySet<string>): boolean {
  const range = address.includes(':') ? (ipv6?.clusterCIDR ?? '') : clusterCIDR
  return isAddress(address) && (rangeHas(range, address) || nodes.has(address))
}

function isAddress(text: string): boolean {
  return ipVersion(text) !== undefined
}

/** The name servers of the domain, where they are asked for. */
function delegation(type: number, domain: string): ReturnType<typeof serverRecords> {
  return type === dnsTypes.NS ? serverRecords(domain) : [[], []]
}
