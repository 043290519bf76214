/** Decides the addresses of load balancers without a pool: those of the nodes on which the ports of the Service are free (as k3s' servicelb). */
import { allNodes } from '../../../api/network/load-balancer.ts'
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
  /** Of every machine, such as that of SSH. */
  readonly kept: ReadonlySet<BalancedPortKey>
  /** Node ports, with the keys of the Services that have them. */
  readonly nodePorts: ReadonlyMap<BalancedPortKey, string>
  /** Of pods, by the name of their node. */
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
  const claims = new Map<string, string>()
  const inOrder = [...services].sort((a, b) => Number(b.ips.length > 0) - Number(a.ips.length > 0) || olderFirst(a, b))
  const usable = nodes.filter(({ isExcluded }) => !isExcluded)
  const ready = usable.filter(({ isReady }) => isReady)
  return new Map(
    inOrder.map((service): [string, Balancing] => {
      const refused = keptProblem(service, use.kept)
      if (refused !== undefined) return [service.key, { ips: [], problem: refused }]
      // While no node is ready, as when the controller has lost its network, nothing changes.
      const isCut = ready.length === 0
      const eligible = isCut
        ? usable.filter(({ address }) => service.ips.includes(address))
        : ready.filter(({ name }) => service.policy === 'Cluster' || service.endpointNodes.has(name))
      const { free, owner } = freeNodes(service, eligible, use, claims)
      if (owner !== undefined && free.length === 0) return [service.key, { ips: [], problem: inUse(owner) }]
      const chosen = mostOf(free, service.ips)
      for (const { name } of chosen) for (const port of service.ports) claims.set(`${name} ${port}`, service.key)
      return [service.key, chosen.length === 0 ? notBalanced : { ips: ipsOf(chosen), node: allNodes }]
    }),
  )
}

type Owner = { readonly port: BalancedPortKey; readonly what: string }

/** `owner`: of a port that is in use on one of the nodes. */
function freeNodes(
  { key, ports }: BalancedService,
  eligible: readonly BalancerNode[],
  { nodePorts, hostPorts }: PortUse,
  claims: ReadonlyMap<string, string>,
): { readonly free: readonly BalancerNode[]; readonly owner?: Owner } {
  let owner: Owner | undefined
  const ownerOn = (name: string, port: BalancedPortKey): string | undefined => {
    const service = claims.get(`${name} ${port}`) ?? nodePorts.get(port)
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

/** Those that the Service has first. */
function mostOf(free: readonly BalancerNode[], had: readonly string[]): readonly BalancerNode[] {
  const known = free.filter(({ address }) => had.includes(address))
  const others = free.filter(({ address }) => !had.includes(address))
  return [...known, ...others].slice(0, mostNodeAddresses)
}

/** In the order of the names of the nodes: the status changes only with its content. */
function ipsOf(nodes: readonly BalancerNode[]): readonly string[] {
  return [...nodes].sort((a, b) => (a.name < b.name ? -1 : 1)).map(({ address }) => address)
}
