/** core/v1 ConfigMap. */
import { ObjectMetaSchema } from './meta.ts'
import { bool, bytes, type Described, mapOf, object, oneOf, optional, text } from './schema.ts'

export const ConfigMapSchema = object({
  apiVersion: oneOf('v1'),
  kind: oneOf('ConfigMap'),
  metadata: ObjectMetaSchema,
  data: optional(mapOf(text)),
  binaryData: optional(mapOf(bytes)),
  immutable: optional(bool),
})
export type ConfigMap = Described<typeof ConfigMapSchema>
