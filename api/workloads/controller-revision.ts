/** apps/v1 ControllerRevision: an earlier state of a workload, to which it can return. */
import { ObjectMetaSchema } from '../meta.ts'
import { type Described, field, integer, object, oneOf, optional, rawJson } from '../schema.ts'

export const ControllerRevisionSchema = object({
  apiVersion: oneOf('apps/v1'),
  kind: oneOf('ControllerRevision'),
  metadata: field(1, ObjectMetaSchema),
  data: field(2, optional(rawJson)),
  revision: field(3, optional(integer)),
})
export type ControllerRevision = Described<typeof ControllerRevisionSchema>
