import { test } from 'tap'
import type { CronJobSpec, CronJobStatus } from '../../../../api/batch/cron-job.ts'
import { jobNames } from '../../../../api/batch/job.ts'
import { timeZone, utc } from '../../../../api/batch/time-zone.ts'
import type { ObjectMeta } from '../../../../api/meta.ts'
import type { StoredObject } from '../../../store/store.ts'
import { aStoredJob } from '../../../testing/job-objects.ts'
import { type CronJobVisit, nextLookInMs, planCronJob, type StoredCronJob, scheduledJob } from './cron-job-plan.ts'

const time = (text: string) => `2026-01-01T${text}:00Z`
const minuteOf = (text: string) => Date.parse(time(text)) / 60_000
function aCronJob(spec: Partial<CronJobSpec> = {}, status?: CronJobStatus, metadata: ObjectMeta = {}): StoredCronJob {
  return {
    apiVersion: 'batch/v1',
    kind: 'CronJob',
    metadata: {
      name: 'tick',
      namespace: 'default',
      uid: 'uid-of-tick',
      resourceVersion: '1',
      creationTimestamp: time('10:00'),
      ...metadata,
    },
    spec: { schedule: '0 * * * *', jobTemplate: { spec: { template: { spec: { containers: [] } } } }, ...spec },
    ...(status && { status }),
  }
}
type GivenJob = { readonly ended?: 'Complete' | 'Failed'; readonly at?: string; readonly byHand?: boolean }
/** Started at `at`, ended a minute after. */
function aJob(name: string, { ended, at, byHand }: GivenJob = {}): StoredObject<'jobs'> {
  const completionTime = at === undefined ? undefined : new Date(Date.parse(time(at)) + 60_000).toISOString()
  return aStoredJob(
    {},
    {
      ...(at !== undefined && { startTime: time(at) }),
      ...(ended !== undefined && completionTime !== undefined && { completionTime }),
      conditions: ended === undefined ? [] : [{ type: ended, status: 'True' }],
    },
    {
      name,
      uid: `uid-of-${name}`,
      ...(!byHand && { annotations: { [jobNames.scheduledTimestamp]: time(at ?? '10:00') } }),
    },
  )
}
const active = (...names: readonly string[]) => names.map((name) => ({ name, uid: `uid-of-${name}` }))
type World = {
  readonly cronJob?: StoredCronJob
  readonly jobs?: readonly StoredObject<'jobs'>[]
  readonly at?: string
} & Partial<CronJobVisit>
function plan({ cronJob = aCronJob(), jobs = [], at = '10:30', ...visit }: World) {
  const given = { localZone: utc, isNewSchedule: false, nowMs: Date.parse(time(at)), ...visit }
  const { status, events, remove, start } = planCronJob(cronJob, jobs, given)
  return {
    status,
    events: events.map(({ type, reason, message }) => `${type} ${reason}: ${message}`),
    remove: remove.map(({ metadata }) => metadata.name),
    start: start && {
      at: new Date(start.scheduledMs).toISOString().slice(11, 16),
      replace: start.replace.map(({ metadata }) => metadata.name),
    },
  }
}
const idle = { status: {}, events: [], remove: [], start: undefined }
const startAt = (at: string, ...replace: readonly string[]) => ({ at, replace })

test('a Job is started when its time has come, once', async (t) => {
  t.same(plan({}), idle)
  t.notOk('lastSuccessfulTime' in plan({}).status)
  t.same(plan({ at: '11:00' }), { ...idle, start: startAt('11:00') })
  t.equal(plan({ at: '11:00', cronJob: aCronJob({}, { lastScheduleTime: time('11:00') }) }).start, undefined)
  const name = `tick-${minuteOf('11:00')}`
  const running = aCronJob({}, { active: active('other', name) })
  t.equal(plan({ at: '11:05', cronJob: running, jobs: [aJob('other'), aJob(name)] }).start, undefined)
})

test('a suspended CronJob, one that is being deleted and one with a new schedule start nothing', async (t) => {
  t.same(plan({ at: '11:00', cronJob: aCronJob({ suspend: true }) }), idle)
  t.same(plan({ at: '11:00', cronJob: aCronJob({ suspend: true, schedule: 'never' }) }), idle)
  t.same(plan({ at: '11:00', cronJob: aCronJob({}, undefined, { deletionTimestamp: time('11:00') }) }), idle)
  t.same(plan({ at: '11:00', isNewSchedule: true }), idle)
})

test('the concurrency policy decides about Jobs of the schedule that run', async (t) => {
  const with_ = (concurrencyPolicy: string, jobs: readonly StoredObject<'jobs'>[], status?: CronJobStatus) =>
    plan({ at: '11:00', cronJob: aCronJob({ concurrencyPolicy }, status), jobs })
  const one = aJob('one')
  const noted = { active: active('one') }
  const refused = 'Not starting job because prior execution is running and concurrency policy is Forbid'
  t.same(with_('Allow', [one], noted).start, startAt('11:00'))
  t.match(with_('Forbid', [one], noted), { start: undefined, events: [`Normal JobAlreadyActive: ${refused}`] })
  t.equal(with_('Forbid', [one]).start, undefined, 'also if a crash kept it out of the status')
  t.same(with_('Replace', [one], noted).start, startAt('11:00', 'one'))
  t.same(with_('Replace', [one]).start, startAt('11:00', 'one'))
  const over = aJob('one', { ended: 'Complete' })
  t.same(with_('Forbid', [over], noted).start, startAt('11:00'))
  t.same(with_('Replace', [over], noted).start, startAt('11:00'))
  const byHand = aJob('by-hand', { byHand: true })
  t.same(with_('Forbid', [byHand]).start, startAt('11:00'))
  t.same(with_('Replace', [byHand]).start, startAt('11:00'))
  t.same(with_('Replace', [byHand, one], noted).start, startAt('11:00', 'one'))
  t.equal(with_('Forbid', [byHand], { active: active('by-hand') }).start, undefined)
  const ofThisTime = aJob(`tick-${minuteOf('11:00')}`)
  t.same(with_('Forbid', [ofThisTime]).start, startAt('11:00'), 'the Job of this time is taken over')
  t.same(with_('Replace', [ofThisTime]).start, startAt('11:00'))
})

test('a time that is missed by more than the deadline is not made up for', async (t) => {
  const at = (now: string, seconds: number) =>
    plan({ cronJob: aCronJob({ startingDeadlineSeconds: seconds }), nowMs: Date.parse(now) })
  t.same(at('2026-01-01T11:01:00Z', 60), idle, 'it no longer counts as missed')
  t.same(at('2026-01-01T11:00:59Z', 60).start, startAt('11:00'))
  t.same(at('2026-01-01T11:00:00Z', 0), idle)
})

test('a hundred missed times are a sign of a wrong clock, and one Job is started', async (t) => {
  const many = 'too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew'
  const years = plan({ nowMs: Date.parse('2031-01-01T00:30:00Z') })
  t.match(years, { events: [`Warning TooManyMissedTimes: ${many}`], start: startAt('00:00') })
})

test('a schedule that cannot be read, or never comes, is reported', async (t) => {
  const events = (spec: Partial<CronJobSpec>) => {
    const found = plan({ at: '12:00', cronJob: aCronJob(spec) })
    t.equal(found.start, undefined)
    return found.events
  }
  t.match(events({ schedule: 'never' }), [/^Warning UnparseableSchedule: unparseable schedule: "never" : expected/])
  t.same(events({ timeZone: 'Mars/Base' }), [
    'Warning UnknownTimeZone: invalid timeZone: "Mars/Base": unknown time zone Mars/Base',
  ])
  t.same(events({ schedule: '0 0 31 2 *' }), [
    'Warning InvalidSchedule: invalid schedule: 0 0 31 2 * : time difference between two schedules is less than 1 second',
  ])
  const { events: warned, start } = plan({ at: '11:00', cronJob: aCronJob({ schedule: 'TZ=UTC 0 * * * *' }) })
  t.same(start, startAt('11:00'))
  t.match(warned, [/^Warning UnsupportedSchedule: CRON_TZ or TZ used in schedule "TZ=UTC 0 \* \* \* \*"/])
})

test('a schedule is in its zone, or else in that of the machine', async (t) => {
  const tokyo = timeZone('Asia/Tokyo') ?? utc
  const daily = { schedule: '0 20 * * *' }
  t.same(plan({ at: '11:00', cronJob: aCronJob(daily), localZone: tokyo }).start, startAt('11:00'))
  t.equal(plan({ at: '11:00', cronJob: aCronJob(daily) }).start, undefined)
  const inTokyo = aCronJob({ ...daily, timeZone: 'Asia/Tokyo' })
  t.same(plan({ at: '11:00', cronJob: inTokyo }).start, startAt('11:00'))
  const { metadata } = scheduledJob(inTokyo, Date.parse(time('11:00')))
  t.equal(metadata.annotations?.[jobNames.scheduledTimestamp], '2026-01-01T20:00:00+09:00')
})

test('a Job of the schedule is that of the template, named after the minute', async (t) => {
  const template = { template: { spec: { containers: [] } }, completions: 3 }
  const labels = { app: 'tick' }
  const jobTemplate = { metadata: { labels, annotations: { a: 'b' } }, spec: template }
  t.same(scheduledJob(aCronJob({ jobTemplate }), Date.parse(time('11:00')) + 30_000), {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      name: `tick-${minuteOf('11:00')}`,
      namespace: 'default',
      labels,
      annotations: { a: 'b', [jobNames.scheduledTimestamp]: '2026-01-01T11:00:30Z' },
      ownerReferences: [
        {
          apiVersion: 'batch/v1',
          kind: 'CronJob',
          name: 'tick',
          uid: 'uid-of-tick',
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
    },
    spec: template,
  })
  t.notOk('labels' in scheduledJob(aCronJob(), 0).metadata)
})

test('the history keeps the Jobs of each outcome that started last', async (t) => {
  const jobs = [
    aJob('c3', { ended: 'Complete', at: '10:03' }),
    aJob('c1', { ended: 'Complete', at: '10:01' }),
    aJob('c2', { ended: 'Complete', at: '10:02' }),
    aJob('f2', { ended: 'Failed', at: '10:02' }),
    aJob('f1', { ended: 'Failed', at: '10:01' }),
    aJob('running', { at: '10:00' }),
  ]
  const removed = (spec: Partial<CronJobSpec>, from = jobs) => plan({ cronJob: aCronJob(spec), jobs: from }).remove
  t.same(removed({ successfulJobsHistoryLimit: 2, failedJobsHistoryLimit: 0 }), ['c1', 'f1', 'f2'])
  t.same(removed({ successfulJobsHistoryLimit: 1 }), ['c1', 'c2'])
  t.same(removed({ successfulJobsHistoryLimit: 3, failedJobsHistoryLimit: 5 }), [])
  t.same(removed({}), [])
  const same = ['b', 'c', 'a'].map((name) => aJob(name, { ended: 'Failed', at: '10:01' }))
  t.same(removed({ failedJobsHistoryLimit: 1 }, same), ['a', 'b'], 'by name, where they started together')
  const unstarted = [aJob('a', { ended: 'Failed' }), aJob('b', { ended: 'Failed', at: '10:01' })]
  t.same(removed({ failedJobsHistoryLimit: 1 }, unstarted), ['b'])
  t.same(removed({ failedJobsHistoryLimit: 1 }, [...unstarted].reverse()), ['b'])
})

test('a Job that ends is no longer active, and the last success is noted', async (t) => {
  const cronJob = aCronJob({}, { active: active('one', 'two'), lastScheduleTime: time('10:00') })
  const jobs = [aJob('one', { ended: 'Complete', at: '10:05' }), aJob('two')]
  t.same(plan({ cronJob, jobs }), {
    ...idle,
    status: {
      active: active('two'),
      lastScheduleTime: time('10:00'),
      lastSuccessfulTime: '2026-01-01T10:06:00.000Z',
    },
    events: ['Normal SawCompletedJob: Saw completed job: one, condition: Complete'],
  })
  const failed = plan({ cronJob, jobs: [aJob('one', { ended: 'Failed', at: '10:05' }), aJob('two')] })
  t.equal(failed.status.lastSuccessfulTime, undefined)
  t.same(failed.events, ['Normal SawCompletedJob: Saw completed job: one, condition: Failed'])
})

test('the last success never goes back', async (t) => {
  const last = (lastSuccessfulTime: string, ...jobs: readonly StoredObject<'jobs'>[]) =>
    plan({ cronJob: aCronJob({}, { lastSuccessfulTime }), jobs }).status.lastSuccessfulTime
  const early = aJob('a', { ended: 'Complete', at: '10:01' })
  t.equal(last(time('10:30'), early), time('10:30'))
  t.equal(last(time('10:00'), aJob('b', { ended: 'Complete', at: '10:09' }), early), '2026-01-01T10:10:00.000Z')
  t.equal(last(time('10:00'), aJob('c', { ended: 'Complete' })), time('10:00'))
})

test('a Job that is gone, or that is not in the status, is reported', async (t) => {
  const cronJob = aCronJob({}, { active: active('gone', 'one') })
  t.match(plan({ cronJob, jobs: [aJob('one'), aJob('other')] }), {
    status: { active: active('one') },
    events: [
      'Warning UnexpectedJob: Saw a job that the controller did not create or forgot: other',
      'Normal MissingJob: Active job went missing: gone',
    ],
  })
  const leaving = aCronJob({}, undefined, { deletionTimestamp: time('10:00') })
  t.same(plan({ cronJob: leaving, jobs: [aJob('other')] }).events, [])
})

test('a Job that the history gives up is not reported as ended', async (t) => {
  const cronJob = aCronJob({ failedJobsHistoryLimit: 0 }, { active: active('one') })
  const found = plan({ cronJob, jobs: [aJob('one', { ended: 'Failed' })] })
  t.same(found, { ...idle, remove: ['one'] })
})

test('a last time that a wrong clock wrote is put right, so that the next one counts from now', async (t) => {
  const cronJob = aCronJob({}, { lastScheduleTime: '2031-01-01T00:00:00Z' })
  t.same(plan({ cronJob }).status, { lastScheduleTime: time('10:30') })
  const close = aCronJob({}, { lastScheduleTime: time('11:00') })
  t.same(plan({ cronJob: close }).status, { lastScheduleTime: time('11:00') })
})

test('the next look is at the next time, or never', async (t) => {
  const look = (cronJob: StoredCronJob) => nextLookInMs(cronJob, utc, Date.parse(time('10:30')))
  t.equal(look(aCronJob()), 30 * 60_000 + 100)
  t.equal(look(aCronJob({ suspend: true })), undefined)
  t.equal(look(aCronJob({ schedule: 'never' })), undefined)
  t.equal(look(aCronJob({}, undefined, { deletionTimestamp: time('10:00') })), undefined)
})
