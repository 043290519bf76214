/** authentication.k8s.io/v1 TokenRequest: asks for a token of a service account. */
import { ObjectMetaSchema } from '../meta.ts'
import { type Described, field, integer, list, object, oneOf, optional, pointer, text, time } from '../schema.ts'

export const TokenRequestSchema = object({
  apiVersion: oneOf('authentication.k8s.io/v1'),
  kind: oneOf('TokenRequest'),
  metadata: field(1, optional(ObjectMetaSchema)),
  spec: field(
    2,
    object({
      audiences: field(1, optional(list(text))),
      expirationSeconds: pointer(4, optional(integer)),
      /** The token ends with this object, too. */
      boundObjectRef: pointer(
        3,
        optional(
          object({
            kind: field(1, optional(text)),
            apiVersion: field(2, optional(text)),
            name: field(3, optional(text)),
            uid: field(4, optional(text)),
          }),
        ),
      ),
    }),
  ),
  status: optional(object({ token: optional(text), expirationTimestamp: optional(time) })),
})
export type TokenRequest = Described<typeof TokenRequestSchema>
