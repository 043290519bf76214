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
import type { Steps } from '../../../../daemon/watchdog/steps.ts'
import type { StoredObject, StoredPod } from '../../../store/store.ts'
import { isActivePod, isReadyPod } from '../pod-readiness.ts'
import { type BackoffRecord, nextBackoff, noticedAtMs } from './job-backoff.ts'
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
  /** Those that have its finalizer. */
  readonly tracked: readonly StoredPod[]
  readonly active: readonly StoredPod[]
  readonly ready: number
  readonly terminating: number
  /** How often containers of pods that have not ended were restarted. */
  readonly restarts: number
  /** Why the first of the pods that fail the Job by its policy does; undefined: none does. */
  readonly failing: string | undefined
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

/** In steps: a Job may have very many pods. */
export function* jobView(
  job: StoredJob,
  pods: readonly StoredPod[],
  { noticedMs, ...row }: BackoffRecord,
  nowMs: number,
): Steps<JobView> {
  const { spec, status = {} } = job
  const { tracked, ...found } = yield* foundPods(job, pods)
  const isIndexed = isIndexedJob(spec)
  const { succeeded: waitingSucceeded = [], failed: waitingFailed = [] } = status.uncountedTerminatedPods ?? {}
  const ended = yield* endedPods(job, tracked)
  const countedIndexes = isIndexed ? parseIntervals(status.completedIndexes ?? '', spec.completions ?? 0) : []
  yield
  const succeededIndexes = isIndexed ? mergeIntervals(countedIndexes, intervalsOf(ended.succeededIndexes)) : []
  yield
  const failedIndexes = hasLimitPerIndex(job) ? failedIndexesOf(job, ended.failedIndexes) : undefined
  const over = failedIndexes && mergeIntervals(succeededIndexes, failedIndexes)
  const keptForIndex: ReadonlyMap<number, StoredPod> =
    over === undefined ? new Map() : yield* keptPods(job, ended.failed, found.active, over)
  const noticed = yield* noticedFailures(keptForIndex.values(), noticedMs, nowMs)
  return {
    job,
    pods,
    tracked,
    ...found,
    succeeded: isIndexed
      ? countIndexes(succeededIndexes)
      : (status.succeeded ?? 0) + ended.newSuccesses.length + waitingSucceeded.length,
    failed: (status.failed ?? 0) + ended.counting + waitingFailed.length,
    countedIndexes,
    succeededIndexes,
    failedIndexes,
    keptForIndex,
    backoff: {
      ...nextBackoff(row, { successes: ended.newSuccesses, failures: ended.newFailures }, nowMs),
      ...(noticed.size > 0 && { noticedMs: noticed }),
    },
  }
}

type Found = Pick<JobView, 'active' | 'ready' | 'terminating' | 'tracked' | 'failing' | 'restarts'>

function* foundPods(job: StoredJob, pods: readonly StoredPod[]): Steps<Found> {
  const { podFailurePolicy } = job.spec
  const active: StoredPod[] = []
  const tracked: StoredPod[] = []
  let [ready, terminating, restarts] = [0, 0, 0]
  let failing: string | undefined
  for (const pod of pods) {
    yield
    if (isActivePod(pod)) active.push(pod)
    if (isActivePod(pod) && isReadyPod(pod)) ready++
    if (isTerminatingPod(pod)) terminating++
    if (isTracked(pod)) tracked.push(pod)
    restarts += restartsOf(pod)
    if (isFailedPod(pod, job)) failing ??= failureVerdict(podFailurePolicy, pod).message
  }
  return { active, ready, terminating, tracked, failing, restarts }
}

/** Only of one that has not ended. */
function restartsOf({ status = {} }: StoredPod): number {
  if (status.phase !== 'Running' && status.phase !== 'Pending') return 0
  const containers = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])]
  return containers.reduce((sum, { restartCount = 0 }) => sum + restartCount, 0)
}

type EndedPods = {
  /** When each ended that the status does not have yet; of an indexed Job only those with an index of it. */
  readonly newSuccesses: readonly number[]
  readonly newFailures: readonly number[]
  /** How many of these failures count. */
  readonly counting: number
  readonly failed: readonly StoredPod[]
  readonly succeededIndexes: readonly number[]
  readonly failedIndexes: readonly number[]
}

function* endedPods(job: StoredJob, tracked: readonly StoredPod[]): Steps<EndedPods> {
  const isIndexed = isIndexedJob(job.spec)
  const { succeeded, failed: noted } = job.status?.uncountedTerminatedPods ?? {}
  const [known, knownFailed] = [new Set<string | undefined>(succeeded), new Set<string | undefined>(noted)]
  const [newSuccesses, newFailures]: [number[], number[]] = [[], []]
  const [succeededIndexes, failedIndexes]: [number[], number[]] = [[], []]
  const failed: StoredPod[] = []
  let counting = 0
  const takeFailed = (pod: StoredPod, index: number | undefined, mayCount: boolean) => {
    const { counts, failsIndex } = failureOf(pod, job)
    const isNew = mayCount && !knownFailed.has(pod.metadata.uid)
    failed.push(pod)
    if (isNew) newFailures.push(finishedAtMs(pod))
    if (isNew && counts) counting++
    if (index !== undefined && failsIndex) failedIndexes.push(index)
  }
  const takeSucceeded = (pod: StoredPod, index: number | undefined, mayCount: boolean) => {
    if (mayCount && !known.has(pod.metadata.uid)) newSuccesses.push(finishedAtMs(pod))
    if (index !== undefined) succeededIndexes.push(index)
  }
  for (const pod of tracked) {
    yield
    const index = validIndexOf(pod, job)
    const mayCount = index !== undefined || !isIndexed
    if (isFailedPod(pod, job)) takeFailed(pod, index, mayCount)
    else if (pod.status?.phase === 'Succeeded') takeSucceeded(pod, index, mayCount)
  }
  return { newSuccesses, newFailures, counting, failed, succeededIndexes, failedIndexes }
}

/** Whether the failure counts against the Job, and ends its index. */
function failureOf(pod: StoredPod, { spec }: StoredJob): { readonly counts: boolean; readonly failsIndex: boolean } {
  const { action, counts } = failureVerdict(spec.podFailurePolicy, pod)
  const isOver = counts && indexFailuresOf(pod) >= (spec.backoffLimitPerIndex ?? 0)
  return { counts, failsIndex: action === 'FailIndex' || isOver }
}

/** With those that failed since. */
function failedIndexesOf({ spec, status }: StoredJob, since: readonly number[]): Intervals {
  return mergeIntervals(parseIntervals(status?.failedIndexes ?? '', spec.completions ?? 0), intervalsOf(since))
}

function* keptPods(
  job: StoredJob,
  failed: readonly StoredPod[],
  active: readonly StoredPod[],
  ended: Intervals,
): Steps<ReadonlyMap<number, StoredPod>> {
  const kept = new Map<number, StoredPod>()
  if (failed.length === 0) return kept
  const running = new Set<number | undefined>()
  for (const pod of active) {
    yield
    running.add(validIndexOf(pod, job))
  }
  const failures = (pod: StoredPod) => indexFailuresOf(pod) + ignoredIndexFailuresOf(pod)
  for (const pod of failed) {
    yield
    const index = validIndexOf(pod, job)
    if (index === undefined || hasIndex(ended, index) || running.has(index)) continue
    const other = kept.get(index)
    const isLater =
      other === undefined || (failures(other) <= failures(pod) && finishedAtMs(pod) >= finishedAtMs(other))
    if (isLater) kept.set(index, pod)
  }
  return kept
}

function* noticedFailures(
  failed: Iterable<StoredPod>,
  before: BackoffRecord['noticedMs'],
  nowMs: number,
): Steps<ReadonlyMap<string, number>> {
  const noticed = new Map<string, number>()
  for (const pod of failed) {
    yield
    const { uid } = pod.metadata
    const atMs = noticedAtMs(before?.get(uid), finishedAtMs(pod), nowMs)
    if (atMs !== undefined) noticed.set(uid, atMs)
  }
  return noticed
}
