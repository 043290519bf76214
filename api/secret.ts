/** core/v1 Secret. */
import { ObjectMetaSchema } from './meta.ts'
import { bool, bytes, type Described, field, mapOf, object, oneOf, optional, pointer, text } from './schema.ts'

export const SecretSchema = object({
  apiVersion: oneOf('v1'),
  kind: oneOf('Secret'),
  metadata: field(1, ObjectMetaSchema),
  type: field(3, optional(text)),
  data: field(2, optional(mapOf(bytes))),
  stringData: field(4, optional(mapOf(text))),
  immutable: pointer(5, optional(bool)),
})
export type Secret = Described<typeof SecretSchema>
