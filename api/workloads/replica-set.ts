/** apps/v1 ReplicaSet: a number of pods of one template. */
import { LabelSelectorSchema, ObjectMetaSchema } from '../meta.ts'
import { PodTemplateSpecSchema } from '../pod.ts'
import { type Described, field, integer, listBy, object, oneOf, optional, pointer } from '../schema.ts'
import { conditionFields } from './condition-fields.ts'

/** Status fields of a ReplicaSet and a ReplicationController. */
export const replicaStatusFields = {
  replicas: field(1, integer),
  fullyLabeledReplicas: field(2, optional(integer)),
  observedGeneration: field(3, optional(integer)),
  readyReplicas: field(4, optional(integer)),
  availableReplicas: field(5, optional(integer)),
}

const ReplicaSetStatusSchema = object('apps.v1.ReplicaSetStatus', {
  ...replicaStatusFields,
  conditions: field(6, optional(listBy('type', object('apps.v1.ReplicaSetCondition', conditionFields)))),
})
export type ReplicaSetStatus = Described<typeof ReplicaSetStatusSchema>

export const ReplicaSetSchema = object({
  apiVersion: oneOf('apps/v1'),
  kind: oneOf('ReplicaSet'),
  metadata: field(1, ObjectMetaSchema),
  spec: field(
    2,
    object('apps.v1.ReplicaSetSpec', {
      replicas: pointer(1, optional(integer)),
      selector: field(2, optional(LabelSelectorSchema)),
      template: field(3, PodTemplateSpecSchema),
      minReadySeconds: field(4, optional(integer)),
    }),
  ),
  status: field(3, optional(ReplicaSetStatusSchema)),
})
export type ReplicaSet = Described<typeof ReplicaSetSchema>
