/**
 * Counts the pods of a Job, each once (trackJobStatusAndRemoveFinalizers in pkg/controller/job/job_controller.go, KEP-2307).
 *
 * A pod that has ended keeps the finalizer, so it stays, until it is counted. Three writes, each of which may be the last one
 * before a crash: its uid goes into `uncountedTerminatedPods`; its finalizer goes; its uid is replaced by a one more in the
 * count. After the first, the next visit finds uid and finalizer and continues with the second. After the second, it finds the
 * uid alone and counts. Succeeded pods of an indexed Job need no uid: their index is counted once by itself.
 */
import { hasJobCondition, isIndexedJob, type JobCondition, type JobStatus } from '../../../../api/batch/job.ts'
import {
  countIndexes,
  formatIntervals,
  hasIndex,
  intervalsOf,
  mergeIntervals,
} from '../../../../api/batch/job-indexes.ts'
import { type Steps, sortedInSteps } from '../../../../daemon/watchdog/steps.ts'
import type { StoredPod } from '../../../store/store.ts'
import { failedFor, jobCondition, withCondition } from './job-conditions.ts'
import { completionIndexOf, isFailedPod, validIndexOf } from './job-pods.ts'
import type { JobView } from './job-view.ts'
import { failureVerdict } from './pod-failure-policy.ts'

/** uids that the status may hold, some 20 KB (MaxUncountedPods). */
const mostUncounted = 500

/** What a visit has made of the pods. */
export type Outcome = {
  /** With the start and the suspension that this visit decided on. */
  readonly status: JobStatus
  readonly active: number
  readonly ready: number
  readonly terminating: number
  /** What ends the Job; undefined: it continues. */
  readonly end: JobCondition | undefined
}

export type Tracking = {
  /** To be written before the finalizers go. */
  readonly status: JobStatus
  /** The pods whose finalizer goes. */
  readonly release: readonly StoredPod[]
  /** The uids of those that have it now. */
  readonly held: ReadonlySet<string>
  /** What ends the Job when all its pods are counted and gone. */
  readonly final: JobCondition | undefined
  /** More pods have ended than the status may hold: the next visit continues with them. */
  readonly isPartial: boolean
}

/** In steps: a Job may have very many pods. */
export function* trackPods(view: JobView, outcome: Outcome, nowMs: number): Steps<Tracking> {
  const { job, tracked } = view
  const held = new Set<string>()
  for (const { metadata } of tracked) {
    yield
    held.add(metadata.uid)
  }
  const { active, ready, terminating } = outcome
  const settled = settleCounts({ ...outcome.status, active, ready, terminating }, held)
  const ended = yield* endedPods(view, outcome.end)
  const { succeeded = [], failed = [] } = settled.uncountedTerminatedPods ?? {}
  const uncounted = { succeeded: [...succeeded, ...ended.succeeded], failed: [...failed, ...ended.failed] }
  const counted: JobStatus = { ...settled, uncountedTerminatedPods: uncounted }
  const status = isIndexedJob(job.spec) ? withIndexes(view, counted, ended.indexes) : counted
  return { ...closing(status, outcome.end, nowMs), release: ended.release, held, isPartial: ended.isPartial }
}

type EndedPods = {
  readonly release: readonly StoredPod[]
  readonly succeeded: readonly string[]
  readonly failed: readonly string[]
  readonly indexes: readonly number[]
  readonly isPartial: boolean
}

function* endedPods(view: JobView, end: JobCondition | undefined): Steps<EndedPods> {
  const { job } = view
  const { succeeded: waiting = [], failed: waitingFailed = [] } = job.status?.uncountedTerminatedPods ?? {}
  const noted: Noted = { succeeded: new Set(waiting), failed: new Set(waitingFailed) }
  const [release, succeeded, failed, indexes]: [StoredPod[], string[], string[], number[]] = [[], [], [], []]
  for (const pod of yield* releasablePods(view, end)) {
    yield
    release.push(pod)
    const counted = countedAs(view, pod, { end, hasFailed: isFailedPod(pod, job) }, noted)
    if (counted?.as === 'index') indexes.push(counted.index)
    else if (counted !== undefined) (counted.as === 'failed' ? failed : succeeded).push(pod.metadata.uid)
    const count = waiting.length + waitingFailed.length + indexes.length + succeeded.length + failed.length
    if (count >= mostUncounted) return { release, succeeded, failed, indexes, isPartial: true }
  }
  return { release, succeeded, failed, indexes, isPartial: false }
}

/** Those whose finalizer may go; of an indexed Job the lowest index first, and those without one before. */
function* releasablePods(view: JobView, end: JobCondition | undefined): Steps<readonly StoredPod[]> {
  const found: { readonly pod: StoredPod; readonly index: number }[] = []
  for (const pod of view.tracked) {
    yield
    const mayGo = mayRelease(view, pod, { end, hasFailed: isFailedPod(pod, view.job) })
    if (mayGo) found.push({ pod, index: completionIndexOf(pod) ?? -1 })
  }
  const ordered = isIndexedJob(view.job.spec) ? yield* sortedInSteps(found, (a, b) => a.index - b.index) : found
  return ordered.map(({ pod }) => pod)
}

type Counted = { readonly as: 'succeeded' | 'failed' } | { readonly as: 'index'; readonly index: number }

type PodEnd = { readonly end: JobCondition | undefined; readonly hasFailed: boolean }
/** The uids that the status has already. */
type Noted = { readonly succeeded: ReadonlySet<string>; readonly failed: ReadonlySet<string> }

/** undefined: it is counted already, or it does not count. */
function countedAs(view: JobView, pod: StoredPod, { end, hasFailed }: PodEnd, noted: Noted): Counted | undefined {
  const { job } = view
  const isKnown = noted.failed.has(pod.metadata.uid)
  if (pod.status?.phase === 'Succeeded' && !isKnown) return countedSuccess(view, pod, noted)
  const isFailure = hasFailed || (end !== undefined && end.type !== 'SuccessCriteriaMet')
  const hasNoPlace = isIndexedJob(job.spec) && validIndexOf(pod, job) === undefined
  if (!isFailure || isKnown || hasNoPlace) return undefined
  return failureVerdict(job.spec.podFailurePolicy, pod).counts ? { as: 'failed' } : undefined
}

function countedSuccess({ job, countedIndexes }: JobView, pod: StoredPod, noted: Noted): Counted | undefined {
  if (!isIndexedJob(job.spec)) return noted.succeeded.has(pod.metadata.uid) ? undefined : { as: 'succeeded' }
  const index = validIndexOf(pod, job)
  return index === undefined || hasIndex(countedIndexes, index) ? undefined : { as: 'index', index }
}

/** The failed pod of an index stays until its successor is there, which takes over its count of failures. */
function mayRelease({ job, keptForIndex }: JobView, pod: StoredPod, { end, hasFailed }: PodEnd): boolean {
  if (job.metadata.deletionTimestamp !== undefined || end !== undefined || pod.status?.phase === 'Succeeded')
    return true
  if (!hasFailed) return false
  return keptForIndex.get(completionIndexOf(pod) ?? -1)?.metadata.uid !== pod.metadata.uid
}

function withIndexes(
  { succeededIndexes, failedIndexes }: JobView,
  status: JobStatus,
  ended: readonly number[],
): JobStatus {
  const { failedIndexes: _, ...rest } = status
  const indexes = mergeIntervals(succeededIndexes, intervalsOf(ended))
  return {
    ...rest,
    succeeded: countIndexes(indexes),
    completedIndexes: formatIntervals(indexes),
    ...(failedIndexes !== undefined && { failedIndexes: formatIntervals(failedIndexes) }),
  }
}

/** The interim condition is written before the finalizers go: by then the pods that it was read from may be gone. */
function closing(status: JobStatus, end: JobCondition | undefined, nowMs: number): Pick<Tracking, 'status' | 'final'> {
  if (end === undefined || end.type === 'Failed') return { status, final: end }
  const conditions = hasJobCondition({ status }, 'SuccessCriteriaMet')
    ? (status.conditions ?? [])
    : [...(status.conditions ?? []), end]
  const { reason = '', message = '' } = end
  const final =
    end.type === 'FailureTarget'
      ? failedFor(end, nowMs)
      : jobCondition('Complete', { status: 'True', reason, message }, nowMs)
  return { status: { ...status, conditions }, final }
}

/** Counts the uids of pods that no longer have the finalizer. `held`: the uids of those that have it. */
export function settleCounts(status: JobStatus, held: ReadonlySet<string>): JobStatus {
  const { succeeded = [], failed = [] } = status.uncountedTerminatedPods ?? {}
  const left = {
    succeeded: succeeded.filter((uid) => held.has(uid)),
    failed: failed.filter((uid) => held.has(uid)),
  }
  return {
    ...status,
    succeeded: (status.succeeded ?? 0) + succeeded.length - left.succeeded.length,
    failed: (status.failed ?? 0) + failed.length - left.failed.length,
    uncountedTerminatedPods: left,
  }
}

/** With the condition that ends the Job; undefined while pods are left to be counted, or to end (enactJobFinished). */
export function finishedStatus(
  status: JobStatus,
  { final, isPartial }: Pick<Tracking, 'final' | 'isPartial'>,
): JobStatus | undefined {
  const { succeeded = [], failed = [] } = status.uncountedTerminatedPods ?? {}
  if (final === undefined || isPartial || succeeded.length + failed.length > 0) return undefined
  if ((status.terminating ?? 0) > 0) return undefined
  const { lastTransitionTime } = final
  const isComplete = final.type === 'Complete' && lastTransitionTime !== undefined
  return {
    ...status,
    conditions: withCondition(status.conditions ?? [], final).conditions,
    ...(isComplete && { completionTime: lastTransitionTime }),
  }
}

/** As Kubernetes writes it: what is zero is left out, what Go points to is not. */
export function writtenStatus(status: JobStatus): JobStatus {
  const { active, succeeded, failed, completedIndexes, uncountedTerminatedPods, conditions, ...rest } = status
  const { succeeded: waiting = [], failed: waitingFailed = [] } = uncountedTerminatedPods ?? {}
  return {
    ...(conditions && conditions.length > 0 && { conditions }),
    ...rest,
    ...(active && { active }),
    ...(succeeded && { succeeded }),
    ...(failed && { failed }),
    ...(completedIndexes && { completedIndexes }),
    uncountedTerminatedPods: {
      ...(waiting.length > 0 && { succeeded: waiting }),
      ...(waitingFailed.length > 0 && { failed: waitingFailed }),
    },
  }
}
