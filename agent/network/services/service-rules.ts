/** What one Service adds to the table of rules on this node (behaviour: pkg/proxy/nftables/proxier.go). */
import type { ServiceState } from '../../../api/network/service-endpoints.ts'
import { rangeHas } from '../../../api/text/address-block.ts'
import type { ControllerSocket } from './controller-addresses.ts'
import { endpointChains } from './endpoint-chains.ts'
import { addressesOf, isLabel, rangesOf } from './rule-text.ts'
import { chainOf, joinPieces, masqueradeLater, noPiece, rejectChain, type ServicePiece } from './service-piece.ts'
import { endpointsOf, isPortNumber, type NodePlace, usableEndpoints } from './usable-endpoints.ts'

/** What the rules depend on besides the Services. */
export type ServiceNode = NodePlace & {
  /** Range of the pods of the fleet. */
  readonly clusterCIDR: string
  /** Range of the addresses of Services. */
  readonly serviceCIDR: string
  /** Addresses of this node. */
  readonly addresses: readonly string[]
  /** Default: none. */
  readonly controllers?: readonly ControllerSocket[]
}

type Policy = 'Cluster' | 'Local'

/** A way to a port: from the ClusterIP, or from addresses and ports that clients outside the fleet use. */
type Entry = {
  /** Name of the port: `shop/web/tcp/80`. */
  readonly name: string
  readonly policy: Policy
  /** This node may send packets somewhere. */
  readonly usable: boolean
  /** Some node may. */
  readonly exist: boolean
}

/** Nothing for a Service whose address no packet has: it is headless, a name only, or not of the family; nor for one of another proxy. */
export function serviceRules(service: ServiceState, node: ServiceNode): ServicePiece {
  const { family } = node
  const [clusterIP] = addressesOf(family, service.clusterIPs)
  if (clusterIP === undefined || service.type === 'ExternalName' || service.proxiedElsewhere) return noPiece
  if (!isLabel(service.namespace) || !isLabel(service.name)) return noPiece
  const ports = service.ports.filter(({ port }) => isPortNumber(port))
  return joinPieces([
    { ...noPiece, elements: [['cluster-ips', clusterIP, '']] },
    ...ports.map((port) => portRules(service, port, clusterIP, node)),
  ])
}

function portRules(
  service: ServiceState,
  given: ServiceState['ports'][number],
  clusterIP: string,
  node: ServiceNode,
): ServicePiece {
  const { internalTrafficPolicy, externalTrafficPolicy } = service
  const { family } = node
  const protocol = given.protocol === 'UDP' ? 'udp' : 'tcp'
  const name = `${service.namespace}/${service.name}/${protocol}/${given.port}`
  const mayClaim = (ip: string) => isClaimable(ip, protocol, given.port, node)
  const balancers = service.type === 'LoadBalancer' ? addressesOf(family, service.loadBalancerIPs).filter(mayClaim) : []
  const addresses = [...new Set([...addressesOf(family, service.externalIPs).filter(mayClaim), ...balancers])]
  const isExternal = addresses.length > 0 || isPortNumber(given.nodePort)
  const endpoints = endpointsOf(service, given, node)
  const usable = usableEndpoints(
    endpoints,
    {
      cluster: internalTrafficPolicy === 'Cluster' || isExternal,
      local: internalTrafficPolicy === 'Local' || (externalTrafficPolicy === 'Local' && isExternal),
    },
    node,
  )
  const entry = (policy: Policy): Entry => ({
    name,
    policy,
    usable: usable.exist && (policy === 'Cluster' || usable.local.length > 0),
    exist: usable.exist,
  })
  const external = entry(externalTrafficPolicy)
  const keyOf = (ip: string) => `${ip} . ${protocol} . ${given.port}`
  return joinPieces([
    endpointChains({ name, protocol, affinitySeconds: service.affinitySeconds, family }, usable),
    internalEntry(keyOf(clusterIP), entry(internalTrafficPolicy)),
    isExternal && usable.exist ? externalChain(external, node) : noPiece,
    ...addresses.map((ip) => externalEntry('service-ips', 'no-endpoint-services', keyOf(ip), external)),
    isPortNumber(given.nodePort)
      ? externalEntry('service-nodeports', 'no-endpoint-nodeports', `${protocol} . ${given.nodePort}`, external)
      : noPiece,
    firewall(name, balancers, keyOf, service.sourceRanges, node),
  ])
}

/**
 * As an external address. Packets to the range of Services belong to the Service that was given the address; a node that lost its
 * controllers to a Service would never receive that the Service is gone.
 */
function isClaimable(
  ip: string,
  protocol: string,
  port: number,
  { serviceCIDR, controllers = [] }: ServiceNode,
): boolean {
  return !rangeHas(serviceCIDR, ip) && !(protocol === 'tcp' && controllers.includes(`${ip}:${port}`))
}

function internalEntry(key: string, entry: Entry): ServicePiece {
  if (!entry.usable) return { ...noPiece, elements: [['no-endpoint-services', key, refusal(entry)]] }
  const chain = chainOf(entry.policy === 'Local' ? 'local' : 'cluster', entry.name)
  return { ...noPiece, elements: [['service-ips', key, `goto ${chain}`]] }
}

/** Pods and nodes use a Local Service also where this node has no endpoint: both verdicts stand, that of the chain comes first. */
function externalEntry(
  used: 'service-ips' | 'service-nodeports',
  refused: 'no-endpoint-services' | 'no-endpoint-nodeports',
  key: string,
  entry: Entry,
): ServicePiece {
  return {
    ...noPiece,
    elements: [
      ...(entry.exist ? [[used, key, `goto ${chainOf('external', entry.name)}`] as const] : []),
      ...(entry.usable ? [] : [[refused, key, refusal(entry)] as const]),
    ],
  }
}

/** Without any endpoint clients are refused at once; where only other nodes have endpoints, a Local policy drops. */
function refusal({ exist }: Entry): string {
  return exist ? 'drop' : `goto ${rejectChain}`
}

/**
 * Cluster: the endpoint may be on another node, so that answers have to come back through this one. Local: the address of the
 * client is kept; pods, and the node itself, use all endpoints, as if a load balancer outside had received their packets.
 */
function externalChain({ name, policy, usable }: Entry, { clusterCIDR, family }: ServiceNode): ServicePiece {
  const toAll = `goto ${chainOf('cluster', name)}`
  const rules =
    policy === 'Cluster'
      ? [masqueradeLater, toAll]
      : [
          `${family.ip} saddr ${clusterCIDR} ${toAll}`,
          `fib saddr type local ${masqueradeLater}`,
          `fib saddr type local ${toAll}`,
          ...(usable ? [`goto ${chainOf('local', name)}`] : []),
        ]
  return { ...noPiece, chains: [[chainOf('external', name), { rules }]] }
}

/**
 * The addresses of a load balancer admit its source ranges only. A node with such an address sends to it from it: ranges that
 * contain the node admit that too.
 */
function firewall(
  name: string,
  balancers: readonly string[],
  keyOf: (ip: string) => string,
  sourceRanges: readonly string[] | undefined,
  { addresses, family }: ServiceNode,
): ServicePiece {
  const ranges = rangesOf(family, sourceRanges)
  // The controller leaves out ranges of the other family; where all are, it sends one that no client has (serviceState).
  if (balancers.length === 0 || ranges.length === 0 || ranges.some((range) => range.endsWith('/0'))) return noPiece
  const hasNode = ranges.some((range) => addresses.some((ip) => rangeHas(range, ip)))
  const sources = [...ranges, ...(hasNode ? balancers : [])]
  const chain = chainOf('firewall', name)
  return {
    ...noPiece,
    chains: [[chain, { rules: [...sources.map((source) => `${family.ip} saddr ${source} return`), 'drop'] }]],
    elements: balancers.map((ip) => ['firewall-ips', keyOf(ip), `goto ${chain}`] as const),
  }
}
