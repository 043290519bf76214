/** Which pods of a Job that continues are created or deleted (manageJob in pkg/controller/job/job_controller.go). Pure. */
import { isIndexedJob } from '../../../../api/batch/job.ts'
import { firstOthers, intervalsOf, mergeIntervals } from '../../../../api/batch/job-indexes.ts'
import type { StoredPod } from '../../../store/store.ts'
import { inDeletionOrder } from '../deletion-order.ts'
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
  const removed = isIndexedJob(job.spec) ? podsWithoutPlace(job, active, first) : []
  if (atLeast <= removed.length) return removed
  const gone = new Set(removed)
  const left = active.filter((pod) => !gone.has(pod))
  return [...removed, ...first(left, atLeast - removed.length)]
}

type First = (pods: readonly StoredPod[], count: number) => readonly StoredPod[]

/** Those whose index is wrong, and all but one of those that share an index. */
function podsWithoutPlace(job: JobView['job'], active: readonly StoredPod[], first: First): StoredPod[] {
  const wrong: StoredPod[] = []
  const byIndex = new Map<number, StoredPod>()
  const shared = new Map<number, StoredPod[]>()
  for (const pod of active) {
    const index = validIndexOf(pod, job)
    const present = index === undefined ? undefined : byIndex.get(index)
    if (index === undefined) wrong.push(pod)
    else if (present === undefined) byIndex.set(index, pod)
    else {
      const pods = shared.get(index) ?? [present]
      pods.push(pod)
      shared.set(index, pods)
    }
  }
  return [...wrong, ...[...shared.values()].flatMap((pods) => first(pods, pods.length - 1))]
}

function missingIndexes(view: JobView, count: number): readonly number[] {
  const { job, pods, active, succeededIndexes, failedIndexes = [] } = view
  const taken = [...active, ...(replacesFailedOnly(job) ? pods.filter(isTerminatingPod) : [])]
  const running = intervalsOf(taken.flatMap((pod) => completionIndexOf(pod) ?? []))
  const others = mergeIntervals(mergeIntervals(succeededIndexes, running), failedIndexes)
  return firstOthers(others, count, job.spec.completions ?? 0)
}

/** Each index waits for itself where the Job limits the failures of each. */
function planIndexes({ keptForIndex }: JobView, indexes: readonly number[], nowMs: number): JobPodPlan {
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
