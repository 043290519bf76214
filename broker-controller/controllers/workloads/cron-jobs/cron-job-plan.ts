/** What a visit does about a CronJob (syncCronJob and cleanupFinishedJobs in pkg/controller/cronjob). Pure. */
import type { CronJobStatus } from '../../../../api/batch/cron-job.ts'
import { parseSchedule, type Schedule } from '../../../../api/batch/cron-schedule.ts'
import { finishedConditionOf, type Job, jobNames } from '../../../../api/batch/job.ts'
import { type TimeZone, timeZone, utc } from '../../../../api/batch/time-zone.ts'
import { rfc3339 } from '../../../../daemon/clock.ts'
import type { Occurrence } from '../../../store/event-correlation.ts'
import type { StoredObject } from '../../../store/store.ts'
import { controllerReference } from '../controller-ref.ts'
import { countsFromWrongClock, nextScheduleInMs, recentSchedule } from './cron-job-times.ts'

export type StoredCronJob = StoredObject<'cronjobs'>
type StoredJob = StoredObject<'jobs'>
export type CronJobEvent = Pick<Occurrence, 'type' | 'reason' | 'message'>

export type CronJobPlan = {
  /** With what the Jobs have become. */
  readonly status: CronJobStatus
  readonly events: readonly CronJobEvent[]
  /** Finished Jobs beyond the limits of the history. */
  readonly remove: readonly StoredJob[]
  /** A Job that is due. `replace`: Jobs that it takes the place of. */
  readonly start?: { readonly scheduledMs: number; readonly replace: readonly StoredJob[] }
}

export type CronJobVisit = {
  /** Time zone of schedules that name none. */
  readonly localZone: TimeZone
  /** It begins with its next time: what it would have been before is not made up for (updateCronJob). */
  readonly isNewSchedule: boolean
  readonly nowMs: number
}

/** `jobs`: those that the CronJob controls. */
export function planCronJob(
  given: StoredCronJob,
  jobs: readonly StoredJob[],
  { localZone, isNewSchedule, nowMs }: CronJobVisit,
): CronJobPlan {
  const cronJob = countsFromWrongClock(given, nowMs) ? countingFrom(given, nowMs) : given
  const remove = beyondHistory(cronJob, jobs)
  const seen = withJobs(cronJob, jobs, new Set(remove))
  if (cronJob.metadata.deletionTimestamp !== undefined || isNewSchedule) return { ...seen, remove }
  const running = jobs.filter((job) => finishedConditionOf(job) === undefined && isScheduled(job, seen.status))
  const due = dueStart({ ...cronJob, status: seen.status }, running, localZone, nowMs)
  return { ...seen, remove, events: [...seen.events, ...due.events], ...(due.start && { start: due.start }) }
}

/** Created by this controller. One that was made of the template by hand stays beside the Jobs of the schedule. */
function isScheduled({ metadata }: StoredJob, { active = [] }: CronJobStatus): boolean {
  return (
    metadata.annotations?.[jobNames.scheduledTimestamp] !== undefined || active.some(({ uid }) => uid === metadata.uid)
  )
}

/** Kept in the status, so that the next time counts from the same moment. */
function countingFrom(cronJob: StoredCronJob, nowMs: number): StoredCronJob {
  return { ...cronJob, status: { ...cronJob.status, lastScheduleTime: rfc3339(nowMs) } }
}

/** Those that started first, of each outcome. */
function beyondHistory({ spec }: StoredCronJob, jobs: readonly StoredJob[]): readonly StoredJob[] {
  const ended = (type: string) => jobs.filter((job) => finishedConditionOf(job)?.type === type)
  const oldest = (found: readonly StoredJob[], limit = Number.POSITIVE_INFINITY) =>
    [...found].sort(byStart).slice(0, Math.max(0, found.length - limit))
  return [
    ...oldest(ended('Complete'), spec.successfulJobsHistoryLimit),
    ...oldest(ended('Failed'), spec.failedJobsHistoryLimit),
  ]
}

function byStart(a: StoredJob, b: StoredJob): number {
  const [one, other] = [a.status?.startTime ?? '~', b.status?.startTime ?? '~']
  if (one !== other) return one < other ? -1 : 1
  return a.metadata.name < b.metadata.name ? -1 : 1
}

function withJobs(
  { metadata, status = {} }: StoredCronJob,
  jobs: readonly StoredJob[],
  removed: ReadonlySet<StoredJob>,
): Pick<CronJobPlan, 'status' | 'events'> {
  const uidsOf = (some: Iterable<StoredJob>) => new Set([...some].map((job) => job.metadata.uid))
  const gone = uidsOf(removed)
  const known = (status.active ?? []).filter(({ uid = '' }) => !gone.has(uid))
  const sightings = jobs.flatMap((job) => {
    const isActive = known.some(({ uid }) => uid === job.metadata.uid)
    return sightingOf(job, isActive, metadata.deletionTimestamp !== undefined) ?? []
  })
  const ended = uidsOf(jobs.filter((job) => finishedConditionOf(job) !== undefined))
  const present = uidsOf(jobs)
  const running = known.filter(({ uid = '' }) => !ended.has(uid))
  const missing = running.filter(({ uid = '' }) => !present.has(uid))
  const active = running.filter(({ uid = '' }) => present.has(uid))
  const { active: _, lastSuccessfulTime: before, ...rest } = status
  const lastSuccessfulTime = lastSuccess(jobs, before)
  return {
    events: [
      ...sightings,
      ...missing.map(({ name }): CronJobEvent => {
        return { type: 'Normal', reason: 'MissingJob', message: `Active job went missing: ${name}` }
      }),
    ],
    status: {
      ...(active.length > 0 && { active }),
      ...rest,
      ...(lastSuccessfulTime !== undefined && { lastSuccessfulTime }),
    },
  }
}

/** `isActive`: the status has it. undefined: nothing is new about the Job. */
function sightingOf(job: StoredJob, isActive: boolean, isLeaving: boolean): CronJobEvent | undefined {
  const { name } = job.metadata
  const end = finishedConditionOf(job)
  if (end === undefined) {
    if (isActive || isLeaving) return undefined
    const message = `Saw a job that the controller did not create or forgot: ${name}`
    return { type: 'Warning', reason: 'UnexpectedJob', message }
  }
  if (!isActive) return undefined
  return { type: 'Normal', reason: 'SawCompletedJob', message: `Saw completed job: ${name}, condition: ${end.type}` }
}

function lastSuccess(jobs: readonly StoredJob[], before: string | undefined): string | undefined {
  const times = jobs
    .filter((job) => finishedConditionOf(job)?.type === 'Complete')
    .map(({ status }) => status?.completionTime ?? '')
  return times.reduce((last, time) => (time > (last ?? '') ? time : last), before)
}

type Due = Pick<CronJobPlan, 'start'> & { readonly events: readonly CronJobEvent[] }

/** `running`: with those that a crash kept out of the status, so that two Jobs never run where one is allowed. */
function dueStart(cronJob: StoredCronJob, running: readonly StoredJob[], localZone: TimeZone, nowMs: number): Due {
  const { spec, status = {}, metadata } = cronJob
  const read = scheduleOf(cronJob, localZone)
  if (read.schedule === undefined || spec.suspend === true) return { events: spec.suspend ? [] : read.events }
  const { schedule, events } = read
  const nothing = (event?: CronJobEvent): Due => ({ events: event === undefined ? events : [...events, event] })
  const recent = recentSchedule(cronJob, schedule, nowMs, true)
  if (!recent.ok) return nothing(warning('InvalidSchedule', `invalid schedule: ${spec.schedule} : ${recent.problem}`))
  const { recentMs } = recent
  if (recentMs === undefined) return nothing()
  const missed = 'too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew'
  const warned = recent.missed === 'many' ? [...events, warning('TooManyMissedTimes', missed)] : events
  const name = scheduledJobName(metadata.name, recentMs)
  if (status.active?.some((one) => one.name === name)) return { events: warned }
  // The Job of this minute may be there: a crash kept it out of the status. It is created again, which finds it.
  const others = running.filter((job) => job.metadata.name !== name)
  if (spec.concurrencyPolicy === 'Forbid' && others.length > 0) {
    const message = 'Not starting job because prior execution is running and concurrency policy is Forbid'
    return { events: [...warned, { type: 'Normal', reason: 'JobAlreadyActive', message }] }
  }
  const replace = spec.concurrencyPolicy === 'Replace' ? others : []
  return { events: warned, start: { scheduledMs: recentMs, replace } }
}

export type ReadSchedule = { readonly schedule: Schedule | undefined; readonly events: readonly CronJobEvent[] }

/** A schedule that cannot be read starts nothing until it is changed. */
export function scheduleOf({ spec }: Pick<StoredCronJob, 'spec'>, localZone: TimeZone): ReadSchedule {
  const { schedule: text = '', timeZone: name } = spec
  const zone = name === undefined ? localZone : timeZone(name)
  if (zone === undefined) {
    const message = `invalid timeZone: ${JSON.stringify(name)}: unknown time zone ${name}`
    return { schedule: undefined, events: [warning('UnknownTimeZone', message)] }
  }
  const page = 'https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/'
  const unsupported = `CRON_TZ or TZ used in schedule ${JSON.stringify(text)} is not officially supported, see ${page} for more details`
  const events = text.includes('TZ') ? [warning('UnsupportedSchedule', unsupported)] : []
  const parsed = parseSchedule(text, zone)
  if (parsed.ok) return { schedule: parsed.schedule, events }
  const message = `unparseable schedule: ${JSON.stringify(text)} : ${parsed.problem}`
  return { schedule: undefined, events: [...events, warning('UnparseableSchedule', message)] }
}

function warning(reason: string, message: string): CronJobEvent {
  return { type: 'Warning', reason, message }
}

/** undefined: not before the CronJob or one of its Jobs changes. */
export function nextLookInMs(cronJob: StoredCronJob, localZone: TimeZone, nowMs: number): number | undefined {
  const { metadata, spec } = cronJob
  const { schedule } = scheduleOf(cronJob, localZone)
  if (schedule === undefined || spec.suspend === true || metadata.deletionTimestamp !== undefined) return undefined
  return nextScheduleInMs(cronJob, schedule, nowMs)
}

/** The same name for the same minute: creating it twice finds it the second time (getJobName). */
export function scheduledJobName(cronJob: string, scheduledMs: number): string {
  return `${cronJob}-${Math.floor(scheduledMs / 60_000)}`
}

/** getJobFromTemplate2. */
export function scheduledJob(cronJob: StoredCronJob, scheduledMs: number): Job {
  const { metadata, spec } = cronJob
  const { metadata: given = {}, spec: job } = spec.jobTemplate
  const zone = timeZone(spec.timeZone ?? 'UTC') ?? utc
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      name: scheduledJobName(metadata.name, scheduledMs),
      ...(metadata.namespace !== undefined && { namespace: metadata.namespace }),
      ...(given.labels && { labels: given.labels }),
      annotations: { ...given.annotations, [jobNames.scheduledTimestamp]: zone.format(scheduledMs) },
      ownerReferences: [controllerReference(cronJob)],
    },
    spec: job,
  }
}
