/** Which pods of a Job that continues are created or deleted (manageJob in pkg/controller/job/job_controller.go). Pure. */
import { isIndexedJob } from '../../../../api/batch/job.ts'
import { firstOthers, intervalsOf, mergeIntervals } from '../../../../api/batch/job-indexes.ts'
import type { Steps } from '../../../../daemon/watchdog/steps.ts'
import type { StoredPod } from '../../../store/store.ts'
import { firstOfJobToDelete } from '../deletion-order.ts'
import { isActivePod } from '../pod-readiness.ts'
import { backoffLeftMs } from './job-backoff.ts'
import {
  completionIndexOf,
  finishedAtMs,
  hasLimitPerIndex,
  ignoredIndexFailuresOf,
  indexFailuresOf,
  isTerminatingPod,
  replacesFailedOnly,
  validIndexOf,
} from './job-pods.ts'
import { isSuspended } from './job-suspension.ts'
import type { JobView } from './job-view.ts'

export type JobPodPlan =
  | { readonly step: 'none' }
  /** The finalizer goes first: a pod that the Job deletes itself has not failed. */
  | { readonly step: 'delete'; readonly pods: readonly StoredPod[] }
  /** `indexes`: one for each pod; undefined: they have none. */
  | { readonly step: 'create'; readonly count: number; readonly indexes?: readonly number[] }
  | { readonly step: 'wait'; readonly ms: number }

/** Pods that one visit creates or deletes (MaxPodCreateDeletePerSync): then other Jobs have their turn. */
const mostAtOnce = 500

/** Plan of a Job that has not ended. */
export function* planPods(view: JobView, nowMs: number): Steps<JobPodPlan> {
  const { job, active, terminating } = view
  if (isSuspended(job)) return deletion(yield* podsToRemove(view, active.length))
  const wanted = wantedActive(view)
  const excess = yield* podsToRemove(view, Math.max(0, active.length - wanted))
  if (excess.length > 0) return deletion(excess.slice(0, mostAtOnce))
  const missing = wanted - active.length - (replacesFailedOnly(job) ? terminating : 0)
  if (missing <= 0) return { step: 'none' }
  const leftMs = hasLimitPerIndex(job) ? 0 : backoffLeftMs(view.backoff, nowMs)
  if (leftMs > 0) return { step: 'wait', ms: leftMs }
  const count = Math.min(missing, mostAtOnce)
  if (!isIndexedJob(job.spec)) return { step: 'create', count }
  return planIndexes(view, yield* missingIndexes(view, count), nowMs)
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
function* podsToRemove({ job, active }: JobView, atLeast: number): Steps<readonly StoredPod[]> {
  const removed = isIndexedJob(job.spec) ? yield* podsWithoutPlace(job, active) : []
  if (atLeast <= removed.length) return removed
  const gone = new Set(removed)
  const left = active.filter((pod) => !gone.has(pod))
  return [...removed, ...(yield* firstOfJobToDelete(left, atLeast - removed.length))]
}

/** Those whose index is wrong, and all but one of those that share an index. */
function* podsWithoutPlace(job: JobView['job'], active: readonly StoredPod[]): Steps<readonly StoredPod[]> {
  const surplus: StoredPod[] = []
  const byIndex = new Map<number, StoredPod>()
  const shared = new Map<number, StoredPod[]>()
  for (const pod of active) {
    yield
    const index = validIndexOf(pod, job)
    const present = index === undefined ? undefined : byIndex.get(index)
    if (index === undefined) surplus.push(pod)
    else if (present === undefined) byIndex.set(index, pod)
    else {
      const pods = shared.get(index) ?? [present]
      pods.push(pod)
      shared.set(index, pods)
    }
  }
  for (const pods of shared.values()) {
    for (const pod of yield* firstOfJobToDelete(pods, pods.length - 1)) surplus.push(pod)
  }
  return surplus
}

function* missingIndexes(view: JobView, count: number): Steps<readonly number[]> {
  const { job, pods, succeededIndexes, failedIndexes = [] } = view
  const taken: number[] = []
  for (const pod of pods) {
    yield
    const isTaken = isActivePod(pod) || (replacesFailedOnly(job) && isTerminatingPod(pod))
    const index = isTaken ? completionIndexOf(pod) : undefined
    if (index !== undefined) taken.push(index)
  }
  const running = intervalsOf(taken)
  yield
  const others = mergeIntervals(mergeIntervals(succeededIndexes, running), failedIndexes)
  yield
  return firstOthers(others, count, job.spec.completions ?? 0)
}

/** Each index waits for itself where the Job limits the failures of each. */
function planIndexes({ keptForIndex, backoff }: JobView, indexes: readonly number[], nowMs: number): JobPodPlan {
  const waits = indexes.map((index) => {
    const pod = keptForIndex.get(index)
    if (pod === undefined) return { index, ms: 0 }
    const failures = indexFailuresOf(pod) + ignoredIndexFailuresOf(pod) + 1
    const lastFailureMs = backoff.noticedMs?.get(pod.metadata.uid) ?? finishedAtMs(pod)
    return { index, ms: backoffLeftMs({ failures, lastFailureMs }, nowMs) }
  })
  const now = waits.filter(({ ms }) => ms === 0).map(({ index }) => index)
  if (now.length > 0 || waits.length === 0) return creation(now)
  return { step: 'wait', ms: waits.reduce((least, { ms }) => Math.min(least, ms), Number.POSITIVE_INFINITY) }
}

function creation(indexes: readonly number[]): JobPodPlan {
  return indexes.length === 0 ? { step: 'none' } : { step: 'create', count: indexes.length, indexes }
}
