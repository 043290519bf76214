/** batch/v1 CronJob: Jobs by a schedule. */
import { ObjectMetaSchema, ObjectReferenceSchema } from '../meta.ts'
import { bool, type Described, field, integer, list, object, oneOf, optional, pointer, text, time } from '../schema.ts'
import { JobSpecSchema } from './job.ts'

const JobTemplateSpecSchema = object('batch.v1.JobTemplateSpec', {
  metadata: field(1, optional(ObjectMetaSchema)),
  spec: field(2, JobSpecSchema),
})

const CronJobSpecSchema = object('batch.v1.CronJobSpec', {
  schedule: field(1, optional(text)),
  timeZone: pointer(8, optional(text)),
  startingDeadlineSeconds: pointer(2, optional(integer)),
  concurrencyPolicy: field(3, optional(text)),
  suspend: pointer(4, optional(bool)),
  jobTemplate: field(5, JobTemplateSpecSchema),
  successfulJobsHistoryLimit: pointer(6, optional(integer)),
  failedJobsHistoryLimit: pointer(7, optional(integer)),
})
export type CronJobSpec = Described<typeof CronJobSpecSchema>

const CronJobStatusSchema = object('batch.v1.CronJobStatus', {
  active: field(1, optional(list(ObjectReferenceSchema))),
  lastScheduleTime: field(4, optional(time)),
  lastSuccessfulTime: field(5, optional(time)),
})
export type CronJobStatus = Described<typeof CronJobStatusSchema>

export const CronJobSchema = object({
  apiVersion: oneOf('batch/v1'),
  kind: oneOf('CronJob'),
  metadata: field(1, ObjectMetaSchema),
  spec: field(2, CronJobSpecSchema),
  status: field(3, optional(CronJobStatusSchema)),
})
export type CronJob = Described<typeof CronJobSchema>
