/** apps/v1 DaemonSet: one pod on each node that is eligible. */
import { LabelSelectorSchema, ObjectMetaSchema } from '../meta.ts'
import { PodTemplateSpecSchema } from '../pod.ts'
import {
  type Described,
  field,
  integer,
  intOrString,
  listBy,
  object,
  oneOf,
  optional,
  pointer,
  text,
} from '../schema.ts'
import { conditionFields } from './condition-fields.ts'

const DaemonSetConditionSchema = object('apps.v1.DaemonSetCondition', conditionFields)

const DaemonSetStatusSchema = object('apps.v1.DaemonSetStatus', {
  currentNumberScheduled: field(1, optional(integer)),
  numberMisscheduled: field(2, optional(integer)),
  desiredNumberScheduled: field(3, optional(integer)),
  numberReady: field(4, optional(integer)),
  observedGeneration: field(5, optional(integer)),
  updatedNumberScheduled: field(6, optional(integer)),
  numberAvailable: field(7, optional(integer)),
  numberUnavailable: field(8, optional(integer)),
  collisionCount: pointer(9, optional(integer)),
  conditions: field(10, optional(listBy('type', DaemonSetConditionSchema))),
})
export type DaemonSetStatus = Described<typeof DaemonSetStatusSchema>

const DaemonSetSpecSchema = object('apps.v1.DaemonSetSpec', {
  selector: field(1, optional(LabelSelectorSchema)),
  template: field(2, PodTemplateSpecSchema),
  updateStrategy: field(
    3,
    optional(
      object('apps.v1.DaemonSetUpdateStrategy', {
        type: field(1, optional(text)),
        rollingUpdate: field(
          2,
          optional(
            object('apps.v1.RollingUpdateDaemonSet', {
              maxUnavailable: pointer(1, optional(intOrString)),
              maxSurge: pointer(2, optional(intOrString)),
            }),
          ),
        ),
      }),
    ),
  ),
  minReadySeconds: field(4, optional(integer)),
  revisionHistoryLimit: pointer(6, optional(integer)),
})
export type DaemonSetSpec = Described<typeof DaemonSetSpecSchema>

export const DaemonSetSchema = object({
  apiVersion: oneOf('apps/v1'),
  kind: oneOf('DaemonSet'),
  metadata: field(1, ObjectMetaSchema),
  spec: field(2, DaemonSetSpecSchema),
  status: field(3, optional(DaemonSetStatusSchema)),
})
export type DaemonSet = Described<typeof DaemonSetSchema>

/** Counts the templates that a DaemonSet has had; the label of its pods has the number of theirs (apps/v1 DeprecatedTemplateGeneration). */
export const templateGenerationAnnotation = 'deprecated.daemonset.template.generation'
