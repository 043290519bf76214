/** batch/v1 Job: pods that run to completion, a number of times. */
import { LabelSelectorSchema, ObjectMetaSchema } from '../meta.ts'
import { PodTemplateSpecSchema } from '../pod.ts'
import {
  bool,
  type Described,
  field,
  integer,
  list,
  listBy,
  object,
  oneOf,
  optional,
  pointer,
  setOf,
  text,
  time,
} from '../schema.ts'

const PodFailurePolicyRuleSchema = object('batch.v1.PodFailurePolicyRule', {
  action: field(1, optional(text)),
  onExitCodes: field(
    2,
    optional(
      object('batch.v1.PodFailurePolicyOnExitCodesRequirement', {
        containerName: pointer(1, optional(text)),
        operator: field(2, optional(text)),
        values: field(3, optional(setOf(integer, { patch: 'whole' }))),
      }),
    ),
  ),
  onPodConditions: field(
    3,
    optional(
      list(
        object('batch.v1.PodFailurePolicyOnPodConditionsPattern', {
          type: field(1, optional(text)),
          status: field(2, optional(text)),
        }),
      ),
    ),
  ),
})
export type PodFailurePolicyRule = Described<typeof PodFailurePolicyRuleSchema>

const PodFailurePolicySchema = object('batch.v1.PodFailurePolicy', {
  rules: field(1, optional(list(PodFailurePolicyRuleSchema))),
})
export type PodFailurePolicy = Described<typeof PodFailurePolicySchema>

const SuccessPolicySchema = object('batch.v1.SuccessPolicy', {
  rules: field(
    1,
    optional(
      list(
        object('batch.v1.SuccessPolicyRule', {
          succeededIndexes: pointer(1, optional(text)),
          succeededCount: pointer(2, optional(integer)),
        }),
      ),
    ),
  ),
})
export type SuccessPolicy = Described<typeof SuccessPolicySchema>

export const JobSpecSchema = object('batch.v1.JobSpec', {
  parallelism: pointer(1, optional(integer)),
  completions: pointer(2, optional(integer)),
  activeDeadlineSeconds: pointer(3, optional(integer)),
  podFailurePolicy: field(11, optional(PodFailurePolicySchema)),
  successPolicy: field(16, optional(SuccessPolicySchema)),
  backoffLimit: pointer(7, optional(integer)),
  backoffLimitPerIndex: pointer(12, optional(integer)),
  maxFailedIndexes: pointer(13, optional(integer)),
  selector: field(4, optional(LabelSelectorSchema)),
  manualSelector: pointer(5, optional(bool)),
  template: field(6, PodTemplateSpecSchema),
  ttlSecondsAfterFinished: pointer(8, optional(integer)),
  completionMode: pointer(9, optional(text)),
  suspend: pointer(10, optional(bool)),
  podReplacementPolicy: pointer(14, optional(text)),
  managedBy: pointer(15, optional(text)),
})
export type JobSpec = Described<typeof JobSpecSchema>

const JobConditionSchema = object('batch.v1.JobCondition', {
  type: field(1, text),
  status: field(2, text),
  lastProbeTime: field(3, optional(time)),
  lastTransitionTime: field(4, optional(time)),
  reason: field(5, optional(text)),
  message: field(6, optional(text)),
})
export type JobCondition = Described<typeof JobConditionSchema>

const JobStatusSchema = object('batch.v1.JobStatus', {
  conditions: field(1, optional(listBy('type', JobConditionSchema, { apply: 'whole' }))),
  startTime: field(2, optional(time)),
  completionTime: field(3, optional(time)),
  active: field(4, optional(integer)),
  succeeded: field(5, optional(integer)),
  failed: field(6, optional(integer)),
  terminating: pointer(11, optional(integer)),
  completedIndexes: field(7, optional(text)),
  failedIndexes: pointer(10, optional(text)),
  /** Finished pods that still have the finalizer, by uid: they are counted when it is removed. */
  uncountedTerminatedPods: field(
    8,
    optional(
      object('batch.v1.UncountedTerminatedPods', {
        succeeded: field(1, optional(setOf(text, { patch: 'whole' }))),
        failed: field(2, optional(setOf(text, { patch: 'whole' }))),
      }),
    ),
  ),
  ready: pointer(9, optional(integer)),
})
export type JobStatus = Described<typeof JobStatusSchema>

export const JobSchema = object({
  apiVersion: oneOf('batch/v1'),
  kind: oneOf('Job'),
  metadata: field(1, ObjectMetaSchema),
  spec: field(2, JobSpecSchema),
  status: field(3, optional(JobStatusSchema)),
})
export type Job = Described<typeof JobSchema>

/** Names that the API and the controllers share (staging/src/k8s.io/api/batch/v1/types.go). */
export const jobNames = {
  controllerUidLabel: 'batch.kubernetes.io/controller-uid',
  jobNameLabel: 'batch.kubernetes.io/job-name',
  legacyControllerUidLabel: 'controller-uid',
  legacyJobNameLabel: 'job-name',
  completionIndex: 'batch.kubernetes.io/job-completion-index',
  indexFailureCount: 'batch.kubernetes.io/job-index-failure-count',
  indexIgnoredFailureCount: 'batch.kubernetes.io/job-index-ignored-failure-count',
  trackingFinalizer: 'batch.kubernetes.io/job-tracking',
  scheduledTimestamp: 'batch.kubernetes.io/cronjob-scheduled-timestamp',
  /** In `managedBy`: the controller of this program. */
  controller: 'kubernetes.io/job-controller',
} as const

export type JobConditionType = 'Suspended' | 'Complete' | 'Failed' | 'FailureTarget' | 'SuccessCriteriaMet'

export function jobConditionOf({ status }: Pick<Job, 'status'>, type: JobConditionType): JobCondition | undefined {
  return status?.conditions?.find((one) => one.type === type)
}

export function hasJobCondition(job: Pick<Job, 'status'>, type: JobConditionType): boolean {
  return jobConditionOf(job, type)?.status === 'True'
}

/** The condition that ended the job: `Complete` or `Failed`; undefined while it runs (pkg/controller/job/util/utils.go). */
export function finishedConditionOf({ status }: Pick<Job, 'status'>): JobCondition | undefined {
  return status?.conditions?.find(
    ({ type, status: value }) => (type === 'Complete' || type === 'Failed') && value === 'True',
  )
}

export function isIndexedJob({ completionMode }: Pick<JobSpec, 'completionMode'>): boolean {
  return completionMode === 'Indexed'
}
