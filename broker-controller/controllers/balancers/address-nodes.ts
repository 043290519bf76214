/** Decides which node answers for each address of the pool: one, the same as before where that is possible, spread over the fleet. */
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
  const chosen = new Map<string, string | undefined>()
  const loads = new Map<string, number>()
  const choose = (key: string, node: string | undefined) => {
    chosen.set(key, node)
    if (node !== undefined) loads.set(node, (loads.get(node) ?? 0) + 1)
  }
  const moving: { readonly address: HeldAddress; readonly eligible: readonly BalancerNode[] }[] = []
  for (const address of addresses) {
    const eligible = nodesOnLink(nodes, address.ip).filter((node) => mayHave(node, address))
    if (eligible.length === 0) choose(address.key, nodes.find(({ name }) => name === address.node)?.name)
    else if (eligible.some(({ name }) => name === address.node)) choose(address.key, address.node)
    else moving.push({ address, eligible })
  }
  for (const { address, eligible } of moving) choose(address.key, leastLoaded(eligible, loads, address.ip))
  return chosen
}

function mayHave({ name, isReady, isExcluded }: BalancerNode, { policy, endpointNodes }: HeldAddress): boolean {
  return isReady && !isExcluded && (policy === 'Cluster' || endpointNodes.has(name))
}

/** Of several with as few addresses, not always the same one: after a loss each address chooses for itself. */
function leastLoaded(
  eligible: readonly BalancerNode[],
  loads: ReadonlyMap<string, number>,
  ip: string,
): string | undefined {
  const ranked = eligible.map(({ name }) => ({ name, load: loads.get(name) ?? 0, rank: rankOf(`${ip} ${name}`) }))
  return ranked.sort((a, b) => a.load - b.load || a.rank - b.rank || (a.name < b.name ? -1 : 1))[0]?.name
}

/** FNV-1a. */
function rankOf(text: string): number {
  let hash = 0x811c9dc5
  for (const unit of text) hash = Math.imul(hash ^ (unit.codePointAt(0) ?? 0), 0x01000193) >>> 0
  return hash
}
