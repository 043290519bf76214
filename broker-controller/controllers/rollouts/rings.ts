/** Which nodes are in which ring. The order in a ring is another one for each release, so that it is not always the same nodes first. */
import type { FleetRelease, RolloutNode } from './rollout-facts.ts'
import { type Ring, restRing } from './rollout-rules.ts'

export type RingNodes = {
  readonly name: string
  readonly soakSeconds: number
  /** In the order in which they get the release. */
  readonly nodes: readonly RolloutNode[]
}

/**
 * Each node is in one ring. The nodes that were admitted stay first, in that order; then come those that are connected: a ring of one
 * node that is switched off would prove nothing.
 */
export function ringsOf(
  rings: readonly Ring[],
  nodes: readonly RolloutNode[],
  target: FleetRelease,
  nowMs: number,
): readonly RingNodes[] {
  let rest = ordered(nodes, target, nowMs)
  const made = rings.map(({ name, soakSeconds, labels, count, percent }): RingNodes => {
    const wanted = labels === undefined ? [] : Object.entries(labels)
    const most = count ?? Math.ceil((nodes.length * (percent ?? 0)) / 100)
    const fits = (node: RolloutNode, at: number) =>
      labels === undefined ? at < most : wanted.every(([key, value]) => node.labels[key] === value)
    const own = rest.filter(fits)
    const taken = new Set(own)
    rest = rest.filter((node) => !taken.has(node))
    return { name, soakSeconds, nodes: own }
  })
  return [...made, { name: restRing, soakSeconds: 0, nodes: rest }]
}

function ordered(nodes: readonly RolloutNode[], target: FleetRelease, nowMs: number): readonly RolloutNode[] {
  const seed = hashOf(target.digest, 0x811c9dc5)
  const keyed = nodes.map((node) => {
    const rank = rankOf(node, target, nowMs)
    return { node, rank, order: rank === 0 ? (node.admitted?.atMs ?? 0) : 0, hash: mixed(hashOf(node.name, seed)) }
  })
  return keyed
    .sort(
      (one, other) =>
        one.rank - other.rank ||
        one.order - other.order ||
        one.hash - other.hash ||
        (one.node.name < other.node.name ? -1 : 1),
    )
    .map(({ node }) => node)
}

/** A node that had the release before proves nothing of it, either. */
function rankOf(node: RolloutNode, { digest, sequence: wanted }: FleetRelease, nowMs: number): number {
  const { admitted, sequence, isConnected, penaltyUntilMs, isController } = node
  if (admitted?.digest === digest) return 0
  const isFit = sequence !== undefined && sequence < wanted && isConnected && penaltyUntilMs <= nowMs
  return (isFit ? 1 : 3) + (isController ? 1 : 0)
}

/** FNV-1a. */
function hashOf(text: string, seed: number): number {
  let hash = seed
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return hash
}

/** Names that differ in their last digit are spread over the whole range: the finalizer of MurmurHash3. */
function mixed(hash: number): number {
  const first = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  const second = Math.imul(first ^ (first >>> 13), 0xc2b2ae35)
  return (second ^ (second >>> 16)) >>> 0
}
