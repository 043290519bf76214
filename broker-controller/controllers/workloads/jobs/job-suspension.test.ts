import { test } from 'tap'
import type { JobStatus } from '../../../../api/batch/job.ts'
import { aStoredJob, midnightMs, timeAt } from '../../../testing/job-objects.ts'
import { activeSinceMs, startedStatus, suspensionOf } from './job-suspension.ts'

const nowMs = midnightMs + 60_000
const job = (suspend: boolean | undefined, status?: JobStatus) =>
  aStoredJob(suspend === undefined ? {} : { suspend }, status)
const wasSuspended: JobStatus = { startTime: timeAt(5), conditions: [{ type: 'Suspended', status: 'True' }] }
const wasResumed: JobStatus = { startTime: timeAt(5), conditions: [{ type: 'Suspended', status: 'False' }] }

test('a Job starts with the first visit that does not find it suspended', async (t) => {
  t.same(startedStatus(job(undefined), nowMs), { startTime: timeAt(60) })
  t.same(startedStatus(job(false, { active: 1 }), nowMs), { active: 1, startTime: timeAt(60) })
  t.same(startedStatus(job(true), nowMs), {})
  t.same(startedStatus(job(false, { startTime: timeAt(5) }), nowMs), { startTime: timeAt(5) })
})

test('a Job is active since its start, or since it is resumed', async (t) => {
  const since = (suspend: boolean, status: JobStatus) => activeSinceMs(job(suspend, status), status, nowMs)
  t.equal(since(false, { startTime: timeAt(5) }), midnightMs + 5000)
  t.equal(since(false, wasResumed), midnightMs + 5000)
  t.equal(since(false, wasSuspended), nowMs)
  t.equal(since(true, wasSuspended), midnightMs + 5000)
  t.equal(since(true, {}), undefined)
})

test('a Job that is suspended has the condition, with an Event, once', async (t) => {
  t.same(suspensionOf(job(true), {}, nowMs), {
    status: {
      conditions: [
        {
          type: 'Suspended',
          status: 'True',
          lastProbeTime: timeAt(60),
          lastTransitionTime: timeAt(60),
          reason: 'JobSuspended',
          message: 'Job suspended',
        },
      ],
    },
    event: { type: 'Normal', reason: 'Suspended', message: 'Job suspended' },
  })
  const { status = {} } = suspensionOf(job(true), {}, nowMs) ?? {}
  t.equal(suspensionOf(job(true), status, nowMs), undefined)
})

test('a Job that is resumed starts again', async (t) => {
  t.match(suspensionOf(job(false), wasSuspended, nowMs), {
    status: { startTime: timeAt(60), conditions: [{ type: 'Suspended', status: 'False', reason: 'JobResumed' }] },
    event: { type: 'Normal', reason: 'Resumed', message: 'Job resumed' },
  })
  t.equal(suspensionOf(job(undefined), {}, nowMs), undefined, 'one that never was suspended has no condition')
})

test('a Job that is being deleted is neither suspended nor resumed', async (t) => {
  const leaving = aStoredJob({ suspend: true }, undefined, { deletionTimestamp: timeAt(0) })
  t.equal(suspensionOf(leaving, {}, nowMs), undefined)
})
