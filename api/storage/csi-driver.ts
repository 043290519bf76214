/** storage.k8s.io/v1 CSIDriver: a driver of volumes that is installed in the fleet, by its name. */
import { ObjectMetaSchema } from '../meta.ts'
import { bool, type Described, field, integer, list, object, oneOf, optional, pointer, setOf, text } from '../schema.ts'

const TokenRequestSchema = object('storage.v1.TokenRequest', {
  audience: field(1, text),
  expirationSeconds: pointer(2, optional(integer)),
})

const CSIDriverSpecSchema = object('storage.v1.CSIDriverSpec', {
  attachRequired: pointer(1, optional(bool)),
  podInfoOnMount: pointer(2, optional(bool)),
  volumeLifecycleModes: field(3, optional(setOf(text, { patch: 'whole' }))),
  storageCapacity: pointer(4, optional(bool)),
  fsGroupPolicy: pointer(5, optional(text)),
  tokenRequests: field(6, optional(list(TokenRequestSchema))),
  requiresRepublish: pointer(7, optional(bool)),
  seLinuxMount: pointer(8, optional(bool)),
})
export type CSIDriverSpec = Described<typeof CSIDriverSpecSchema>

export const CSIDriverSchema = object({
  apiVersion: oneOf('storage.k8s.io/v1'),
  kind: oneOf('CSIDriver'),
  metadata: field(1, ObjectMetaSchema),
  spec: field(2, optional(CSIDriverSpecSchema)),
})
export type CSIDriver = Described<typeof CSIDriverSchema>
