/** Decides which node answers for the addresses that a Service has of the pool: one, the same as before where that is possible, spread over the fleet. */
import { isIPv4 } from '../../../api/text/ip-address.ts'
import type { BalancedService } from './balanced-services.ts'
import { type BalancerNode, nodesOnLink, usualLink } from './balancer-nodes.ts'

/** The addresses of a Service, and what the choice of their node depends on. */
export type HeldAddresses = Pick<BalancedService, 'key' | 'policy' | 'endpointNodes'> & {
  /** At most one address of each family. */
  readonly ips: readonly [string, ...string[]]
  /** The node that has them. */
  readonly node?: string
}

/**
 * By the keys of the Services; undefined: no node can have the addresses. A node that can no longer have them keeps them until another one
 * can: while no node is ready, as when the controller has lost its network, nothing moves.
 */
export function chooseNodes(
  addresses: readonly HeldAddresses[],
  nodes: readonly BalancerNode[],
): ReadonlyMap<string, string | undefined> {
  const candidates = new Map(nodes.map((node) => [node.name, { node, rank: rankOf(node.name), load: 0 }]))
  const links = new Map<string, Link>()
  const linkOf = (ip: string): Link => {
    const known = links.get(usualLink(ip))
    if (known !== undefined) return known
    const usable = nodesOnLink(nodes, ip).filter(({ isReady, isExcluded }) => isReady && !isExcluded)
    const link = new Map(usable.flatMap(({ name }) => candidates.get(name) ?? []).map((one) => [one.node.name, one]))
    links.set(usualLink(ip), link)
    return link
  }
  /** By links: they are the same nodes for each Service whose policy is Cluster. */
  const ofLinks = new Map<string, Link>()
  const eligibleFor = (held: HeldAddresses): Link => {
    if (held.policy !== 'Cluster') return eligibleOf(held, linkOf)
    const names = held.ips.map(usualLink).join()
    const eligible = ofLinks.get(names) ?? eligibleOf(held, linkOf)
    ofLinks.set(names, eligible)
    return eligible
  }
  const chosen = new Map<string, string | undefined>()
  const choose = (key: string, candidate: Candidate | undefined) => {
    chosen.set(key, candidate?.node.name)
    if (candidate !== undefined) candidate.load++
  }
  const moving: { readonly key: string; readonly ip: string; readonly eligible: Link }[] = []
  for (const held of addresses) {
    const { key, node, ips } = held
    // Segments are those of IPv4.
    const ip = ips.find(isIPv4) ?? ips[0]
    const eligible = eligibleFor(held)
    const before = node === undefined ? undefined : candidates.get(node)
    if (eligible.size === 0 || (before !== undefined && eligible.has(before.node.name))) choose(key, before)
    else moving.push({ key, ip, eligible })
  }
  for (const { key, ip, eligible } of moving) choose(key, leastLoaded(eligible, ip))
  return chosen
}

/** `load`: the addresses of how many Services it has, so far. */
type Candidate = { readonly node: BalancerNode; readonly rank: number; load: number }
/** By name. */
type Link = ReadonlyMap<string, Candidate>

/**
 * On the links of all addresses. `linkOf`: nodes that may have an address at all. Where no node can have both, one that can have that of IPv4
 * is better than none.
 */
function eligibleOf({ policy, endpointNodes, ips }: HeldAddresses, linkOf: (ip: string) => Link): Link {
  const may = (link: Link) =>
    policy === 'Cluster' ? link : byName([...endpointNodes].flatMap((name) => link.get(name) ?? []))
  const [ipv4, ipv6] = [ips.find(isIPv4), ips.find((ip) => !isIPv4(ip))]
  const ofIPv4 = ipv4 === undefined ? undefined : may(linkOf(ipv4))
  if (ipv6 === undefined) return ofIPv4 ?? new Map()
  const ofIPv6 = [...may(linkOf(ipv6)).values()].filter(({ node }) => node.ipv6 !== undefined)
  const ofAll = byName(ofIPv6.filter(({ node }) => ofIPv4?.has(node.name) ?? true))
  return ofAll.size === 0 && ofIPv4 !== undefined ? ofIPv4 : ofAll
}

function byName(candidates: readonly Candidate[]): Link {
  return new Map(candidates.map((one) => [one.node.name, one]))
}

/**
 * Node with the fewest addresses. Each address ranks equal nodes differently, so that after a loss they do not all move
 * to the same node.
 */
function leastLoaded(eligible: Link, ip: string): Candidate | undefined {
  const seed = rankOf(ip)
  const rank = (one: Candidate) => Math.imul(one.rank ^ seed, fnvPrime) >>> 0
  let best: Candidate | undefined
  for (const one of eligible.values()) {
    const order = best === undefined ? -1 : one.load - best.load || rank(one) - rank(best)
    if (best === undefined || order < 0 || (order === 0 && one.node.name < best.node.name)) best = one
  }
  return best
}

const fnvPrime = 0x01000193

/** FNV-1a. */
function rankOf(text: string): number {
  let hash = 0x811c9dc5
  for (const unit of text) hash = Math.imul(hash ^ (unit.codePointAt(0) ?? 0), fnvPrime) >>> 0
  return hash
}
