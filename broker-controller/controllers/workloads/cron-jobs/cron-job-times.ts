/** When a CronJob starts its next Job (mostRecentScheduleTime in pkg/controller/cronjob/utils.go). Pure. */
import type { CronJob } from '../../../../api/batch/cron-job.ts'
import type { Schedule } from '../../../../api/batch/cron-schedule.ts'

export type RecentSchedule =
  | {
      readonly ok: true
      /** Schedules count from here. */
      readonly earliestMs: number
      /** The last one that is due; undefined: none is. */
      readonly recentMs?: number
      /** How many were missed, roughly; more than a hundred are a sign of a wrong clock. */
      readonly missed: 'none' | 'few' | 'many'
    }
  | { readonly ok: false; readonly problem: string; readonly earliestMs: number }

const manyMissed = 100
/** Kubernetes waits so much longer than it has to, for clocks that differ. */
const lateMs = 100
/** A clock that was set back by less only repeats minutes that are done. */
const wrongClockMs = 3_600_000

/** Schedules count from the last one that was started, or from the creation. NaN: neither is known. */
function sinceMs({ metadata, status }: CronJob): number {
  return Date.parse(status?.lastScheduleTime ?? metadata.creationTimestamp ?? '')
}

/**
 * Whether schedules count from a time that is more than an hour ahead: a clock that was wrong wrote it. Kubernetes starts
 * nothing until that time has come, which may be years.
 */
export function countsFromWrongClock(cronJob: CronJob, nowMs: number): boolean {
  return sinceMs(cronJob) > nowMs + wrongClockMs
}

/** `isBounded`: what is later than `startingDeadlineSeconds` does not count. */
export function recentSchedule(
  cronJob: CronJob,
  schedule: Schedule,
  nowMs: number,
  isBounded: boolean,
): RecentSchedule {
  const since = sinceMs(cronJob)
  const fromMs = Number.isNaN(since) || countsFromWrongClock(cronJob, nowMs) ? nowMs : since
  const { startingDeadlineSeconds } = cronJob.spec
  const isLimited = isBounded && startingDeadlineSeconds !== undefined
  const earliestMs = isLimited ? Math.max(fromMs, nowMs - startingDeadlineSeconds * 1000) : fromMs
  const first = schedule.next(earliestMs)
  if (first === undefined) {
    return { ok: false, earliestMs, problem: 'time difference between two schedules is less than 1 second' }
  }
  if (nowMs < first) return { ok: true, earliestMs, missed: 'none' }
  const second = schedule.next(first)
  if (second === undefined || nowMs < second) return { ok: true, earliestMs, recentMs: first, missed: 'none' }
  const count = Math.floor((nowMs - first) / (second - first)) + 1
  const recentMs = schedule.last(first, nowMs) ?? first
  return { ok: true, earliestMs, recentMs, missed: count > manyMissed ? 'many' : 'few' }
}

/** How long until the CronJob is looked at again; undefined: its schedule never comes (nextScheduleTimeDuration). */
export function nextScheduleInMs(cronJob: CronJob, schedule: Schedule, nowMs: number): number | undefined {
  const recent = recentSchedule(cronJob, schedule, nowMs, false)
  const fromMs = recent.ok ? (recent.recentMs ?? recent.earliestMs) : nowMs
  const next = schedule.next(fromMs)
  return next === undefined ? undefined : Math.max(0, next + lateMs - nowMs)
}
