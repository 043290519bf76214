/** autoscaling/v1 Scale: how many replicas a workload has, and how many it should have. */
import { ObjectMetaSchema } from '../meta.ts'
import { type Described, field, integer, object, oneOf, optional, text } from '../schema.ts'

export const ScaleSchema = object({
  apiVersion: oneOf('autoscaling/v1'),
  kind: oneOf('Scale'),
  metadata: field(1, ObjectMetaSchema),
  spec: field(2, optional(object('autoscaling.v1.ScaleSpec', { replicas: field(1, optional(integer)) }))),
  status: field(
    3,
    optional(object('autoscaling.v1.ScaleStatus', { replicas: field(1, integer), selector: field(2, optional(text)) })),
  ),
})
export type Scale = Described<typeof ScaleSchema>
