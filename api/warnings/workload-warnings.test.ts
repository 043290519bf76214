import { test } from 'tap'
import type { CronJob } from '../batch/cron-job.ts'
import { jobSpecWarnings, scheduleWarnings } from './workload-warnings.ts'

const template = { spec: { containers: [{ name: 'c', image: 'i' }] } }

test('an indexed Job with more completions and pods than are tracked', async (t) => {
  const large = { completionMode: 'Indexed', completions: 100_001, parallelism: 10_001, template }
  t.same(jobSpecWarnings('spec', large), [
    'spec: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be ' +
      'able to track completedIndexes when a big number of indexes fail',
  ])
  for (const less of [{ completions: 100_000 }, { parallelism: 10_000 }, { completionMode: 'NonIndexed' }]) {
    t.same(jobSpecWarnings('spec', { ...large, ...less }), [])
  }
  const old = { spec: { ...template.spec, nodeSelector: { 'app.kubernetes.io/created-by': 'x' } } }
  t.same(jobSpecWarnings('spec', { template: old }), [
    'spec.template.spec.nodeSelector[app.kubernetes.io/created-by]: deprecated since v1.9',
  ])
})

test('a schedule that names its time zone', async (t) => {
  const warned = (schedule: string) => {
    const spec = { schedule, jobTemplate: { spec: { template } } }
    const cronJob: CronJob = { apiVersion: 'batch/v1', kind: 'CronJob', metadata: { name: 'c' }, spec }
    return scheduleWarnings(cronJob)
  }
  t.same(warned('* * * * *'), [])
  t.match(warned('TZ=UTC * * * * *'), [
    /^cannot use TZ or CRON_TZ in spec\.spec\.schedule, use timeZone instead, see https:/,
  ])
})
