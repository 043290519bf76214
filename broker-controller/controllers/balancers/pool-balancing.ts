/** Decides the addresses of load balancers from a pool: one for each Service, which it keeps. The truth is what the Services have. */
import { chooseNodes } from './address-nodes.ts'
import { type AddressPool, freeAddresses, poolHas, poolText } from './address-pool.ts'
import { type BalancedService, type Balancing, olderFirst } from './balanced-services.ts'
import type { BalancerNode } from './balancer-nodes.ts'

/** By the keys of `services`. `foreign`: addresses that other programs have given to Services. */
export function balanceByPool(
  services: readonly BalancedService[],
  nodes: readonly BalancerNode[],
  pool: AddressPool,
  foreign: readonly string[] = [],
): ReadonlyMap<string, Balancing> {
  const taken = new Map<string, string>([
    ...foreign.map((ip) => [ip, 'a Service of another load balancer'] as const),
    ...nodes.map(({ address, name }) => [address, `node ${name}`] as const),
  ])
  const able = services.filter(({ families }) => families.includes('IPv4'))
  const assigned = assignAddresses([...able].sort(olderFirst), pool, taken)
  const held = services.flatMap(({ key, policy, endpointNodes, node }) => {
    const ip = assigned.get(key)?.ip
    return ip === undefined ? [] : [{ key, policy, endpointNodes, ip, ...(node !== undefined && { node }) }]
  })
  const chosen = chooseNodes(held, nodes)
  return new Map(
    services.map(({ key, families }): [string, Balancing] => {
      if (!families.includes('IPv4')) return [key, ipv6Only]
      const { ip, problem } = assigned.get(key) ?? {}
      const node = chosen.get(key)
      const named = { ...(node !== undefined && { node }), ...(problem !== undefined && { problem }) }
      return [key, { ips: ip === undefined ? [] : [ip], ...named }]
    }),
  )
}

/** An address of IPv4 would lead nowhere. */
const ipv6Only: Balancing = {
  ips: [],
  problem:
    'The pool has addresses of IPv4, and the Service has IPv6 only: add IPv4 to its ipFamilies, with ipFamilyPolicy PreferDualStack',
}

type Assigned = { readonly ip?: string; readonly problem?: string }

/** `services`: those with the older right first. `taken`: addresses and who has them; each one that is assigned is added. */
function assignAddresses(
  services: readonly BalancedService[],
  pool: AddressPool,
  taken: Map<string, string>,
): ReadonlyMap<string, Assigned> {
  const assigned = new Map<string, Assigned>()
  const assign = (key: string, ip: string, problem?: string) => {
    taken.set(ip, `Service ${key}`)
    assigned.set(key, { ip, ...(problem !== undefined && { problem }) })
  }
  const keepable = ({ ips }: BalancedService) => ips.find((ip) => poolHas(pool, ip) && !taken.has(ip))

  for (const service of services) {
    const ip = keepable(service)
    if (ip !== undefined && (service.requestedIP ?? ip) === ip) assign(service.key, ip)
  }
  // Before addresses that nothing asked for are given away.
  const open = services.filter(({ key }) => !assigned.has(key))
  for (const service of open) {
    const { key, requestedIP } = service
    if (requestedIP === undefined) continue
    const problem = requestProblem(requestedIP, pool, taken)
    if (problem === undefined) assign(key, requestedIP)
    else assigned.set(key, { problem })
  }
  const free = freeAddresses(pool, taken)
  for (const service of open) {
    const { key, requestedIP } = service
    const { problem } = assigned.get(key) ?? {}
    // A wish that cannot be met does not cost the address that clients use.
    const kept = keepable(service)
    if (problem !== undefined && kept !== undefined) assign(key, kept, problem)
    if (requestedIP !== undefined) continue
    const ip = kept ?? free.next().value
    if (ip !== undefined) assign(key, ip)
    else assigned.set(key, { problem: exhausted(pool) })
  }
  return assigned
}

function requestProblem(ip: string, pool: AddressPool, taken: ReadonlyMap<string, string>): string | undefined {
  if (!poolHas(pool, ip)) {
    return `Address ${ip} is not in the pool (${poolText(pool)}): request one of the pool, or add it to loadBalancerPool in the configuration of the controller`
  }
  const owner = taken.get(ip)
  return owner === undefined ? undefined : `Address ${ip} is in use by ${owner}: request another one, or none`
}

function exhausted(pool: AddressPool): string {
  return `No address is left in the pool (${poolText(pool)}): add some to loadBalancerPool in the configuration of the controller, or delete a Service of the type LoadBalancer`
}
