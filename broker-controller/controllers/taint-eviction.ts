/** Must this pod leave its node for the node's taints, and when? */
import type { Taint } from '../../api/node.ts'
import type { Pod, Toleration } from '../../api/pod.ts'
import { withPodCondition } from '../../api/pod-conditions.ts'
import { minimumTolerationSeconds, untolerated } from '../../api/tolerations.ts'

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
