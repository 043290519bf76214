import { test } from 'tap'
import type { JobStatus } from '../../../../api/batch/job.ts'
import { aStoredJob, midnightMs, timeAt } from '../../../testing/job-objects.ts'
import { jobWorld } from '../../../testing/job-world.ts'
import { ttlLeftMs } from './ttl-after-finished.ts'

const ended = (type: string, lastTransitionTime?: string): JobStatus => ({
  conditions: [{ type, status: 'True', ...(lastTransitionTime !== undefined && { lastTransitionTime }) }],
})
const left = (status: JobStatus, afterSeconds = 0, ttlSecondsAfterFinished: number | undefined = 60, metadata = {}) =>
  ttlLeftMs(
    aStoredJob(ttlSecondsAfterFinished === undefined ? {} : { ttlSecondsAfterFinished }, status, metadata),
    midnightMs + afterSeconds * 1000,
  )

test('a Job stays for its time to live after it completed or failed', async (t) => {
  for (const type of ['Complete', 'Failed']) {
    t.equal(left(ended(type, timeAt(10)), 30), 40_000)
    t.equal(left(ended(type, timeAt(10)), 70), 0)
    t.equal(left(ended(type, timeAt(10)), 9999), 0)
  }
  t.equal(left(ended('Complete', timeAt(10)), 10, 0), 0, 'a time of 0 is at once')
})

test('a Job stays that has no time to live, has not ended or is being deleted', async (t) => {
  t.equal(ttlLeftMs(aStoredJob({}, ended('Complete', timeAt(0))), midnightMs), undefined)
  t.equal(left({}), undefined)
  t.equal(left(ended('Suspended', timeAt(0))), undefined)
  t.equal(left(ended('Complete', timeAt(0)), 0, 60, { deletionTimestamp: timeAt(0) }), undefined)
  t.equal(left(ended('Complete')), undefined, 'it is not known when it ended')
  t.equal(left(ended('Complete', 'yesterday')), undefined)
})

test('a Job that is given more time before its end stays for that', async (t) => {
  const world = await jobWorld(t)
  await world.create({ ttlSecondsAfterFinished: 60 })
  await world.settle()
  await world.endAll(0)
  await world.settle(30_000)
  await world.edit('jobs', 'work', (job) => ({ ...job, spec: { ...job.spec, ttlSecondsAfterFinished: 300 } }))
  await world.settle(60_000)
  t.equal((await world.job())?.metadata.deletionTimestamp, undefined)
  await world.settle(211_000)
  t.match((await world.job())?.metadata, { deletionTimestamp: /^2026/ })
})

test('a date that jumps ahead ends what is over by the new date', async (t) => {
  const world = await jobWorld(t)
  await world.create({ ttlSecondsAfterFinished: 3600 })
  await world.settle()
  await world.endAll(0)
  world.clock.setWall(Date.parse('2030-01-01T00:00:00Z'))
  await world.settle(15_000)
  t.match((await world.job())?.metadata, { deletionTimestamp: /^2030/ })
})
