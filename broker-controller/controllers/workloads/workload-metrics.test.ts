import { test } from 'tap'
import { metricsRegistry } from '../../../daemon/metrics-registry.ts'
import { aStoredJob } from '../../testing/job-objects.ts'
import { workloadMetrics } from './workload-metrics.ts'

const valuesOf = (registry: ReturnType<typeof metricsRegistry>, name: string) =>
  registry.samplesOf(name).map(({ labels, value }) => ({ ...labels, value }))

test('visits of Jobs are counted and timed by what they did', async (t) => {
  const registry = metricsRegistry()
  const { jobSynced } = workloadMetrics(registry)
  jobSynced(aStoredJob(), { result: 'success', action: 'pods_created', tookMs: 5 })
  jobSynced(aStoredJob({ completionMode: 'Indexed' }), { result: 'error', action: 'tracking', tookMs: 5 })
  t.same(valuesOf(registry, 'job_controller_job_syncs_total'), [
    { completion_mode: 'NonIndexed', result: 'success', action: 'pods_created', value: 1 },
    { completion_mode: 'Indexed', result: 'error', action: 'tracking', value: 1 },
  ])
  const text = registry.text()
  const labels = 'completion_mode="NonIndexed",result="success",action="pods_created"'
  t.ok(text.includes(`job_controller_job_sync_duration_seconds_bucket{le="0.004",${labels}} 0\n`))
  t.ok(text.includes(`job_controller_job_sync_duration_seconds_bucket{le="0.008",${labels}} 1\n`))
})

test('Jobs that have ended are counted by result and reason, and no others', async (t) => {
  const registry = metricsRegistry()
  const { jobFinished } = workloadMetrics(registry)
  const ended = (type: string, reason?: string) =>
    aStoredJob({}, { conditions: [{ type, status: 'True', ...(reason !== undefined && { reason }) }] })
  jobFinished(ended('Complete', 'CompletionsReached'))
  jobFinished(ended('Failed', 'DeadlineExceeded'))
  jobFinished(ended('Failed'))
  jobFinished(ended('FailureTarget', 'DeadlineExceeded'))
  t.same(
    valuesOf(registry, 'job_controller_jobs_finished_total').map((one) => ({ ...one, completion_mode: undefined })),
    [
      { completion_mode: undefined, result: 'succeeded', reason: 'CompletionsReached', value: 1 },
      { completion_mode: undefined, result: 'failed', reason: 'DeadlineExceeded', value: 1 },
      { completion_mode: undefined, result: 'failed', reason: '', value: 1 },
    ],
  )
})

test('pods are counted by what the counts of the Job have grown', async (t) => {
  const registry = metricsRegistry()
  const { jobPodsFinished } = workloadMetrics(registry)
  jobPodsFinished(aStoredJob(), undefined, undefined)
  jobPodsFinished(aStoredJob(), undefined, { succeeded: 2 })
  jobPodsFinished(aStoredJob(), { succeeded: 2, failed: 1 }, { succeeded: 5, failed: 2 })
  jobPodsFinished(aStoredJob(), { succeeded: 5 }, { succeeded: 1 })
  t.same(valuesOf(registry, 'job_controller_job_pods_finished_total'), [
    { completion_mode: 'NonIndexed', result: 'succeeded', value: 5 },
    { completion_mode: 'NonIndexed', result: 'failed', value: 1 },
  ])
})

test('it is measured how late the Jobs of CronJobs are created', async (t) => {
  const registry = metricsRegistry()
  workloadMetrics(registry).cronJobStarted(1500)
  const text = registry.text()
  t.match(text, /job_creation_skew_duration_seconds_bucket\{le="1"\} 0\n/)
  t.match(text, /job_creation_skew_duration_seconds_bucket\{le="2"\} 1\n/)
  t.match(text, /job_creation_skew_duration_seconds_sum 1.5\n/)
})
