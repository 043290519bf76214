/** batch/v1 Job (pkg/registry/batch/job/strategy.go, pkg/apis/batch/v1/defaults.go). */
import { randomUUID } from 'node:crypto'
import { type Job, type JobSpec, jobNames } from '../../../../api/batch/job.ts'
import { jobChangeProblems, jobStatusProblems } from '../../../../api/batch/job-change-validation.ts'
import { jobProblems } from '../../../../api/batch/job-validation.ts'
import { resources } from '../../../../api/resources.ts'
import { withTemplateDefaults } from '../../../../api/validation/pod-defaults.ts'
import { podNamesWarnings } from '../../../../api/warnings/name-warnings.ts'
import { jobSpecWarnings } from '../../../../api/warnings/workload-warnings.ts'
import { equalJSON } from '../../../store/equal-json.ts'
import { type KindStrategy, statusSubresource } from '../../handlers/strategy.ts'
import { jobTable } from './batch-tables.ts'

export const jobStrategy: KindStrategy<Job> = {
  ...resources.jobs,
  table: jobTable,
  selectableFields: ['status.successful'],
  subresources: {
    status: { ...statusSubresource, validateUpdate: (old, now) => jobStatusProblems(old, now, equalJSON) },
  },
  emptyStatus: {},
  orphansByDefault: true,
  warnsOfOrphans: true,
  withDefaults: (job) => {
    const { labels = {} } = job.metadata
    const templateLabels = job.spec.template.metadata?.labels
    const isUnlabelled = templateLabels !== undefined && Object.keys(labels).length === 0
    const spec = withJobSpecDefaults(job.spec)
    return { ...job, spec, ...(isUnlabelled && { metadata: { ...job.metadata, labels: templateLabels } }) }
  },
  prepareForCreate: ({ status: _, ...job }, { newUID = randomUUID }) =>
    withSelector({ ...job, metadata: { ...job.metadata, uid: newUID() } }),
  validateCreate: (job) => jobProblems(job, true),
  warningsOnCreate: ({ metadata, spec }) => [
    ...podNamesWarnings(metadata.name ?? ''),
    ...jobSpecWarnings('spec', spec),
  ],
  warningsOnUpdate: (old, { spec }) => (equalJSON(old.spec, spec) ? [] : jobSpecWarnings('spec', spec)),
  podSecurity: { judges: 'template', parts: ({ spec }) => spec.template },
  validateUpdate: (old, now) => jobChangeProblems(old, now, equalJSON),
}

/** Defaults of a Job. Fields with only one value are set, too, as clients read them. */
function withJobSpecDefaults(spec: JobSpec): JobSpec {
  const { parallelism, completions, backoffLimitPerIndex, podFailurePolicy, template } = spec
  const isSingle = completions === undefined && parallelism === undefined
  return {
    ...spec,
    ...(isSingle && { completions: 1 }),
    parallelism: parallelism ?? 1,
    backoffLimit: spec.backoffLimit ?? (backoffLimitPerIndex === undefined ? 6 : 2 ** 31 - 1),
    completionMode: spec.completionMode ?? 'NonIndexed',
    suspend: spec.suspend ?? false,
    ...(podFailurePolicy && { podFailurePolicy: withPatternDefaults(podFailurePolicy) }),
    podReplacementPolicy:
      spec.podReplacementPolicy ?? (podFailurePolicy === undefined ? 'TerminatingOrFailed' : 'Failed'),
    manualSelector: spec.manualSelector ?? false,
    template: withTemplateDefaults(template),
  }
}

function withPatternDefaults(
  policy: NonNullable<JobSpec['podFailurePolicy']>,
): NonNullable<JobSpec['podFailurePolicy']> {
  const rules = policy.rules?.map(({ onPodConditions, ...rule }) => ({
    ...rule,
    ...(onPodConditions && {
      onPodConditions: onPodConditions.map((pattern) => ({ ...pattern, status: pattern.status || 'True' })),
    }),
  }))
  return { ...policy, ...(rules && { rules }) }
}

/** The pods of a Job carry its uid, which no other object has: so they are never another Job's (generateSelector). */
function withSelector(job: Job): Job {
  const { spec, metadata } = job
  if (spec.manualSelector === true) return job
  const { name = '', uid = '' } = metadata
  const { controllerUidLabel, jobNameLabel, legacyControllerUidLabel, legacyJobNameLabel } = jobNames
  const labels = {
    [legacyJobNameLabel]: name,
    [jobNameLabel]: name,
    [legacyControllerUidLabel]: uid,
    [controllerUidLabel]: uid,
    // What the author set is compared with these by validation.
    ...spec.template.metadata?.labels,
  }
  const matchLabels = { [controllerUidLabel]: uid, ...spec.selector?.matchLabels }
  return {
    ...job,
    spec: {
      ...spec,
      selector: { ...spec.selector, matchLabels },
      template: { ...spec.template, metadata: { ...spec.template.metadata, labels } },
    },
  }
}
