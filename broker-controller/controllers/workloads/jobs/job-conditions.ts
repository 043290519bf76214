/** Conditions of a Job as its controller writes them (newCondition and ensureJobConditionStatus in pkg/controller/job/job_controller.go). */
import type { JobCondition, JobConditionType } from '../../../../api/batch/job.ts'
import { rfc3339 } from '../../../../daemon/clock.ts'

export function jobCondition(
  type: JobConditionType,
  { status, reason, message }: { readonly status: 'True' | 'False'; readonly reason: string; readonly message: string },
  nowMs: number,
): JobCondition {
  const now = rfc3339(nowMs)
  return { type, status, lastProbeTime: now, lastTransitionTime: now, reason, message }
}

/** The end of a Job whose failure is decided: for the same reason, once nothing of it is left to be counted. */
export function failedFor({ reason = '', message = '' }: JobCondition, nowMs: number): JobCondition {
  return jobCondition('Failed', { status: 'True', reason, message }, nowMs)
}

/** A condition that turns false is kept; one that never was true is not added (ensureJobConditionStatus). */
export function withCondition(
  conditions: readonly JobCondition[],
  wanted: JobCondition,
): { readonly conditions: readonly JobCondition[]; readonly isNew: boolean } {
  const present = conditions.find(({ type }) => type === wanted.type)
  if (present === undefined) {
    return wanted.status === 'False'
      ? { conditions, isNew: false }
      : { conditions: [...conditions, wanted], isNew: true }
  }
  const { status, reason, message } = present
  if (status === wanted.status && reason === wanted.reason && message === wanted.message) {
    return { conditions, isNew: false }
  }
  return { conditions: conditions.map((one) => (one === present ? wanted : one)), isNew: true }
}
