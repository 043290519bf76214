/** Whether a Job has ended, and why: the condition that ends it (syncJob in pkg/controller/job/job_controller.go). Pure. */
import { type JobCondition, jobConditionOf } from '../../../../api/batch/job.ts'
import { countCommon, countIndexes, parseIntervals } from '../../../../api/batch/job-indexes.ts'
import { failedFor, jobCondition } from './job-conditions.ts'
import { isSuspended } from './job-suspension.ts'
import type { JobView, StoredJob } from './job-view.ts'

/**
 * The condition that ends the Job: `SuccessCriteriaMet`, `FailureTarget`, or `Failed` where an earlier visit has already
 * decided on the failure. undefined: it continues. `sinceMs`: since when it is active.
 */
export function endOf(view: JobView, sinceMs: number | undefined, nowMs: number): JobCondition | undefined {
  const { job, failing } = view
  const met = jobConditionOf(job, 'SuccessCriteriaMet')
  if (met?.status === 'True') return met
  const target = jobConditionOf(job, 'FailureTarget')
  if (target?.status === 'True') return failedFor(target, nowMs)
  const failure = (reason: string, message: string) =>
    jobCondition('FailureTarget', { status: 'True', reason, message }, nowMs)
  if (failing !== undefined) return failure('PodFailurePolicy', failing)
  if (view.failed > (job.spec.backoffLimit ?? 6) || restartedTooOften(view)) {
    return failure('BackoffLimitExceeded', 'Job has reached the specified backoff limit')
  }
  if (deadlineLeftMs(job, sinceMs, nowMs) <= 0) {
    return failure('DeadlineExceeded', 'Job was active longer than specified deadline')
  }
  return endOfIndexes(view, failure) ?? endBySuccess(view, nowMs)
}

/** How long it may still be active; Infinity: as long as it takes, or it is suspended. */
export function deadlineLeftMs(job: StoredJob, sinceMs: number | undefined, nowMs: number): number {
  const { activeDeadlineSeconds } = job.spec
  if (activeDeadlineSeconds === undefined || sinceMs === undefined || isSuspended(job)) return Number.POSITIVE_INFINITY
  return sinceMs + activeDeadlineSeconds * 1000 - nowMs
}

/** Containers that are restarted in place count as failures (pastBackoffLimitOnFailure). */
function restartedTooOften({ job: { spec }, restarts }: JobView): boolean {
  if (spec.template.spec.restartPolicy !== 'OnFailure') return false
  const { backoffLimit = 6 } = spec
  return backoffLimit === 0 ? restarts > 0 : restarts >= backoffLimit
}

function endOfIndexes(
  { job, failedIndexes, succeededIndexes }: JobView,
  failure: (reason: string, message: string) => JobCondition,
): JobCondition | undefined {
  if (failedIndexes === undefined) return undefined
  const { maxFailedIndexes = Number.POSITIVE_INFINITY, completions = 0 } = job.spec
  const failed = countIndexes(failedIndexes)
  if (failed > maxFailedIndexes) {
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
  const place = (successPolicy.rules ?? []).findIndex(
    ({ succeededIndexes: wanted, succeededCount = Number.POSITIVE_INFINITY }) => {
      if (wanted === undefined) return countIndexes(succeededIndexes) >= succeededCount
      const needed = parseIntervals(wanted, completions)
      if (needed.length === 0) return false
      const common = countCommon(needed, succeededIndexes)
      return common === countIndexes(needed) || common >= succeededCount
    },
  )
  if (place === -1) return undefined
  const message = `Matched rules at index ${place}`
  return jobCondition('SuccessCriteriaMet', { status: 'True', reason: 'SuccessPolicy', message }, nowMs)
}

/** Whether a Job that nothing else has ended has done its work, with this many pods still active. */
export function completion({ job, succeeded }: JobView, active: number, nowMs: number): JobCondition | undefined {
  const { completions } = job.spec
  const isDone = (completions === undefined ? succeeded > 0 : succeeded >= completions) && active === 0
  if (!isDone) return undefined
  const reason = 'CompletionsReached'
  const message = 'Reached expected number of succeeded pods'
  return jobCondition('SuccessCriteriaMet', { status: 'True', reason, message }, nowMs)
}
