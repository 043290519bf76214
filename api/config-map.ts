/** core/v1 ConfigMap. */
import { ObjectMetaSchema } from './meta.ts'
import { bool, bytes, type Described, field, mapOf, object, oneOf, optional, pointer, text } from './schema.ts'

export const ConfigMapSchema = object({
  apiVersion: oneOf('v1'),
  kind: oneOf('ConfigMap'),
  metadata: field(1, ObjectMetaSchema),
  data: field(2, optional(mapOf(text))),
  binaryData: field(3, optional(mapOf(bytes))),
  immutable: pointer(4, optional(bool)),
})
export type ConfigMap = Described<typeof ConfigMapSchema>
