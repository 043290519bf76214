/** core/v1 ReplicationController: a ReplicaSet under its older name, which selects by equality only. */
import { ObjectMetaSchema } from '../meta.ts'
import { PodTemplateSpecSchema } from '../pod.ts'
import { type Described, field, integer, listBy, mapOf, object, oneOf, optional, pointer, text } from '../schema.ts'
import { conditionFields } from './condition-fields.ts'
import { replicaStatusFields } from './replica-set.ts'

export const ReplicationControllerSchema = object({
  apiVersion: oneOf('v1'),
  kind: oneOf('ReplicationController'),
  metadata: field(1, ObjectMetaSchema),
  spec: field(
    2,
    object('core.v1.ReplicationControllerSpec', {
      replicas: pointer(1, optional(integer)),
      selector: field(2, optional(mapOf(text))),
      template: field(3, optional(PodTemplateSpecSchema)),
      minReadySeconds: field(4, optional(integer)),
    }),
  ),
  status: field(
    3,
    optional(
      object('core.v1.ReplicationControllerStatus', {
        ...replicaStatusFields,
        conditions: field(
          6,
          optional(listBy('type', object('core.v1.ReplicationControllerCondition', conditionFields))),
        ),
      }),
    ),
  ),
})
export type ReplicationController = Described<typeof ReplicationControllerSchema>
