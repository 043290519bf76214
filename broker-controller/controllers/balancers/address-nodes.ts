/** Decides which node answers for each address of the pool: one, the same as before where that is possible, spread over the fleet. */
import { usualSegment } from '../../../api/network/segment.ts'
import type { BalancedService } from './balanced-services.ts'
import { type BalancerNode, nodesOnLink } from './balancer-nodes.ts'

/** An address, and what the choice of its node depends on. */
export type HeldAddress = Pick<BalancedService, 'key' | 'policy' | 'endpointNodes'> & {
  readonly ip: string
  /** The node that has it. */
  readonly node?: string
}

/**
 * By the keys of the Services; undefined: no node can have the address. A node that can no longer have it keeps it until another one
 * can: while no node is ready, as when the controller has lost its network, nothing moves.
 */
export function chooseNodes(
  addresses: readonly HeldAddress[],
  nodes: readonly BalancerNode[],
): ReadonlyMap<string, string | undefined> {
  const candidates = new Map(nodes.map((node) => [node.name, { node, rank: rankOf(node.name), load: 0 }]))
  const links = new Map<string, Link>()
  const linkOf = (ip: string): Link => {
    const known = links.get(usualSegment(ip))
    if (known !== undefined) return known
    const usable = nodesOnLink(nodes, ip).filter(({ isReady, isExcluded }) => isReady && !isExcluded)
    const link = new Map(usable.flatMap(({ name }) => candidates.get(name) ?? []).map((one) => [one.node.name, one]))
    links.set(usualSegment(ip), link)
    return link
  }
  const chosen = new Map<string, string | undefined>()
  const choose = (key: string, candidate: Candidate | undefined) => {
    chosen.set(key, candidate?.node.name)
    if (candidate !== undefined) candidate.load++
  }
  const moving: { readonly address: HeldAddress; readonly eligible: Link }[] = []
  for (const address of addresses) {
    const eligible = eligibleOf(address, linkOf(address.ip))
    const before = address.node === undefined ? undefined : candidates.get(address.node)
    if (eligible.size === 0 || (before !== undefined && eligible.has(before.node.name))) choose(address.key, before)
    else moving.push({ address, eligible })
  }
  for (const { address, eligible } of moving) choose(address.key, leastLoaded(eligible, address.ip))
  return chosen
}

/** `load`: how many addresses it has, so far. */
type Candidate = { readonly node: BalancerNode; readonly rank: number; load: number }
/** By name. */
type Link = ReadonlyMap<string, Candidate>

/** `link`: the nodes on it that may have an address at all. */
function eligibleOf({ policy, endpointNodes }: HeldAddress, link: Link): Link {
  if (policy === 'Cluster') return link
  const some = [...endpointNodes].flatMap((name) => link.get(name) ?? [])
  return new Map(some.map((one) => [one.node.name, one]))
}

/** Of several with as few addresses, not always the same one: after a loss each address chooses for itself. */
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
