/** What the sync of a pod does next, from what it has observed and planned. Pure. */
import { comesBack } from '../../../api/node/node-shutdown.ts'
import type { Pod } from '../../../api/pod.ts'
import type { RuntimeContainer } from '../../runtime/runtime.ts'
import type { PodPlan, PodStep } from '../plan/pod-steps.ts'
import { exitCodeOf, hasEnded } from '../record/pod-containers.ts'
import { isLeaving, isOver, type PodRecord } from '../record/pod-record.ts'
import { restartPolicyOf } from '../record/restarts.ts'

export type PodAction =
  /** It is gone. */
  | { readonly action: 'forget'; readonly wasDesired: boolean }
  /** These containers are removed, and their work begins again. */
  | { readonly action: 'beginAgain'; readonly cut: readonly RuntimeContainer[] }
  /** What was observed is outdated. */
  | { readonly action: 'observe' }
  /** Its activeDeadlineSeconds have passed. */
  | { readonly action: 'endForDeadline' }
  | { readonly action: 'steps'; readonly steps: readonly PodStep[] }
  /** Nothing is done until something changes, or this time has passed. `clears`: what it leaves behind when it has ended. */
  | {
      readonly action: 'settle'
      readonly clears: 'volumes' | 'mounts' | 'nothing'
      readonly againInMs: number | undefined
    }

/** None of its containers is left, and nothing desires it. */
export function isGone(pod: Pod | undefined, containers: readonly RuntimeContainer[]): boolean {
  return containers.length === 0 && (pod === undefined || isLeaving(pod))
}

export type RoundFacts = {
  readonly pod: Pod | undefined
  /** As it was before the reads of this round. */
  readonly record: PodRecord
  readonly runs: boolean
  readonly plan: PodPlan
  /** Until its activeDeadlineSeconds have passed; undefined: it has none, or has not begun. */
  readonly leftMs: number | undefined
  /** Until the results of its probes are known; 0: they are. */
  readonly unknownMs: number
}

export function nextAction({ pod, record, runs, plan, leftMs, unknownMs }: RoundFacts): PodAction {
  if (leftMs !== undefined && leftMs <= 0) return { action: 'endForDeadline' }
  const { steps } = plan
  if (steps.length > 0) return { action: 'steps', steps }
  const clears = pod !== undefined && !runs && isOver(pod, record) ? leftBehind(pod, record) : 'nothing'
  return { action: 'settle', clears, againInMs: earliest(plan.againInMs, leftMs, unknownMs || undefined) }
}

/** A pod that has ended does not need its volumes, and those in memory use memory. */
function leftBehind(pod: Pod, { ended, cleared }: PodRecord): 'volumes' | 'mounts' | 'nothing' {
  if (!comesBack(pod, ended)) return 'volumes'
  // A mount of a network file system that remains would be one more that the machine waits for when it stops.
  return cleared ? 'nothing' : 'mounts'
}

export function startsContainers(steps: readonly PodStep[]): boolean {
  return steps.some(({ step }) => step === 'startContainer')
}

export function stopsSandbox(step: PodStep): boolean {
  return step.step === 'stop' && step.target.identity.kind === 'sandbox'
}

/**
 * Containers that a shutdown of the machine stopped exited with 0 although their work is not done: they run again. Failed
 * containers, and those that are restarted in any case, are not affected.
 */
export function cutShort(
  pod: Pod | undefined,
  record: PodRecord,
  containers: readonly RuntimeContainer[],
): readonly RuntimeContainer[] {
  const { interruptedAt } = record
  if (pod === undefined || isOver(pod, record) || interruptedAt === undefined) return []
  if (restartPolicyOf(pod.spec.restartPolicy) !== 'OnFailure') return []
  const sinceMs = Date.parse(interruptedAt)
  return containers.filter(
    (one) =>
      one.identity.kind === 'container' &&
      hasEnded(one) &&
      exitCodeOf(one) === 0 &&
      // `interruptedAt` is in whole seconds: the container may have started within that second.
      Date.parse(one.startedAt ?? one.createdAt) < sinceMs + 1_000 &&
      Date.parse(one.finishedAt ?? one.createdAt) >= sinceMs,
  )
}

export function earliest(...times: readonly (number | undefined)[]): number | undefined {
  const known = times.flatMap((time) => time ?? [])
  return known.length === 0 ? undefined : Math.min(...known)
}
