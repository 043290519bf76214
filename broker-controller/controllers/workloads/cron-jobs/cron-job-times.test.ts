import { test } from 'tap'
import type { CronJob } from '../../../../api/batch/cron-job.ts'
import { parseSchedule } from '../../../../api/batch/cron-schedule.ts'
import { utc } from '../../../../api/batch/time-zone.ts'
import { nextScheduleInMs, recentSchedule } from './cron-job-times.ts'

const created = '2026-01-01T10:00:00Z'
const time = (text: string) => Date.parse(`2026-01-01T${text}Z`)
function cronJob(spec: Partial<CronJob['spec']> = {}, lastScheduleTime?: string): CronJob {
  const template = { spec: { containers: [] } }
  return {
    apiVersion: 'batch/v1',
    kind: 'CronJob',
    metadata: { name: 'tick', creationTimestamp: created },
    spec: { jobTemplate: { spec: { template } }, ...spec },
    ...(lastScheduleTime !== undefined && { status: { lastScheduleTime } }),
  }
}
const schedule = (text: string) => {
  const parsed = parseSchedule(text, utc)
  if (!parsed.ok) throw new Error(parsed.problem)
  return parsed.schedule
}
const hourly = schedule('0 * * * *')
const recent = (text: string, given = cronJob(), isBounded = true) => {
  const found = recentSchedule(given, hourly, time(text), isBounded)
  return found.ok
    ? { at: found.recentMs && utc.format(found.recentMs).slice(11, 16), missed: found.missed }
    : found.problem
}

test('nothing is due before the first time after the creation', async (t) => {
  t.same(recent('10:59:59'), { at: undefined, missed: 'none' })
  t.same(recent('11:00:00'), { at: '11:00', missed: 'none' })
})

test('after the last Job the next time counts', async (t) => {
  const started = cronJob({}, '2026-01-01T12:00:00Z')
  t.same(recent('12:30:00', started), { at: undefined, missed: 'none' })
  t.same(recent('13:00:00', started), { at: '13:00', missed: 'none' })
})

test('of several missed times the last is due, and their number is known roughly', async (t) => {
  t.same(recent('14:10:00'), { at: '14:00', missed: 'few' })
  const years = recentSchedule(cronJob(), hourly, Date.parse('2040-06-01T00:30:00Z'), true)
  t.match(years, { recentMs: Date.parse('2040-06-01T00:00:00Z'), missed: 'many' })
})

test('times before the deadline do not count', async (t) => {
  const short = cronJob({ startingDeadlineSeconds: 60 })
  t.same(recent('14:00:30', short), { at: '14:00', missed: 'none' })
  t.same(recent('14:10:00', short), { at: undefined, missed: 'none' })
  t.same(recent('14:10:00', short, false), { at: '14:00', missed: 'few' })
})

test('a schedule with gaps gives its last time, too', async (t) => {
  const office = schedule('30 6-16/4 * * 1-5')
  const friday = cronJob({}, '2026-01-02T10:30:00Z')
  const found = recentSchedule(friday, office, Date.parse('2026-01-07T11:00:00Z'), true)
  t.match(found, { ok: true, recentMs: Date.parse('2026-01-07T10:30:00Z') })
})

test('where the times are not evenly apart, the last one is found, too', async (t) => {
  const started = cronJob({}, '2026-01-01T09:00:00Z')
  const found = recentSchedule(started, schedule('0 8,9 * * *'), Date.parse('2026-01-03T07:30:00Z'), true)
  t.match(found, { ok: true, recentMs: Date.parse('2026-01-02T09:00:00Z') })
})

test('a time that does not come again within five years is due, too', async (t) => {
  const started = cronJob({}, '2096-01-01T00:00:00Z')
  const found = recentSchedule(started, schedule('0 0 29 2 *'), Date.parse('2096-02-29T00:00:01Z'), true)
  t.match(found, { ok: true, recentMs: Date.parse('2096-02-29T00:00:00Z'), missed: 'none' })
})

test('more than a hundred missed times are many', async (t) => {
  const missed = (hours: number) => {
    const found = recentSchedule(cronJob(), hourly, time('11:00:00') + hours * 3_600_000, true)
    return found.ok && found.missed
  }
  t.same([missed(0), missed(1), missed(99), missed(100)], ['none', 'few', 'few', 'many'])
})

test('an interval counts from the last Job, whatever the deadline', async (t) => {
  const late = cronJob({ startingDeadlineSeconds: 60 })
  t.equal(nextScheduleInMs(late, schedule('@every 1h'), time('14:10:00')), 50 * 60_000 + 100)
})

test('a schedule that never comes is an error', async (t) => {
  t.match(recentSchedule(cronJob(), schedule('0 0 31 2 *'), time('12:00:00'), true), {
    ok: false,
    problem: 'time difference between two schedules is less than 1 second',
  })
  t.equal(nextScheduleInMs(cronJob(), schedule('0 0 31 2 *'), time('12:00:00')), undefined)
})

test('a last time that is far ahead was written by a wrong clock', async (t) => {
  t.same(recent('12:30:00', cronJob({}, '2031-01-01T00:00:00Z')), { at: undefined, missed: 'none' })
  t.equal(nextScheduleInMs(cronJob({}, '2031-01-01T00:00:00Z'), hourly, time('12:30:00')), 30 * 60_000 + 100)
  t.equal(
    nextScheduleInMs(cronJob({}, '2026-01-01T13:00:00Z'), hourly, time('12:30:00')),
    90 * 60_000 + 100,
    'a little ahead',
  )
})

test('a last time that is an hour ahead is not far', async (t) => {
  t.equal(nextScheduleInMs(cronJob({}, '2026-01-01T13:30:00Z'), hourly, time('12:30:00')), 90 * 60_000 + 100)
})

test('the next look is a tenth of a second after the next time', async (t) => {
  t.equal(nextScheduleInMs(cronJob(), hourly, time('10:59:00')), 60_100)
  t.equal(nextScheduleInMs(cronJob({}, '2026-01-01T11:00:00Z'), hourly, time('11:00:01')), 3_599_000 + 100)
  t.equal(nextScheduleInMs(cronJob(), hourly, time('14:10:00')), 50 * 60_000 + 100)
})
