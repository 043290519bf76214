/** A Job with its pods as one visit finds them: what has ended, what is counted, what is left (syncJob in pkg/controller/job). */
import { isIndexedJob } from '../../../../api/batch/job.ts'
import {
  countIndexes,
  hasIndex,
  type Intervals,
  intervalsOf,
  mergeIntervals,
  parseIntervals,
} from '../../../../api/batch/job-indexes.ts'
import type { StoredObject, StoredPod } from '../../../store/store.ts'
import { isActivePod, isReadyPod } from '../pod-readiness.ts'
import { type BackoffRecord, nextBackoff } from './job-backoff.ts'
import {
  finishedAtMs,
  hasLimitPerIndex,
  ignoredIndexFailuresOf,
  indexFailuresOf,
  isFailedPod,
  isTerminatingPod,
  isTracked,
  validIndexOf,
} from './job-pods.ts'
import { failureVerdict } from './pod-failure-policy.ts'

export type StoredJob = StoredObject<'jobs'>

export type JobView = {
  readonly job: StoredJob
  readonly pods: readonly StoredPod[]
  readonly active: readonly StoredPod[]
  readonly ready: number
  readonly terminating: number
  /** With those that are not counted in the status yet. */
  readonly succeeded: number
  readonly failed: number
  /** As the status has them, and with those of pods that have ended since. Empty unless the Job is indexed. */
  readonly countedIndexes: Intervals
  readonly succeededIndexes: Intervals
  /** undefined unless the Job limits the failures of each index. */
  readonly failedIndexes: Intervals | undefined
  /** The last failed pod of an index, kept until its successor has taken over how often the index has failed. */
  readonly keptForIndex: ReadonlyMap<number, StoredPod>
  readonly backoff: BackoffRecord
}

export function jobView(job: StoredJob, pods: readonly StoredPod[], backoff: BackoffRecord): JobView {
  const { spec, status = {} } = job
  const active = pods.filter(isActivePod)
  const { succeeded: waitingSucceeded = [], failed: waitingFailed = [] } = status.uncountedTerminatedPods ?? {}
  const isIndexed = isIndexedJob(spec)
  const tracked = pods.filter(isTracked)
  const uncounted = isIndexed ? tracked.filter((pod) => validIndexOf(pod, job) !== undefined) : tracked
  const newlySucceeded = uncounted.filter(
    (pod) => pod.status?.phase === 'Succeeded' && !waitingSucceeded.includes(pod.metadata.uid),
  )
  const newlyFailed = uncounted.filter((pod) => isFailedPod(pod, job) && !waitingFailed.includes(pod.metadata.uid))
  const counting = newlyFailed.filter((pod) => failureVerdict(spec.podFailurePolicy, pod).counts)
  const countedIndexes = isIndexed ? parseIntervals(status.completedIndexes ?? '', spec.completions ?? 0) : []
  const succeededIndexes = isIndexed ? mergeIntervals(countedIndexes, succeededSince(job, tracked)) : []
  const failedIndexes = hasLimitPerIndex(job) ? failedIndexesOf(job, tracked) : undefined
  return {
    job,
    pods,
    active,
    ready: active.filter(isReadyPod).length,
    terminating: pods.filter(isTerminatingPod).length,
    succeeded: isIndexed
      ? countIndexes(succeededIndexes)
      : (status.succeeded ?? 0) + newlySucceeded.length + waitingSucceeded.length,
    failed: (status.failed ?? 0) + counting.length + waitingFailed.length,
    countedIndexes,
    succeededIndexes,
    failedIndexes,
    keptForIndex:
      failedIndexes === undefined
        ? new Map()
        : keptPods(job, tracked, active, mergeIntervals(succeededIndexes, failedIndexes)),
    backoff: nextBackoff(backoff, newlySucceeded, newlyFailed),
  }
}

function succeededSince(job: StoredJob, tracked: readonly StoredPod[]): Intervals {
  return indexesOf(
    job,
    tracked.filter(({ status }) => status?.phase === 'Succeeded'),
  )
}

function failedIndexesOf(job: StoredJob, tracked: readonly StoredPod[]): Intervals {
  const { spec, status } = job
  const known = parseIntervals(status?.failedIndexes ?? '', spec.completions ?? 0)
  const failed = tracked.filter((pod) => isIndexFailed(job, pod))
  return mergeIntervals(known, indexesOf(job, failed))
}

/** Those that the Job has. */
function indexesOf(job: StoredJob, pods: readonly StoredPod[]): Intervals {
  return intervalsOf(pods.flatMap((pod) => validIndexOf(pod, job) ?? []))
}

function isIndexFailed(job: StoredJob, pod: StoredPod): boolean {
  if (!isFailedPod(pod, job)) return false
  const { action, counts } = failureVerdict(job.spec.podFailurePolicy, pod)
  return action === 'FailIndex' || (counts && indexFailuresOf(pod) >= (job.spec.backoffLimitPerIndex ?? 0))
}

function keptPods(
  job: StoredJob,
  tracked: readonly StoredPod[],
  active: readonly StoredPod[],
  ended: Intervals,
): ReadonlyMap<number, StoredPod> {
  const running = new Set(active.map((pod) => validIndexOf(pod, job)))
  const failures = (pod: StoredPod) => indexFailuresOf(pod) + ignoredIndexFailuresOf(pod)
  const kept = new Map<number, StoredPod>()
  for (const pod of tracked) {
    const index = validIndexOf(pod, job)
    if (index === undefined || !isFailedPod(pod, job) || hasIndex(ended, index) || running.has(index)) continue
    const other = kept.get(index)
    const isLater =
      other === undefined || (failures(other) <= failures(pod) && finishedAtMs(pod) >= finishedAtMs(other))
    if (isLater) kept.set(index, pod)
  }
  return kept
}
