import { test } from 'tap'
import type { CronJob, CronJobSpec } from '../../../../api/batch/cron-job.ts'
import type { Job, JobSpec, JobStatus } from '../../../../api/batch/job.ts'
import { cronJobTable, jobTable } from './batch-tables.ts'

const metadata = { name: 'pi', namespace: 'default', creationTimestamp: '2026-01-01T00:00:00Z' }
const nowMs = Date.parse('2026-01-01T00:02:00Z')
const template = {
  spec: {
    containers: [
      { name: 'pi', image: 'perl:5' },
      { name: 'log', image: 'busybox:1' },
    ],
  },
}
const job = (spec: Partial<JobSpec> = {}, status: JobStatus = {}, more: Job['metadata'] = {}) =>
  jobTable.cells(
    { apiVersion: 'batch/v1', kind: 'Job', metadata: { ...metadata, ...more }, spec: { template, ...spec }, status },
    nowMs,
  )
const is = (...types: readonly string[]): JobStatus => ({
  conditions: types.map((type) => ({ type, status: 'True' })),
})

test('the row of a Job has its containers and its selector', async (t) => {
  t.same(job(), ['pi', 'Running', '0/1', '', '2m', 'pi,log', 'perl:5,busybox:1', '<none>'])
  t.equal(job({ selector: { matchLabels: { b: 'c', a: 'b' } } })[7], 'a=b,b=c')
})

test('a Job has one state, and the end comes first', async (t) => {
  const deletionTimestamp = '2026-01-01T00:01:00Z'
  const states: readonly (readonly [status: JobStatus, whole: string, deleted: string])[] = [
    [{}, 'Running', 'Terminating'],
    [is('Suspended'), 'Suspended', 'Terminating'],
    [is('FailureTarget'), 'FailureTarget', 'Terminating'],
    [is('SuccessCriteriaMet'), 'Running', 'Terminating'],
    [is('FailureTarget', 'Failed'), 'Failed', 'Failed'],
    [is('SuccessCriteriaMet', 'Complete'), 'Complete', 'Complete'],
    [is('FailureTarget', 'Suspended'), 'Suspended', 'Terminating'],
    [{ conditions: [{ type: 'Complete', status: 'False' }] }, 'Running', 'Terminating'],
  ]
  for (const [status, whole, deleted] of states) {
    t.equal(job({}, status)[1], whole)
    t.equal(job({}, status, { deletionTimestamp })[1], deleted)
  }
})

test('completions are counted against those that are wanted, or against one', async (t) => {
  const cells: readonly (readonly [JobSpec | Partial<JobSpec>, number, string])[] = [
    [{ completions: 3 }, 1, '1/3'],
    [{ completions: 3, parallelism: 2 }, 3, '3/3'],
    [{ completions: 0 }, 0, '0/0'],
    [{ parallelism: 1 }, 1, '1/1'],
    [{ parallelism: 2 }, 1, '1/1 of 2'],
    [{ parallelism: 0 }, 0, '0/1'],
  ]
  for (const [spec, succeeded, text] of cells) t.equal(job(spec, { succeeded })[2], text, JSON.stringify(spec))
})

test('the duration of a Job is that until now, or until its completion', async (t) => {
  const startTime = '2026-01-01T00:01:00Z'
  t.equal(job({}, {})[3], '')
  t.equal(job({}, { startTime })[3], '60s')
  t.equal(job({}, { startTime, completionTime: '2026-01-01T00:01:07Z' })[3], '7s')
})

test('the row of a CronJob has its schedule, its zone and when it ran', async (t) => {
  const cells = (spec: Partial<CronJobSpec>, status: CronJob['status'] = {}) => {
    const whole: CronJobSpec = { schedule: '0 * * * *', jobTemplate: { spec: { template } }, ...spec }
    return cronJobTable.cells({ apiVersion: 'batch/v1', kind: 'CronJob', metadata, spec: whole, status }, nowMs)
  }
  t.same(cells({}), [
    ...['pi', '0 * * * *', '<none>', '<unset>', 0, '<none>', '2m', 'pi,log', 'perl:5,busybox:1', '<none>'],
  ])
  const active = [{ name: 'pi-1' }, { name: 'pi-2' }]
  t.same(
    cells({ timeZone: 'Etc/UTC', suspend: true }, { active, lastScheduleTime: '2026-01-01T00:01:00Z' }).slice(2, 6),
    [...['Etc/UTC', 'True', 2, '60s']],
  )
  t.equal(cells({ suspend: false })[3], 'False')
})
