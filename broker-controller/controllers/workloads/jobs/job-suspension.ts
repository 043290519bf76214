/** Suspension of a Job, and since when it is active (syncJob in pkg/controller/job/job_controller.go). Pure. */
import { hasJobCondition, type JobStatus } from '../../../../api/batch/job.ts'
import { rfc3339 } from '../../../../daemon/clock.ts'
import type { Occurrence } from '../../../store/event-correlation.ts'
import { jobCondition, withCondition } from './job-conditions.ts'
import type { StoredJob } from './job-view.ts'

export function isSuspended({ spec }: Pick<StoredJob, 'spec'>): boolean {
  return spec.suspend === true
}

/** With its start, where it is not suspended. */
export function startedStatus(job: StoredJob, nowMs: number): JobStatus {
  const { status = {} } = job
  return status.startTime !== undefined || isSuspended(job) ? status : { ...status, startTime: rfc3339(nowMs) }
}

/**
 * Since when the Job is active: a Job that is resumed begins again, as `activeDeadlineSeconds` is documented. Kubernetes 1.32
 * still counts from the first start on the visit that resumes it, and fails a Job that was suspended for longer. `status`:
 * with its start. undefined: it has not started.
 */
export function activeSinceMs(job: StoredJob, { startTime }: JobStatus, nowMs: number): number | undefined {
  if (!isSuspended(job) && hasJobCondition(job, 'Suspended')) return nowMs
  return startTime === undefined ? undefined : Date.parse(startTime)
}

export type Suspension = {
  readonly status: JobStatus
  readonly event: Pick<Occurrence, 'type' | 'reason' | 'message'>
}

/**
 * For a Job that has not ended: the condition `Suspended` if it changes, and the start time of a Job that is resumed.
 */
export function suspensionOf(job: StoredJob, status: JobStatus, nowMs: number): Suspension | undefined {
  if (job.metadata.deletionTimestamp !== undefined) return undefined
  const isNow = isSuspended(job)
  const [reason, message] = isNow ? ['JobSuspended', 'Job suspended'] : ['JobResumed', 'Job resumed']
  const wanted = jobCondition('Suspended', { status: isNow ? 'True' : 'False', reason, message }, nowMs)
  const { conditions, isNew } = withCondition(status.conditions ?? [], wanted)
  if (!isNew) return undefined
  return {
    status: { ...status, conditions, ...(!isNow && { startTime: rfc3339(nowMs) }) },
    event: { type: 'Normal', reason: isNow ? 'Suspended' : 'Resumed', message },
  }
}
