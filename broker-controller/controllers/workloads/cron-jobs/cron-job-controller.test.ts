import { test } from 'tap'
import type { CronJob, CronJobSpec } from '../../../../api/batch/cron-job.ts'
import type { Job, JobSpec } from '../../../../api/batch/job.ts'
import { timeZone, utc } from '../../../../api/batch/time-zone.ts'
import { metricsRegistry } from '../../../../daemon/metrics-registry.ts'
import { actingOn, type JobWorld, jobTemplate } from '../../../testing/job-world.ts'
import { workloadWorld } from '../../../testing/workload-world.ts'
import { ownedObjects } from '../owned-objects.ts'
import { workloadControllers } from '../workload-controllers.ts'
import { workloadMetrics } from '../workload-metrics.ts'
import { cronJobController } from './cron-job-controller.ts'

const minute = 60_000
const hour = 60 * minute
type World = JobWorld & {
  cron(spec?: Partial<CronJobSpec>, job?: Partial<JobSpec>): Promise<unknown>
  cronJob(): Promise<CronJob | undefined>
  jobs(): Promise<readonly Job[]>
  names(): Promise<readonly string[]>
}
type Test = Parameters<typeof workloadWorld>[0]

/** It is midnight of 2026-01-01, UTC. */
async function cronWorld(t: Test): Promise<World> {
  const world = await workloadWorld(t)
  world.start(workloadControllers(world.needs, utc))
  await world.settle()
  const { store, needs } = world
  const jobs = async () => (await store.list('jobs')).items
  return {
    ...actingOn(world),
    jobs,
    names: async () => (await jobs()).map(({ metadata }) => metadata.name).sort(),
    cronJob: () => store.get('cronjobs', { namespace: 'default', name: 'tick' }),
    cron: (spec = {}, job = {}) =>
      needs.creation.create(
        'cronjobs',
        {
          apiVersion: 'batch/v1',
          kind: 'CronJob',
          metadata: { name: 'tick', namespace: 'default' },
          spec: {
            schedule: '*/10 * * * *',
            jobTemplate: { metadata: { labels: { app: 'tick' } }, spec: { template: jobTemplate(), ...job } },
            ...spec,
          },
        },
        'test',
      ),
  }
}
const nameAt = (time: string) => `tick-${Date.parse(time) / minute}`

test('a CronJob creates a Job each time, named after the minute', async (t) => {
  const world = await cronWorld(t)
  await world.cron()
  await world.settle(9 * minute)
  t.same(await world.names(), [])
  await world.settle(2 * minute)
  t.same(await world.names(), [nameAt('2026-01-01T00:10:00Z')])
  const [job] = await world.jobs()
  t.match(job, {
    metadata: {
      labels: { app: 'tick' },
      annotations: { 'batch.kubernetes.io/cronjob-scheduled-timestamp': '2026-01-01T00:10:00Z' },
      ownerReferences: [{ apiVersion: 'batch/v1', kind: 'CronJob', name: 'tick', controller: true }],
    },
    spec: { parallelism: 1 },
  })
  t.match((await world.cronJob())?.status, {
    active: [{ kind: 'Job', apiVersion: 'batch/v1', name: job?.metadata.name, uid: job?.metadata.uid }],
    lastScheduleTime: '2026-01-01T00:10:00Z',
  })
  await world.endAll(0)
  t.match((await world.cronJob())?.status, { active: undefined, lastSuccessfulTime: /^2026-01-01T00:11/ })
  t.match(
    (await world.events()).filter((reason) => reason !== 'Completed'),
    ['SuccessfulCreate', 'SuccessfulCreate', 'SawCompletedJob'],
  )
})

test('it is measured how late a Job is created', async (t) => {
  const world = await workloadWorld(t)
  const registry = metricsRegistry()
  world.start(workloadControllers({ ...world.needs, workloadMetrics: workloadMetrics(registry) }, utc))
  await world.settle()
  const spec = { schedule: '* * * * *', jobTemplate: { spec: { template: jobTemplate() } } }
  const metadata = { name: 'tick', namespace: 'default' }
  await world.needs.creation.create('cronjobs', { apiVersion: 'batch/v1', kind: 'CronJob', metadata, spec }, 'test')
  await world.settle(minute + 1000)
  t.match(registry.text(), /cronjob_controller_job_creation_skew_duration_seconds_sum 0\.1\d*\n/)
})

test('the times are those of the zone', async (t) => {
  const world = await cronWorld(t)
  await world.cron({ schedule: '0 3 * * *', timeZone: 'Asia/Tokyo' })
  await world.settle(18 * hour + minute)
  const [job] = await world.jobs()
  t.equal(job?.metadata.annotations?.['batch.kubernetes.io/cronjob-scheduled-timestamp'], '2026-01-02T03:00:00+09:00')
})

test('a schedule without a zone is in that of the machine', async (t) => {
  const world = await workloadWorld(t)
  const jobs = ownedObjects(world.needs, 'jobs')
  const berlin = timeZone('Europe/Berlin')
  world.start([{ name: 'jobs', run: jobs.run }, cronJobController(world.needs, jobs, berlin)])
  await world.settle()
  const spec = { schedule: '0 2 * * *', jobTemplate: { spec: { template: jobTemplate() } } }
  const metadata = { name: 'tick', namespace: 'default' }
  await world.needs.creation.create('cronjobs', { apiVersion: 'batch/v1', kind: 'CronJob', metadata, spec }, 'test')
  await world.settle(hour + minute)
  t.equal((await world.store.list('jobs')).items[0]?.metadata.name, nameAt('2026-01-01T01:00:00Z'))
})

test('with Forbid, a Job is not started while the one before it runs', async (t) => {
  const world = await cronWorld(t)
  await world.cron({ concurrencyPolicy: 'Forbid' })
  await world.settle(21 * minute)
  t.same(await world.names(), [nameAt('2026-01-01T00:10:00Z')])
  t.ok((await world.events()).includes('JobAlreadyActive'))
  await world.endAll(0)
  t.same(await world.names(), [nameAt('2026-01-01T00:10:00Z'), nameAt('2026-01-01T00:20:00Z')], 'as soon as it can')
})

test('with Replace, the new Job takes the place of the one that runs', async (t) => {
  const world = await cronWorld(t)
  await world.cron({ concurrencyPolicy: 'Replace' })
  await world.settle(21 * minute)
  t.same(await world.names(), [nameAt('2026-01-01T00:20:00Z')])
  t.match((await world.cronJob())?.status?.active, { length: 1 })
  t.ok((await world.events()).includes('SuccessfulDelete'))
})

test('a Job made of the template by hand neither holds up the schedule nor is replaced', async (t) => {
  for (const concurrencyPolicy of ['Forbid', 'Replace']) {
    const world = await cronWorld(t)
    await world.cron({ concurrencyPolicy })
    const { metadata: { uid = '' } = {}, spec } = (await world.cronJob()) ?? {}
    if (spec === undefined) return t.fail('no CronJob')
    // As `kubectl create job by-hand --from=cronjob/tick` writes it.
    const metadata = {
      name: 'by-hand',
      namespace: 'default',
      annotations: { 'cronjob.kubernetes.io/instantiate': 'manual' },
      ownerReferences: [{ apiVersion: 'batch/v1', kind: 'CronJob', name: 'tick', uid, controller: true }],
    }
    const job: Job = { apiVersion: 'batch/v1', kind: 'Job', metadata, spec: spec.jobTemplate.spec }
    await world.needs.creation.create('jobs', job, 'test')
    await world.settle(11 * minute)
    t.same(await world.names(), ['by-hand', nameAt('2026-01-01T00:10:00Z')], concurrencyPolicy)
  }
})

test('with Allow, Jobs run beside each other', async (t) => {
  const world = await cronWorld(t)
  await world.cron()
  await world.settle(31 * minute)
  t.equal((await world.names()).length, 3)
  t.match((await world.cronJob())?.status?.active, { length: 3 })
})

test('the newest Jobs of each outcome are kept', async (t) => {
  const world = await cronWorld(t)
  await world.cron({ successfulJobsHistoryLimit: 2, failedJobsHistoryLimit: 1 }, { backoffLimit: 0 })
  for (const exitCode of [0, 0, 1, 0, 1]) {
    await world.settle(10 * minute)
    await world.endAll(exitCode)
  }
  t.same(
    await world.names(),
    [20, 40, 50].map((past) => nameAt(`2026-01-01T00:${past}:00Z`)),
  )
})

test('a suspended CronJob starts nothing; resumed, it makes up for the last time only', async (t) => {
  const world = await cronWorld(t)
  await world.cron({ suspend: true })
  await world.settle(65 * minute)
  t.same(await world.names(), [])
  await world.edit('cronjobs', 'tick', (one) => ({ ...one, spec: { ...one.spec, suspend: false } }))
  await world.settle()
  t.same(await world.names(), [nameAt('2026-01-01T01:00:00Z')])
})

test('a time that was missed by more than the deadline is not made up for', async (t) => {
  const world = await cronWorld(t)
  await world.cron({ suspend: true, startingDeadlineSeconds: 60 })
  await world.settle(65 * minute)
  await world.edit('cronjobs', 'tick', (one) => ({ ...one, spec: { ...one.spec, suspend: false } }))
  await world.settle()
  t.same(await world.names(), [])
  await world.settle(5 * minute)
  t.same(await world.names(), [nameAt('2026-01-01T01:10:00Z')])
})

test('a new schedule begins with its next time', async (t) => {
  const world = await cronWorld(t)
  await world.cron({ schedule: '0 0 1 1 *' })
  await world.settle(5 * minute + 1000)
  await world.edit('cronjobs', 'tick', (one) => ({ ...one, spec: { ...one.spec, schedule: '* * * * *' } }))
  await world.settle()
  t.same(await world.names(), [])
  await world.settle(minute)
  t.same(await world.names(), [nameAt('2026-01-01T00:06:00Z')])
})

test('a Job that ends while the schedule changes is no longer active', async (t) => {
  const world = await cronWorld(t)
  await world.cron()
  await world.settle(11 * minute)
  const completionTime = '2026-01-01T00:11:00Z'
  const conditions = [{ type: 'Complete', status: 'True' }]
  await world.edit('jobs', nameAt('2026-01-01T00:10:00Z'), (job) => ({
    ...job,
    status: { ...job.status, completionTime, conditions },
  }))
  await world.edit('cronjobs', 'tick', (one) => ({ ...one, spec: { ...one.spec, schedule: '0 0 1 1 *' } }))
  await world.settle()
  t.match((await world.cronJob())?.status, { active: undefined, lastSuccessfulTime: completionTime })
})

test('a clock that jumps ahead by years starts one Job, not thousands', async (t) => {
  const world = await cronWorld(t)
  await world.cron()
  await world.settle(11 * minute)
  await world.endAll(0)
  world.clock.setWall(Date.parse('2031-05-06T07:08:09Z'))
  await world.settle(15_000)
  t.same(await world.names(), [nameAt('2026-01-01T00:10:00Z'), nameAt('2031-05-06T07:00:00Z')])
  t.ok((await world.events()).includes('TooManyMissedTimes'))
  await world.endAll(0)
  await world.settle(2 * minute)
  t.equal((await world.names()).length, 3, 'then as usual')
})

test('a clock that jumps back by years starts nothing twice, and goes on by the new date', async (t) => {
  const world = await cronWorld(t)
  world.clock.setWall(Date.parse('2031-01-01T00:00:00Z'))
  await world.settle(15_000)
  await world.cron()
  await world.settle(11 * minute)
  t.same(await world.names(), [nameAt('2031-01-01T00:10:00Z')])
  world.clock.setWall(Date.parse('2026-01-01T00:01:00Z'))
  await world.settle(5 * minute)
  t.equal((await world.names()).length, 1)
  await world.settle(5 * minute)
  t.same(await world.names(), [nameAt('2026-01-01T00:10:00Z'), nameAt('2031-01-01T00:10:00Z')])
})

test('a clock that is set back by minutes repeats no Job', async (t) => {
  const world = await cronWorld(t)
  await world.cron({ schedule: '* * * * *', successfulJobsHistoryLimit: 0 })
  await world.settle(5 * minute + 1000)
  await world.endAll(0)
  const { lastScheduleTime } = (await world.cronJob())?.status ?? {}
  world.clock.setWall(world.clock.wallMs() - 3 * minute)
  await world.settle(2 * minute)
  t.same(await world.names(), [])
  t.equal((await world.cronJob())?.status?.lastScheduleTime, lastScheduleTime)
})

test('a machine that slept creates the Job of the last time when it wakes', async (t) => {
  const world = await cronWorld(t)
  await world.cron()
  world.clock.setWall(world.clock.wallMs() + 8 * hour)
  await world.settle(15_000)
  t.same(await world.names(), [nameAt('2026-01-01T08:00:00Z')])
})

test('a Job of its time that is there already is taken over, not made twice', async (t) => {
  const world = await cronWorld(t)
  await world.cron()
  await world.settle(11 * minute)
  // As after a crash between the two writes.
  await world.edit('cronjobs', 'tick', ({ status: _, ...one }) => one)
  await world.settle(minute)
  t.same(await world.names(), [nameAt('2026-01-01T00:10:00Z')])
  t.match((await world.cronJob())?.status, { active: [{}], lastScheduleTime: '2026-01-01T00:10:00Z' })
})

test('a Job that is gone is no longer active', async (t) => {
  const world = await cronWorld(t)
  await world.cron()
  await world.settle(11 * minute)
  await world.store.delete('jobs', { namespace: 'default', name: nameAt('2026-01-01T00:10:00Z') })
  await world.settle()
  t.equal((await world.cronJob())?.status?.active, undefined)
  t.ok((await world.events()).includes('MissingJob'))
  t.same(await world.names(), [])
})

test('a schedule that cannot be read starts nothing', async (t) => {
  const world = await cronWorld(t)
  await world.cron()
  await world.edit('cronjobs', 'tick', (one) => ({ ...one, spec: { ...one.spec, schedule: 'never' } }))
  await world.settle(hour)
  t.same(await world.names(), [])
  await world.edit('cronjobs', 'tick', (one) => ({ ...one, metadata: { ...one.metadata, labels: { a: 'b' } } }))
  await world.settle()
  t.ok((await world.events()).includes('UnparseableSchedule'))
})

test('a finished Job goes after its time to live, its pods first', async (t) => {
  const world = await cronWorld(t)
  await world.create({ ttlSecondsAfterFinished: 60 }, 'brief')
  await world.create({}, 'kept')
  await world.settle()
  await world.endAll(0)
  await world.settle(59_000)
  t.equal((await world.job('brief'))?.metadata.deletionTimestamp, undefined)
  await world.settle(2000)
  t.match((await world.job('brief'))?.metadata, { deletionTimestamp: /^2026/, finalizers: ['foregroundDeletion'] })
  t.equal((await world.job('kept'))?.metadata.deletionTimestamp, undefined)
})

test('a time to live that is set when the Job is over long ago ends it at once', async (t) => {
  const world = await cronWorld(t)
  await world.create({})
  await world.settle()
  await world.endAll(0)
  await world.settle(10 * minute)
  await world.edit('jobs', 'work', (job) => ({ ...job, spec: { ...job.spec, ttlSecondsAfterFinished: 60 } }))
  await world.settle()
  t.match((await world.job())?.metadata, { deletionTimestamp: /^2026/ })
})
