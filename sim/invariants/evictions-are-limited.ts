/** The limits of evictions: nodes get the NoExecute taint one by one, none does while all are lost, and pods leave after their tolerations. */
import type { Node } from '../../api/node.ts'
import { isLifecycleTaint } from '../../api/pod/default-tolerations.ts'
import type { TimedFact } from '../story/facts.ts'
import { type Invariant, withEntry, withoutEntry } from './invariant.ts'

type NodeState = {
  readonly taintedMs: number | undefined
  readonly lostMs: number | undefined
  /** The taint that it had before. */
  readonly cleared?: { readonly taintedMs: number; readonly atMs: number } | undefined
}
type Limits = {
  /** Since when each node has the taint, and is not ready. */
  readonly nodes: ReadonlyMap<string, NodeState>
  readonly lastTaintMs: number
}

/** Kubernetes' --node-eviction-rate of 0.1 a second, without what the write of a taint may be late. */
const betweenTaintsMs = 7_000
/** The default tolerations. The controller's date is not used: its clock counts whole milliseconds. */
const tolerationMs = 300_000
/** An eviction that was decided is written when the taint may have gone: as in Kubernetes. */
const decidedMs = 1_000
/** All nodes are lost for so long that the controller has counted them. */
const countedMs = 10_000

export const evictionsAreLimited: Invariant<Limits> = {
  name: 'evictions are limited',
  initial: { nodes: new Map(), lastTaintMs: Number.NEGATIVE_INFINITY },
  meets: ({ kind }) => kind === 'evicted',
  next(limits, fact) {
    if (fact.kind === 'restored') return { state: afterRestore(fact, limits) }
    if (fact.kind === 'stored' && fact.resource === 'nodes') return afterNode(limits, fact)
    if (fact.kind !== 'evicted') return { state: limits }
    const taintedMs = taintOf(limits.nodes.get(fact.node), fact.atMs)
    if (taintedMs !== undefined && fact.atMs - taintedMs >= tolerationMs) return { state: limits }
    const since = taintedMs === undefined ? 'has no taint' : `has its taint for ${(fact.atMs - taintedMs) / 1000} s`
    return { state: limits, violation: `${fact.pod} is evicted from ${fact.node}, which ${since}` }
  },
}

function taintOf(node: NodeState | undefined, atMs: number): number | undefined {
  const { taintedMs, cleared } = node ?? {}
  const isDecided = cleared !== undefined && atMs - cleared.atMs <= decidedMs
  return taintedMs ?? (isDecided ? cleared.taintedMs : undefined)
}

/** A taint that came with the backup may have been there for as long as a toleration. */
function afterRestore({ rows, atMs }: Extract<TimedFact, { kind: 'restored' }>, { lastTaintMs }: Limits): Limits {
  const nodes = rows.flatMap(({ resource, name, body }): (readonly [string, NodeState])[] => {
    if (resource !== 'nodes') return []
    const { isTainted, isReady } = takenFrom(body)
    const taintedMs = isTainted ? Number.NEGATIVE_INFINITY : undefined
    return [[name, { taintedMs, lostMs: isReady ? undefined : atMs }]]
  })
  return { nodes: new Map(nodes), lastTaintMs }
}

function takenFrom(body: string): { readonly isTainted: boolean; readonly isReady: boolean } {
  const { spec, status } = JSON.parse(body) as Node
  return {
    isTainted: (spec?.taints ?? []).some((taint) => taint.effect === 'NoExecute' && isLifecycleTaint(taint)),
    isReady: status?.conditions?.find(({ type }) => type === 'Ready')?.status === 'True',
  }
}

function afterNode(
  { nodes, lastTaintMs }: Limits,
  { name, body, atMs }: Extract<TimedFact, { kind: 'stored' }> & TimedFact,
) {
  if (body === undefined) return { state: { nodes: withoutEntry(nodes, name), lastTaintMs } }
  const { isTainted, isReady } = takenFrom(body)
  const before = nodes.get(name)
  const now: NodeState = {
    taintedMs: isTainted ? (before?.taintedMs ?? atMs) : undefined,
    lostMs: isReady ? undefined : (before?.lostMs ?? atMs),
    cleared: before?.taintedMs === undefined ? before?.cleared : { taintedMs: before.taintedMs, atMs },
  }
  const next = withEntry(nodes, name, now)
  // A node registers with a taint until it has reported.
  if (!isTainted || before === undefined || before.taintedMs !== undefined)
    return { state: { nodes: next, lastTaintMs } }
  const state = { nodes: next, lastTaintMs: atMs }
  const isAlone = [...next.values()].every(({ lostMs }) => lostMs !== undefined && atMs - lostMs > countedMs)
  if (isAlone) return { state, violation: `${name} gets the NoExecute taint while no node is ready` }
  if (atMs - lastTaintMs >= betweenTaintsMs) return { state }
  return { state, violation: `${name} gets the NoExecute taint ${(atMs - lastTaintMs) / 1000} s after another node` }
}
