/** core/v1 Secret. */
import { ObjectMetaSchema } from './meta.ts'
import { bool, bytes, type Described, mapOf, object, oneOf, optional, text } from './schema.ts'

export const SecretSchema = object({
  apiVersion: oneOf('v1'),
  kind: oneOf('Secret'),
  metadata: ObjectMetaSchema,
  type: optional(text),
  data: optional(mapOf(bytes)),
  stringData: optional(mapOf(text)),
  immutable: optional(bool),
})
export type Secret = Described<typeof SecretSchema>
