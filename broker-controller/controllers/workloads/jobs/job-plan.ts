/** What a visit does about a Job: whether it has ended, and which of its pods are created or deleted. Pure. */
import { hasJobCondition, isIndexedJob, type JobCondition, jobConditionOf } from '../../../../api/batch/job.ts'
import {
  countCommon,
  countIndexes,
  firstOthers,
  intervalsOf,
  mergeIntervals,
  parseIntervals,
} from '../../../../api/batch/job-indexes.ts'
import { rfc3339 } from '../../../../daemon/clock.ts'
import type { StoredPod } from '../../../store/store.ts'
import { inDeletionOrder } from '../deletion-order.ts'
import { backoffLeftMs } from './job-backoff.ts'
import {
  completionIndexOf,
  finishedAtMs,
  hasLimitPerIndex,
  ignoredIndexFailuresOf,
  indexFailuresOf,
  isFailedPod,
  isTerminatingPod,
  replacesFailedOnly,
} from './job-pods.ts'
import type { JobView, StoredJob } from './job-view.ts'
import { failureVerdict } from './pod-failure-policy.ts'

export type JobPodPlan =
  | { readonly step: 'none' }
  /** The finalizer goes first: a pod that the Job deletes itself has not failed. */
  | { readonly step: 'delete'; readonly pods: readonly StoredPod[] }
  /** `indexes`: one for each pod; undefined: they have none. */
  | { readonly step: 'create'; readonly count: number; readonly indexes?: readonly number[] }
  | { readonly step: 'wait'; readonly ms: number }

/** Pods that one visit creates or deletes (MaxPodCreateDeletePerSync): then other Jobs have their turn. */
const mostAtOnce = 500

export function jobCondition(
  type: string,
  { status, reason, message }: { readonly status: 'True' | 'False'; readonly reason: string; readonly message: string },
  nowMs: number,
): JobCondition {
  const now = rfc3339(nowMs)
  return { type, status, lastProbeTime: now, lastTransitionTime: now, reason, message }
}

export function isSuspended({ spec }: Pick<StoredJob, 'spec'>): boolean {
  return spec.suspend === true
}

/**
 * The condition that ends the Job: `SuccessCriteriaMet`, `FailureTarget`, or `Failed` where an earlier visit has already
 * decided on the failure. undefined: it goes on. `startMs`: when it started.
 */
export function endOf(view: JobView, startMs: number | undefined, nowMs: number): JobCondition | undefined {
  const { job, pods } = view
  const met = jobConditionOf(job, 'SuccessCriteriaMet')
  if (met?.status === 'True') return met
  const target = jobConditionOf(job, 'FailureTarget')
  if (target?.status === 'True') return failedFor(target, nowMs)
  const failure = (reason: string, message: string) =>
    jobCondition('FailureTarget', { status: 'True', reason, message }, nowMs)
  const failing = failedByPolicy(job, pods)
  if (failing !== undefined) return failure('PodFailurePolicy', failing)
  if (view.failed > (job.spec.backoffLimit ?? 6) || restartedTooOften(job, pods)) {
    return failure('BackoffLimitExceeded', 'Job has reached the specified backoff limit')
  }
  const leftMs = deadlineLeftMs(job, startMs, nowMs)
  if (leftMs !== undefined && leftMs <= 0) {
    return failure('DeadlineExceeded', 'Job was active longer than specified deadline')
  }
  return endOfIndexes(view, failure) ?? endBySuccess(view, nowMs)
}

/** How long it may still be active; undefined: as long as it takes, or it is suspended. */
export function deadlineLeftMs(job: StoredJob, startMs: number | undefined, nowMs: number): number | undefined {
  const { activeDeadlineSeconds } = job.spec
  if (activeDeadlineSeconds === undefined || startMs === undefined || isSuspended(job)) return undefined
  return startMs + activeDeadlineSeconds * 1000 - nowMs
}

export function failedFor({ reason = '', message = '' }: JobCondition, nowMs: number): JobCondition {
  return jobCondition('Failed', { status: 'True', reason, message }, nowMs)
}

function failedByPolicy(job: StoredJob, pods: readonly StoredPod[]): string | undefined {
  const { podFailurePolicy } = job.spec
  if (podFailurePolicy === undefined) return undefined
  for (const pod of pods) {
    const message = isFailedPod(pod, job) ? failureVerdict(podFailurePolicy, pod).message : undefined
    if (message !== undefined) return message
  }
  return undefined
}

/** Containers that are restarted in place count as failures (pastBackoffLimitOnFailure). */
function restartedTooOften({ spec }: StoredJob, pods: readonly StoredPod[]): boolean {
  if (spec.template.spec.restartPolicy !== 'OnFailure') return false
  const { backoffLimit = 6 } = spec
  let restarts = 0
  for (const { status } of pods) {
    if (status?.phase !== 'Running' && status?.phase !== 'Pending') continue
    const containers = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])]
    restarts += containers.reduce((sum, { restartCount = 0 }) => sum + restartCount, 0)
  }
  return backoffLimit === 0 ? restarts > 0 : restarts >= backoffLimit
}

function endOfIndexes(
  { job, failedIndexes, succeededIndexes }: JobView,
  failure: (reason: string, message: string) => JobCondition,
): JobCondition | undefined {
  if (failedIndexes === undefined) return undefined
  const { maxFailedIndexes, completions = 0 } = job.spec
  const failed = countIndexes(failedIndexes)
  if (maxFailedIndexes !== undefined && failed > maxFailedIndexes) {
    const message = 'Job has exceeded the specified maximal number of failed indexes'
    return failure('MaxFailedIndexesExceeded', message)
  }
  const isOver = failed > 0 && failed + countIndexes(succeededIndexes) >= completions
  return isOver ? failure('FailedIndexes', 'Job has failed indexes') : undefined
}

/** By the success policy (pkg/controller/job/success_policy.go). */
function endBySuccess({ job, succeededIndexes }: JobView, nowMs: number): JobCondition | undefined {
  const { successPolicy, completions = 0 } = job.spec
  if (successPolicy === undefined || succeededIndexes.length === 0) return undefined
  const place = (successPolicy.rules ?? []).findIndex(({ succeededIndexes: wanted, succeededCount }) => {
    if (wanted === undefined) {
      return succeededCount !== undefined && countIndexes(succeededIndexes) >= succeededCount
    }
    const needed = parseIntervals(wanted, completions)
    if (needed.length === 0) return false
    const common = countCommon(needed, succeededIndexes)
    return common === countIndexes(needed) || (succeededCount !== undefined && common >= succeededCount)
  })
  if (place === -1) return undefined
  const message = `Matched rules at index ${place}`
  return jobCondition('SuccessCriteriaMet', { status: 'True', reason: 'SuccessPolicy', message }, nowMs)
}

/** Whether a Job that nothing else has ended has done its work, with so many pods still active. */
export function completion({ job, succeeded }: JobView, active: number, nowMs: number): JobCondition | undefined {
  const { completions } = job.spec
  const isDone = (completions === undefined ? succeeded > 0 : succeeded >= completions) && active === 0
  if (!isDone) return undefined
  const reason = 'CompletionsReached'
  const message = 'Reached expected number of succeeded pods'
  return jobCondition('SuccessCriteriaMet', { status: 'True', reason, message }, nowMs)
}

/** Of a Job that goes on (manageJob in pkg/controller/job/job_controller.go). */
export function planPods(view: JobView, nowMs: number): JobPodPlan {
  const { job, active, terminating } = view
  if (isSuspended(job)) return deletion(podsToRemove(view, active.length, nowMs))
  const wanted = wantedActive(view)
  const excess = podsToRemove(view, Math.max(0, active.length - wanted), nowMs).slice(0, mostAtOnce)
  if (excess.length > 0) return deletion(excess)
  const missing = wanted - active.length - (replacesFailedOnly(job) ? terminating : 0)
  if (missing <= 0) return { step: 'none' }
  const leftMs = hasLimitPerIndex(job) ? 0 : backoffLeftMs(view.backoff, nowMs)
  if (leftMs > 0) return { step: 'wait', ms: leftMs }
  const count = Math.min(missing, mostAtOnce)
  if (!isIndexedJob(job.spec)) return { step: 'create', count }
  return planIndexes(view, missingIndexes(view, count), nowMs)
}

function deletion(pods: readonly StoredPod[]): JobPodPlan {
  return pods.length === 0 ? { step: 'none' } : { step: 'delete', pods }
}

/** A work queue that has seen a success leaves what runs running. Any other Job runs what is left of it. */
function wantedActive({ job, active, succeeded }: JobView): number {
  const { completions, parallelism = 1 } = job.spec
  if (completions === undefined) return succeeded > 0 ? active.length : parallelism
  return Math.max(0, Math.min(completions - succeeded, parallelism))
}

/** Those whose index is wrong or taken by another pod, and `atLeast` pods in all (activePodsForRemoval). */
function podsToRemove({ job, active }: JobView, atLeast: number, nowMs: number): readonly StoredPod[] {
  // A Job of many thousands of pods would spend most of its visits on the order of pods that stay.
  const first = (pods: readonly StoredPod[], count: number) =>
    count <= 0 ? [] : inDeletionOrder(pods, [], nowMs).slice(0, count)
  const removed: StoredPod[] = []
  let left = active
  if (isIndexedJob(job.spec)) {
    const byIndex = new Map<number, readonly StoredPod[]>()
    for (const pod of active) {
      const index = completionIndexOf(pod)
      if (index === undefined || index >= (job.spec.completions ?? 0)) removed.push(pod)
      else byIndex.set(index, [...(byIndex.get(index) ?? []), pod])
    }
    for (const pods of byIndex.values()) removed.push(...first(pods, pods.length - 1))
    const gone = new Set(removed)
    left = active.filter((pod) => !gone.has(pod))
  }
  return [...removed, ...first(left, atLeast - removed.length)]
}

function missingIndexes(view: JobView, count: number): readonly number[] {
  const { job, pods, active, succeededIndexes, failedIndexes = [] } = view
  const taken = [...active, ...(replacesFailedOnly(job) ? pods.filter(isTerminatingPod) : [])]
  const running = intervalsOf(taken.flatMap((pod) => completionIndexOf(pod) ?? []))
  const others = mergeIntervals(mergeIntervals(succeededIndexes, running), failedIndexes)
  return firstOthers(others, count, job.spec.completions ?? 0)
}

/** Each index waits for itself where the Job limits the failures of each. */
function planIndexes({ job, keptForIndex }: JobView, indexes: readonly number[], nowMs: number): JobPodPlan {
  if (!hasLimitPerIndex(job)) return creation(indexes)
  const waits = indexes.map((index) => {
    const pod = keptForIndex.get(index)
    if (pod === undefined) return { index, ms: 0 }
    const failures = indexFailuresOf(pod) + ignoredIndexFailuresOf(pod) + 1
    return { index, ms: backoffLeftMs({ failures, lastFailureMs: finishedAtMs(pod) }, nowMs) }
  })
  const now = waits.filter(({ ms }) => ms === 0).map(({ index }) => index)
  if (now.length > 0 || waits.length === 0) return creation(now)
  return { step: 'wait', ms: waits.reduce((least, { ms }) => Math.min(least, ms), Number.POSITIVE_INFINITY) }
}

function creation(indexes: readonly number[]): JobPodPlan {
  return indexes.length === 0 ? { step: 'none' } : { step: 'create', count: indexes.length, indexes }
}

/** Whether the visit is to stop here: another controller does the work, or it is done. */
export function isLeftAlone(job: StoredJob, ours: string): boolean {
  const { managedBy } = job.spec
  return (
    (managedBy !== undefined && managedBy !== ours) ||
    hasJobCondition(job, 'Complete') ||
    hasJobCondition(job, 'Failed')
  )
}
