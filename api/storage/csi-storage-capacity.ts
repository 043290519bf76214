/** storage.k8s.io/v1 CSIStorageCapacity: what a driver can still provide of a class, in a part of the fleet. */
import { LabelSelectorSchema, ObjectMetaSchema } from '../meta.ts'
import { type Described, field, object, oneOf, optional, pointer, quantity, text } from '../schema.ts'

export const CSIStorageCapacitySchema = object({
  apiVersion: oneOf('storage.k8s.io/v1'),
  kind: oneOf('CSIStorageCapacity'),
  metadata: field(1, ObjectMetaSchema),
  nodeTopology: pointer(2, optional(LabelSelectorSchema)),
  storageClassName: field(3, text),
  capacity: pointer(4, optional(quantity)),
  maximumVolumeSize: pointer(5, optional(quantity)),
})
export type CSIStorageCapacity = Described<typeof CSIStorageCapacitySchema>
