/** What is valid in objects with a pod template and hardly meant (WarningsOnCreate and WarningsOnUpdate below pkg/registry). */
import type { CronJob } from '../batch/cron-job.ts'
import type { JobSpec } from '../batch/job.ts'
import { podTemplateWarnings } from './pod-warnings.ts'

/** Warnings of a Job's specification with its defaults at the path `at` (pkg/api/job/warnings.go). */
export function jobSpecWarnings(at: string, spec: JobSpec): readonly string[] {
  const { completionMode, completions = 0, parallelism = 0, template } = spec
  const isLarge = completionMode === 'Indexed' && completions > 100_000 && parallelism > 10_000
  const because =
    'In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be ' +
    'able to track completedIndexes when a big number of indexes fail'
  return [...(isLarge ? [`${at}: ${because}`] : []), ...podTemplateWarnings(`${at}.template`, template)]
}

/**
 * Warnings of a changed CronJob: a new one with a time zone in its schedule is rejected. The path `spec.spec.schedule`
 * is that of Kubernetes.
 */
export function scheduleWarnings({ spec: { schedule = '' } }: CronJob): readonly string[] {
  const page = 'https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/'
  return schedule.includes('TZ')
    ? [`cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see ${page} for more details`]
    : []
}
