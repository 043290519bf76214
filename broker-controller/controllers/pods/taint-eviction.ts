/** Decides whether a pod is evicted because of the taints of its node, and when. */

import type { Taint } from '../../../api/node.ts'
import { isToleratedByDefault } from '../../../api/pod/default-tolerations.ts'
import { withPodCondition } from '../../../api/pod/pod-conditions.ts'
import { isFinished } from '../../../api/pod/pod-deletion.ts'
import { minimumTolerationSeconds, untolerated } from '../../../api/pod/tolerations.ts'
import type { Pod, Toleration } from '../../../api/pod.ts'

/** An eviction under way: when its count began, and when it ends. */
export type PlannedEviction = { readonly startMs: number; readonly dueMs: number }

export type EvictionStep =
  /** It goes now. */
  | { readonly step: 'evict' }
  /** A count begins. */
  | { readonly step: 'plan'; readonly planned: PlannedEviction }
  /** What was planned is called off. */
  | { readonly step: 'cancel' }
  | { readonly step: 'none' }

/**
 * A count that runs is never hastened nor started over: another taint, or the same illness under another name, does
 * not change it. Only a taint that is not tolerated at all, one tolerated for ever, or no taint left overrides it.
 */
export function evictionStep(
  taints: readonly Taint[],
  tolerations: readonly Toleration[],
  planned: PlannedEviction | undefined,
  nowMs: number,
): EvictionStep {
  const noExecute = taints.filter(({ effect }) => effect === 'NoExecute')
  const callOff: EvictionStep = { step: planned === undefined ? 'none' : 'cancel' }
  if (noExecute.length === 0) return callOff
  if (untolerated(noExecute, tolerations, ['NoExecute']).length > 0) return { step: 'evict' }
  const seconds = minimumTolerationSeconds(noExecute, tolerations)
  if (seconds === undefined) return callOff
  if (planned !== undefined) return { step: 'none' }
  return seconds <= 0 ? { step: 'evict' } : { step: 'plan', planned: { startMs: nowMs, dueMs: nowMs + seconds * 1000 } }
}

/** What arrived while the controller stood still is handled within this time: a node may have reported that it is ready again. */
const readAfterStallMs = 10_000

/** The count after the controller stood still for `stalledMs`: the time in which it read no report of the node does not count. */
export function afterStall({ startMs, dueMs }: PlannedEviction, stalledMs: number, nowMs: number): PlannedEviction {
  return { startMs, dueMs: Math.max(dueMs + stalledMs, nowMs + readAfterStallMs) }
}

/**
 * The taints that may evict this pod: not those of the node lifecycle controller where nothing would re-create the pod
 * (it has no controller) and it tolerates them only by the default tolerations that admission added.
 */
export function evictingTaints(pod: Pod, taints: readonly Taint[]): readonly Taint[] {
  const isManaged = (pod.metadata.ownerReferences ?? []).some(({ controller }) => controller === true)
  return isManaged ? taints : taints.filter((taint) => !isToleratedByDefault(taint, pod))
}

/** Why this pod stays although its node bears these taints; undefined when none of them is one that it stays for. */
export function stayText(pod: Pod, taints: readonly Taint[]): string | undefined {
  const ignored = isFinished(pod) ? undefined : taints.find((taint) => isToleratedByDefault(taint, pod))
  if (ignored === undefined) return undefined
  const state = ignored.key === 'node.kubernetes.io/unreachable' ? 'unreachable' : 'not ready'
  return `Node ${pod.spec.nodeName} is ${state}. ${stayReason}`
}

const stayReason =
  'The pod stays on it and runs when the node is back: the pod has no controller that would re-create it, and states no ' +
  'tolerationSeconds. Delete it to give it up.'

/** The pod with this status message, which the next report of its node replaces; undefined where it has this one, or one of its node. */
export function stayingPod<P extends Pod>(pod: P, message: string): P | undefined {
  const before = pod.status?.message
  if (before === message || (before && !before.endsWith(stayReason))) return undefined
  return { ...pod, status: { ...pod.status, message } }
}

/** The pod with the word of who asked it to leave, and why. */
export function disruptedPod<P extends Pod>(pod: P, now: string): P {
  const condition = {
    type: 'DisruptionTarget',
    status: 'True',
    reason: 'DeletionByTaintManager',
    message: 'Taint manager: deleting due to NoExecute taint',
  } as const
  return withPodCondition(pod, condition, now) ?? pod
}
