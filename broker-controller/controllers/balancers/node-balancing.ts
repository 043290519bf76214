/** Decides the addresses of load balancers without a pool: those of the nodes on which the ports of the Service are free (as k3s' servicelb). */
import { allNodes } from '../../../api/network/load-balancer.ts'
import type { IPFamily } from '../../../api/text/ip-address.ts'
import {
  type BalancedPortKey,
  type BalancedService,
  type Balancing,
  notBalanced,
  olderFirst,
} from './balanced-services.ts'
import type { BalancerNode } from './balancer-nodes.ts'

/** What has ports at the addresses of nodes, besides these Services. */
export type PortUse = {
  /** Ports of every machine, such as that of SSH. */
  readonly kept: ReadonlySet<BalancedPortKey>
  /** Node ports, with the keys of the Services that have them. */
  readonly nodePorts: ReadonlyMap<BalancedPortKey, string>
  /** Host ports of pods, by the name of their node. */
  readonly hostPorts: ReadonlyMap<string, ReadonlySet<BalancedPortKey>>
}

/** Every address is a rule for each port on every node. */
export const mostNodeAddresses = 64

/** By the keys of `services`. A Service that has addresses keeps them before one that has none, then the older one. */
export function balanceByNodes(
  services: readonly BalancedService[],
  nodes: readonly BalancerNode[],
  use: PortUse,
): ReadonlyMap<string, Balancing> {
  const claims: Claims = new Map()
  /** Ports that no node has free, as a list: the Services that want them are many where one name of a chart is used again and again. */
  const exhausted = new Map<string, Owner>()
  const inOrder = [...services].sort((a, b) => Number(b.ips.length > 0) - Number(a.ips.length > 0) || olderFirst(a, b))
  const usable = nodes.filter(({ isExcluded }) => !isExcluded)
  const ready = usable.filter(({ isReady }) => isReady)
  return new Map(
    inOrder.map((service): [string, Balancing] => {
      const refused = keptProblem(service, use.kept)
      if (refused !== undefined) return [service.key, { ips: [], problem: refused }]
      // While no node is ready, as when the controller has lost its network, nothing changes.
      const isCut = ready.length === 0
      const eligible = eligibleFor(service, usable, ready)
      const isAny = !isCut && isOfAllNodes(service) && !service.ports.some((port) => use.nodePorts.has(port))
      const wanted = service.ports.join()
      const known = isAny ? exhausted.get(wanted) : undefined
      const { free, owner } = known ? { free: [], owner: known } : freeNodes(service, eligible, use, claims)
      if (owner !== undefined && free.length === 0) {
        if (isAny) exhausted.set(wanted, owner)
        return [service.key, { ips: [], problem: inUse(owner) }]
      }
      const chosen = mostOf(free, service)
      claim(claims, service, chosen)
      return [service.key, chosen.length === 0 ? notBalanced : { ips: ipsOf(chosen, service), node: allNodes }]
    }),
  )
}

type Owner = { readonly port: BalancedPortKey; readonly what: string }

/** By port and name of the node: the key of the Service. Within a pass a port that was claimed stays claimed. */
type Claims = Map<BalancedPortKey, Map<string, string>>

function claim(claims: Claims, { key, ports }: BalancedService, nodes: readonly BalancerNode[]): void {
  for (const port of ports) {
    const owners = claims.get(port) ?? new Map<string, string>()
    for (const { name } of nodes) owners.set(name, key)
    claims.set(port, owners)
  }
}

/** `owner`: of a port that is in use on one of the nodes. */
function freeNodes(
  { key, ports }: BalancedService,
  eligible: readonly BalancerNode[],
  { nodePorts, hostPorts }: PortUse,
  claims: Claims,
): { readonly free: readonly BalancerNode[]; readonly owner?: Owner } {
  let owner: Owner | undefined
  const ownerOn = (name: string, port: BalancedPortKey): string | undefined => {
    const service = claims.get(port)?.get(name) ?? nodePorts.get(port)
    if (service !== undefined && service !== key) return `Service ${service}`
    return hostPorts.get(name)?.has(port) ? `the host port of a pod on ${name}` : undefined
  }
  const free = eligible.filter(({ name }) =>
    ports.every((port) => {
      const what = ownerOn(name, port)
      if (what !== undefined) owner ??= { port, what }
      return what === undefined
    }),
  )
  return { free, ...(owner !== undefined && { owner }) }
}

function inUse({ port, what }: Owner): string {
  return `Port ${port} is in use on every node, by ${what}: change the port, or configure a loadBalancerPool for the controller`
}

function keptProblem({ ports }: BalancedService, kept: ReadonlySet<BalancedPortKey>): string | undefined {
  const port = ports.find((one) => kept.has(one))
  if (port === undefined) return undefined
  return `Port ${port} at the addresses of nodes belongs to the machines: change the port, or configure a loadBalancerPool for the controller`
}

type OfFamilies = Pick<BalancedService, 'families'>

/** Where the Service can be reached at the node. */
function addressesOf(node: BalancerNode, { families }: OfFamilies): readonly string[] {
  return families.flatMap((family) => addressOf(node, family) ?? [])
}

function addressOf({ address, ipv6 }: BalancerNode, family: IPFamily): string | undefined {
  return family === 'IPv4' ? address : ipv6
}

/** Whether the Service has an address of the node. */
function hasOneOf(service: BalancedService): (node: BalancerNode) => boolean {
  const before = new Set(service.ips)
  return (node) => addressesOf(node, service).some((address) => before.has(address))
}

/** Those that the Service has first. */
function mostOf(free: readonly BalancerNode[], service: BalancedService): readonly BalancerNode[] {
  const had = hasOneOf(service)
  const most = Math.floor(mostNodeAddresses / service.families.length)
  return [...free.filter(had), ...free.filter((node) => !had(node))].slice(0, most)
}

/** Family by family, in the order of the names of the nodes: the status changes only with its content. */
function ipsOf(nodes: readonly BalancerNode[], { families }: OfFamilies): readonly string[] {
  const inOrder = [...nodes].sort((a, b) => (a.name < b.name ? -1 : 1))
  return families.flatMap((family) => inOrder.flatMap((node) => addressOf(node, family) ?? []))
}

/** Any node may have its traffic. */
function isOfAllNodes({ policy, families }: BalancedService): boolean {
  return policy === 'Cluster' && families.includes('IPv4')
}

function eligibleFor(
  service: BalancedService,
  usable: readonly BalancerNode[],
  ready: readonly BalancerNode[],
): readonly BalancerNode[] {
  const some = ready.length === 0 ? usable.filter(hasOneOf(service)) : ready.filter(takesTraffic(service))
  return some.filter((node) => addressesOf(node, service).length > 0)
}

/** By the external traffic policy. */
function takesTraffic({ policy, endpointNodes }: BalancedService): (node: BalancerNode) => boolean {
  return ({ name }) => policy === 'Cluster' || endpointNodes.has(name)
}
