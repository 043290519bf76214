/** batch/v1 CronJob (pkg/registry/batch/cronjob/strategy.go, pkg/apis/batch/v1/defaults.go). */
import type { CronJob } from '../../../../api/batch/cron-job.ts'
import { cronJobChangeProblems, newCronJobProblems } from '../../../../api/batch/cron-job-validation.ts'
import { resources } from '../../../../api/resources.ts'
import { withTemplateDefaults } from '../../../../api/validation/pod-defaults.ts'
import { podNamesWarnings } from '../../../../api/warnings/name-warnings.ts'
import { jobSpecWarnings, scheduleWarnings } from '../../../../api/warnings/workload-warnings.ts'
import { equalJSON } from '../../../store/equal-json.ts'
import { type KindStrategy, statusSubresource } from '../../handlers/strategy.ts'
import { cronJobTable } from './batch-tables.ts'

const jobAt = 'spec.jobTemplate.spec'

export const cronJobStrategy: KindStrategy<CronJob> = {
  ...resources.cronjobs,
  table: cronJobTable,
  selectableFields: [],
  subresources: { status: { ...statusSubresource, validateUpdate: () => [] } },
  withDefaults: (cronJob) => ({ ...cronJob, spec: withSpecDefaults(cronJob.spec) }),
  emptyStatus: {},
  prepareForCreate: ({ status: _, ...cronJob }) => cronJob,
  validateCreate: newCronJobProblems,
  validateUpdate: cronJobChangeProblems,
  warningsOnCreate: ({ metadata, spec }) => [
    ...podNamesWarnings(metadata.name ?? ''),
    ...jobSpecWarnings(jobAt, spec.jobTemplate.spec),
  ],
  warningsOnUpdate: (old, now) => [
    ...(equalJSON(old.spec, now.spec) ? [] : jobSpecWarnings(jobAt, now.spec.jobTemplate.spec)),
    ...scheduleWarnings(now),
  ],
  podSecurity: { judges: 'template', parts: ({ spec }) => spec.jobTemplate.spec.template },
}

/** The Job template's own defaults are set when a Job is created; those of its pods are set now. */
function withSpecDefaults(spec: CronJob['spec']): CronJob['spec'] {
  const { jobTemplate } = spec
  const { template } = jobTemplate.spec
  return {
    ...spec,
    concurrencyPolicy: spec.concurrencyPolicy || 'Allow',
    suspend: spec.suspend ?? false,
    successfulJobsHistoryLimit: spec.successfulJobsHistoryLimit ?? 3,
    failedJobsHistoryLimit: spec.failedJobsHistoryLimit ?? 1,
    jobTemplate: { ...jobTemplate, spec: { ...jobTemplate.spec, template: withTemplateDefaults(template) } },
  }
}
