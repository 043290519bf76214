/** Metrics of the controllers of Jobs and CronJobs, under the names of kube-controller-manager (metrics.go beside each controller). */
import { finishedConditionOf, isIndexedJob, type Job, type JobStatus } from '../../../api/batch/job.ts'
import { doublingBounds, type MetricsRegistry } from '../../../daemon/metrics-registry.ts'

/** What a visit did about the pods; `reconciling`: nothing, as the Job was ending or the visit failed before. */
export type JobSyncAction = 'reconciling' | 'tracking' | 'pods_created' | 'pods_deleted'

export interface WorkloadMetrics {
  jobSynced(
    job: Job,
    sync: { readonly result: 'success' | 'error'; readonly action: JobSyncAction; readonly tookMs: number },
  ): void
  /** With the condition that ended it. */
  jobFinished(job: Job): void
  /** By how much the counts of a status have grown. */
  jobPodsFinished(job: Job, before: JobStatus | undefined, after: JobStatus | undefined): void
  /** `lateMs`: after the time of the schedule. */
  cronJobStarted(lateMs: number): void
}

/** 4 ms to 66 s; 1 s to 8.5 min. */
const syncBounds = doublingBounds(0.004, 15)
const skewBounds = doublingBounds(1, 10)

/** Registers them: once for a registry. */
export function workloadMetrics(registry: MetricsRegistry): WorkloadMetrics {
  const duration = registry.histogram({
    name: 'job_controller_job_sync_duration_seconds',
    help: 'Time that visits of Jobs took.',
    labelNames: ['completion_mode', 'result', 'action'],
    bounds: syncBounds,
  })
  const syncs = registry.counter({
    name: 'job_controller_job_syncs_total',
    help: 'Visits of Jobs.',
    labelNames: ['completion_mode', 'result', 'action'],
  })
  const finished = registry.counter({
    name: 'job_controller_jobs_finished_total',
    help: 'Jobs that have ended, by result and reason.',
    labelNames: ['completion_mode', 'result', 'reason'],
  })
  const pods = registry.counter({
    name: 'job_controller_job_pods_finished_total',
    help: 'Pods of Jobs that have ended and are counted.',
    labelNames: ['completion_mode', 'result'],
  })
  const skew = registry.histogram({
    name: 'cronjob_controller_job_creation_skew_duration_seconds',
    help: 'Time from the schedule of a CronJob to the creation of its Job.',
    bounds: skewBounds,
  })
  const modeOf = ({ spec }: Job) => ({ completion_mode: isIndexedJob(spec) ? 'Indexed' : 'NonIndexed' })
  return {
    jobSynced(job, { result, action, tookMs }) {
      const labels = { ...modeOf(job), result, action }
      duration.observe(labels, tookMs / 1000)
      syncs.inc(labels)
    },
    jobFinished(job) {
      const end = finishedConditionOf(job)
      if (end === undefined) return
      const result = end.type === 'Complete' ? 'succeeded' : 'failed'
      finished.inc({ ...modeOf(job), result, reason: end.reason ?? '' })
    },
    jobPodsFinished(job, before, after) {
      for (const result of ['succeeded', 'failed'] as const) {
        // An indexed Job that is scaled down counts fewer successes.
        const more = (after?.[result] ?? 0) - (before?.[result] ?? 0)
        pods.inc({ ...modeOf(job), result }, Math.max(0, more))
      }
    },
    cronJobStarted: (lateMs) => skew.observe({}, lateMs / 1000),
  }
}
