/** core/v1 ServiceAccount: the identity of a program in the API. */
import { LocalObjectReferenceSchema, ObjectMetaSchema, ObjectReferenceSchema } from '../meta.ts'
import { bool, type Described, field, list, listBy, object, oneOf, optional, pointer } from '../schema.ts'

export const ServiceAccountSchema = object({
  apiVersion: oneOf('v1'),
  kind: oneOf('ServiceAccount'),
  metadata: field(1, ObjectMetaSchema),
  secrets: field(2, optional(listBy('name', ObjectReferenceSchema))),
  imagePullSecrets: field(3, optional(list(LocalObjectReferenceSchema))),
  automountServiceAccountToken: pointer(4, optional(bool)),
})
export type ServiceAccount = Described<typeof ServiceAccountSchema>
