/** The taints that follow from the conditions of a node. */
import { healthConditionTypes, type Node, type NodeCondition, type Taint } from '../../../api/node.ts'
import { readyCondition } from './node-health.ts'

const notReadyTaint = 'node.kubernetes.io/not-ready'
const unreachableTaint = 'node.kubernetes.io/unreachable'
const unschedulableTaint = 'node.kubernetes.io/unschedulable'
/** Set by an operator for a machine that does not come back. */
const outOfServiceTaint = 'node.kubernetes.io/out-of-service'

export function isOutOfService(node: Node): boolean {
  return (node.spec?.taints ?? []).some(({ key }) => key === outOfServiceTaint)
}

const byCondition: { readonly [type: string]: { readonly [status: string]: string } } = {
  Ready: { False: notReadyTaint, Unknown: unreachableTaint },
  MemoryPressure: { True: 'node.kubernetes.io/memory-pressure' },
  DiskPressure: { True: 'node.kubernetes.io/disk-pressure' },
  PIDPressure: { True: 'node.kubernetes.io/pid-pressure' },
  NetworkUnavailable: { True: 'node.kubernetes.io/network-unavailable' },
}
const ownKeys: ReadonlySet<string> = new Set([
  ...Object.values(byCondition).flatMap((keys) => Object.values(keys)),
  unschedulableTaint,
])

/** Which of the machine's own conditions keep new pods away. A node cannot do that itself: it may not take a taint off. */
export type ConditionTaintSettings = { readonly conditionTaints: readonly string[] }

/** `bramble.dev/read-only-filesystem` of ReadOnlyFilesystem. */
function healthTaint(type: string): string {
  return `bramble.dev/${type.replace(/(?<=[a-z0-9])(?=[A-Z])/g, '-').toLowerCase()}`
}

/** Also of those that are not configured any more: then the taint goes. */
const healthKeys: ReadonlySet<string> = new Set(healthConditionTypes.map(healthTaint))

/**
 * The keys of the NoSchedule taints this node should carry, of those that are ours to set. One that has never reported
 * is not ready: it keeps the taint it was given when its object was made.
 */
export function conditionTaints(node: Node, health: readonly string[] = []): string[] {
  const unwell = (node.status?.conditions ?? []).filter(
    ({ type, status }) => status === 'True' && health.includes(type),
  )
  const earned = (node.status?.conditions ?? []).flatMap(({ type, status }) => byCondition[type]?.[status] ?? [])
  const unreported = readyCondition(node) === undefined ? [notReadyTaint] : []
  const ill = unwell.map(({ type }) => healthTaint(type))
  return [...earned, ...ill, ...unreported, ...(node.spec?.unschedulable === true ? [unschedulableTaint] : [])]
}

/** The node with exactly those NoSchedule taints; other keys and effects are left alone. Undefined: it has them. */
export function withConditionTaints<N extends Node>(
  node: N,
  now: string,
  health: readonly string[] = [],
): N | undefined {
  const wanted = conditionTaints(node, health)
  const chosen = new Set(health.map(healthTaint))
  const taints = node.spec?.taints ?? []
  const isOurs = ({ key, effect }: Taint) =>
    effect === 'NoSchedule' && (ownKeys.has(key) || healthKeys.has(key) || chosen.has(key))
  const kept = taints.filter((taint) => !isOurs(taint) || wanted.includes(taint.key))
  const missing = wanted.filter((key) => !taints.some((taint) => isOurs(taint) && taint.key === key))
  if (missing.length === 0 && kept.length === taints.length) return undefined
  return withTaints(node, [...kept, ...missing.map((key): Taint => ({ key, effect: 'NoSchedule', timeAdded: now }))])
}

export type NoExecuteStep =
  /** The node is well: neither taint may stay. */
  | { readonly step: 'clear' }
  /** Its condition no longer matches its taint: swap at once, its pods are already being evicted. */
  | { readonly step: 'swap' }
  /** It is ill and carries no such taint: the queue decides when. */
  | { readonly step: 'queue' }
  | { readonly step: 'none' }

/** What Ready asks of the NoExecute taints. A node that never had the condition is left alone. */
export function noExecuteStep(node: Node): NoExecuteStep {
  const ready = readyCondition(node)
  if (ready === undefined) return { step: 'none' }
  const wanted = noExecuteKey(ready)
  if (wanted === undefined)
    return { step: [notReadyTaint, unreachableTaint].some((key) => has(node, key)) ? 'clear' : 'none' }
  if (has(node, wanted === notReadyTaint ? unreachableTaint : notReadyTaint)) return { step: 'swap' }
  return { step: has(node, wanted) ? 'none' : 'queue' }
}

/** The node with the NoExecute taint its Ready asks for, and without the other. Undefined: it is so. */
export function withNoExecuteTaint<N extends Node>(node: N, now: string): N | undefined {
  const ready = readyCondition(node)
  const wanted = ready && noExecuteKey(ready)
  if (wanted === undefined) return withoutNoExecuteTaints(node)
  const others = withoutKeys(node, wanted === notReadyTaint ? [unreachableTaint] : [notReadyTaint])
  if (has(node, wanted))
    return others.length === (node.spec?.taints ?? []).length ? undefined : withTaints(node, others)
  return withTaints(node, [...others, { key: wanted, effect: 'NoExecute', timeAdded: now }])
}

/** The node without the NoExecute taints of this controller. Undefined: it has none. */
export function withoutNoExecuteTaints<N extends Node>(node: N): N | undefined {
  const kept = withoutKeys(node, [notReadyTaint, unreachableTaint])
  return kept.length === (node.spec?.taints ?? []).length ? undefined : withTaints(node, kept)
}

function noExecuteKey({ status }: NodeCondition): string | undefined {
  if (status === 'True') return undefined
  return status === 'False' ? notReadyTaint : unreachableTaint
}

function has(node: Node, key: string): boolean {
  return (node.spec?.taints ?? []).some((taint) => taint.key === key && taint.effect === 'NoExecute')
}

function withoutKeys(node: Node, keys: readonly string[]): Taint[] {
  return (node.spec?.taints ?? []).filter(({ key, effect }) => effect !== 'NoExecute' || !keys.includes(key))
}

function withTaints<N extends Node>(node: N, taints: readonly Taint[]): N {
  const { taints: _, ...spec } = node.spec ?? {}
  return { ...node, spec: taints.length === 0 ? spec : { ...spec, taints } }
}
