/** node.k8s.io/v1 RuntimeClass: a container runtime of nodes by name, and what it costs and needs. */
import { ObjectMetaSchema } from '../meta.ts'
import { TolerationSchema } from '../pod.ts'
import { type Described, field, list, mapOf, object, oneOf, optional, pointer, quantity, text } from '../schema.ts'

export const RuntimeClassSchema = object({
  apiVersion: oneOf('node.k8s.io/v1'),
  kind: oneOf('RuntimeClass'),
  metadata: field(1, ObjectMetaSchema),
  handler: field(2, text),
  overhead: pointer(3, optional(object('node.v1.Overhead', { podFixed: field(1, optional(mapOf(quantity))) }))),
  scheduling: pointer(
    4,
    optional(
      object('node.v1.Scheduling', {
        nodeSelector: field(1, optional(mapOf(text))),
        tolerations: field(2, optional(list(TolerationSchema))),
      }),
    ),
  ),
})
export type RuntimeClass = Described<typeof RuntimeClassSchema>
