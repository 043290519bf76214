/**
 * Decides the addresses of load balancers from a pool: one for each Service and family, which it keeps; Services that ask for it share one.
 * The truth is what the Services have.
 */
import type { IPFamily } from '../../../api/text/ip-address.ts'
import { type AddressHolders, addressHolders, type OtherHolder, type Sharer } from './address-holders.ts'
import { chooseNodes, type HeldAddresses } from './address-nodes.ts'
import { type AddressPool, freeAddresses, poolHas, poolOf, poolText } from './address-pool.ts'
import { addressFamily, type BalancedService, type Balancing, olderFirst } from './balanced-services.ts'
import type { BalancerNode } from './balancer-nodes.ts'

/** By the keys of `services`. `others`: Services that have addresses, and are not to have them from this controller. */
export function balanceByPool(
  services: readonly BalancedService[],
  nodes: readonly BalancerNode[],
  pool: AddressPool,
  others: readonly OtherHolder[] = [],
): ReadonlyMap<string, Balancing> {
  const ofNodes = nodes.flatMap(({ address, ipv6, name }) =>
    [address, ...(ipv6 === undefined ? [] : [ipv6])].map((ip) => [ip, `node ${name}`] as const),
  )
  const assigned = assignAddresses([...services].sort(olderFirst), pool, addressHolders(ofNodes, others))
  const groups = sharedGroups(services, assigned)
  const chosen = chooseNodes([...new Set(groups.values())].flatMap(heldBy), nodes)
  return new Map(
    services.map(({ key }): [string, Balancing] => {
      const { ips = [], problem } = assigned.get(key) ?? {}
      const node = chosen.get(groups.get(key)?.key ?? '')
      return [key, { ips, ...(node !== undefined && { node }), ...(problem !== undefined && { problem }) }]
    }),
  )
}

/** Services that have addresses in common: one node answers for all of them. */
type Group = { readonly key: string; readonly members: BalancedService[]; readonly ips: Set<string> }

/** By the keys of Services with an address. */
function sharedGroups(
  services: readonly BalancedService[],
  assigned: ReadonlyMap<string, Assigned>,
): ReadonlyMap<string, Group> {
  const groups = new Map<string, Group>()
  const byAddress = new Map<string, Group>()
  for (const service of services) {
    const ips = assigned.get(service.key)?.ips ?? []
    if (ips.length === 0) continue
    const known = [...new Set(ips.flatMap((ip) => byAddress.get(ip) ?? []))]
    // The smaller one joins: otherwise two families of a pool could cost as much as all Services for each of them.
    known.sort((one, other) => other.members.length - one.members.length)
    const [group = { key: service.key, members: [], ips: new Set<string>() }, ...joined] = known
    const members = [service, ...joined.flatMap((one) => one.members)]
    for (const member of members) groups.set(member.key, group)
    group.members.push(...members)
    for (const ip of [...ips, ...joined.flatMap((one) => [...one.ips])]) {
      byAddress.set(ip, group)
      group.ips.add(ip)
    }
  }
  return groups
}

/** What its oldest member has decides, where they differ. */
function heldBy({ key, members, ips }: Group): readonly HeldAddresses[] {
  const [ip, ...others] = ips
  const [oldest, ...later] = [...members].sort(olderFirst)
  if (ip === undefined || oldest === undefined) return []
  const { policy, endpointNodes } = oldest
  const node = [oldest, ...later].find((one) => one.node !== undefined)?.node
  return [{ key, policy, endpointNodes, ips: [ip, ...others], ...(node !== undefined && { node }) }]
}

/** `ips`: in the order of the families. */
type Assigned = { readonly ips: readonly string[]; readonly problem?: string }

/** An address of one family that a Service is to have. */
type Wish = {
  readonly service: Sharer
  readonly family: IPFamily
  /** Those of the family that the Service has. */
  readonly before: readonly string[]
  readonly requestedIP?: string
}

/** What one Service is to have. */
type Wishes = {
  readonly key: string
  /** Wishes for the families of the pool, in their order. */
  readonly wishes: readonly Wish[]
  /** Why there is no wish for another one. */
  readonly problem?: string
  /** An address alone is of no use: the Service has none yet that clients use. */
  readonly isAllOrNone: boolean
}

/** `services`: those with the older right first. Each address that is assigned is added to `taken`. */
function assignAddresses(
  services: readonly BalancedService[],
  pool: AddressPool,
  taken: AddressHolders,
): ReadonlyMap<string, Assigned> {
  const wanted = services.map((service) => wishesOf(service, pool))
  const all = wanted.flatMap(({ wishes }) => wishes)
  const given = new Map<Wish, string>()
  const problems = new Map<Wish, string>()
  const give = (wish: Wish, ip: string) => {
    taken.give(ip, wish.service)
    given.set(wish, ip)
  }
  const keepable = ({ before, service }: Wish) =>
    before.find((ip) => poolHas(pool, ip) && taken.refusal(ip, service) === undefined)

  for (const wish of all) {
    const ip = keepable(wish)
    if (ip !== undefined && (wish.requestedIP ?? ip) === ip) give(wish, ip)
  }
  // Before addresses that nothing asked for are given away.
  for (const wish of all) {
    if (given.has(wish) || wish.requestedIP === undefined) continue
    const problem = requestProblem(wish.requestedIP, wish, pool, taken)
    if (problem === undefined) give(wish, wish.requestedIP)
    else problems.set(wish, problem)
  }
  const next = { IPv4: nextFree(poolOf(pool, 'IPv4'), taken), IPv6: nextFree(poolOf(pool, 'IPv6'), taken) }
  // A wish that cannot be met does not cost the address that clients use.
  const anyOf = ({ family, service }: Wish) => taken.shared(family, service) ?? next[family]()
  const found = (wish: Wish) =>
    given.get(wish) ?? keepable(wish) ?? (wish.requestedIP === undefined ? anyOf(wish) : undefined)
  return new Map(
    wanted.map(({ key, wishes, problem, isAllOrNone }): [string, Assigned] => {
      const ips = new Map(wishes.map((wish) => [wish, found(wish)]))
      for (const wish of wishes) {
        if (ips.get(wish) === undefined && !problems.has(wish)) problems.set(wish, exhausted(pool, wish.family))
      }
      const isRefused = isAllOrNone && [...ips.values()].includes(undefined)
      const assigned = isRefused ? [] : [...ips].flatMap(([wish, ip]) => (ip === undefined ? [] : [{ wish, ip }]))
      for (const { wish, ip } of assigned) give(wish, ip)
      const because = [problem, ...wishes.map((wish) => problems.get(wish))].filter((one) => one !== undefined)
      return [key, { ips: assigned.map(({ ip }) => ip), ...(because.length > 0 && { problem: because.join('; ') }) }]
    }),
  )
}

function wishesOf(service: BalancedService, pool: AddressPool): Wishes {
  const { key, families, needsAll, requestedIPs = [], ips } = service
  const isAllOrNone = needsAll === true && !ips.some((ip) => poolHas(pool, ip))
  const able = families.filter((family) => poolOf(pool, family).length > 0)
  const [lacking] = families.filter((family) => !able.includes(family))
  const isProblem = lacking !== undefined && (needsAll || able.length === 0)
  const problem = isProblem ? { problem: lackProblem(lacking, families) } : {}
  if (isProblem && isAllOrNone) return { key, wishes: [], isAllOrNone, ...problem }
  // What is of none of its families is refused for the first one.
  const stray = requestedIPs.find((ip) => families.every((family) => family !== addressFamily(ip)))
  const wishes = able.map((family, index): Wish => {
    const requestedIP = requestedIPs.find((ip) => addressFamily(ip) === family) ?? (index === 0 ? stray : undefined)
    const before = ips.filter((ip) => addressFamily(ip) === family)
    return { service, family, before, ...(requestedIP !== undefined && { requestedIP }) }
  })
  return { key, wishes, isAllOrNone, ...problem }
}

/** The next address that is not taken, which is the next one until it is. */
function nextFree(pool: AddressPool, taken: AddressHolders): () => string | undefined {
  const free = freeAddresses(pool, taken)
  let next: string | undefined
  return () => {
    if (next === undefined || taken.has(next)) next = free.next().value
    return next
  }
}

function lackProblem(lacking: IPFamily, families: readonly IPFamily[]): string {
  const [because, instead] =
    families.length === 1
      ? [`has ${lacking} only`, `${otherThan(lacking)} to its ipFamilies, with ipFamilyPolicy PreferDualStack`]
      : ['requires both families', 'set its ipFamilyPolicy to PreferDualStack']
  return `The pool has ${otherThan(lacking)} addresses, and the Service ${because}: add some of ${lacking} to loadBalancerPool in the configuration of the controller, or ${instead}`
}

function otherThan(family: IPFamily): IPFamily {
  return family === 'IPv4' ? 'IPv6' : 'IPv4'
}

function requestProblem(
  ip: string,
  { family, service }: Wish,
  pool: AddressPool,
  taken: AddressHolders,
): string | undefined {
  if (!poolHas(pool, ip)) {
    return `Address ${ip} is not in the pool (${poolText(pool)}): request one of the pool, or add it to loadBalancerPool in the configuration of the controller`
  }
  if (addressFamily(ip) !== family) {
    return `Address ${ip} is not of ${family}, the family of the Service: request another one, or change its ipFamilies`
  }
  return taken.refusal(ip, service)
}

function exhausted(pool: AddressPool, family: IPFamily): string {
  const own = poolOf(pool, family)
  const address = own.length === pool.length ? 'address' : `${family} address`
  return `No ${address} is left in the pool (${poolText(own)}): add some to loadBalancerPool in the configuration of the controller, or delete a Service of the type LoadBalancer`
}
