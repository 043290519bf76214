/** core/v1 PersistentVolume: storage of the fleet that claims can be bound to. */
import { ObjectMetaSchema, objectReferenceFields } from '../meta.ts'
import { NodeSelectorSchema } from '../pod.ts'
import {
  type Described,
  field,
  list,
  mapOf,
  object,
  oneOf,
  optional,
  pointer,
  quantity,
  text,
  time,
} from '../schema.ts'
import { persistentVolumeSources } from './volume-source.ts'

export const PersistentVolumeSpecSchema = object('core.v1.PersistentVolumeSpec', {
  capacity: field(1, optional(mapOf(quantity))),
  ...persistentVolumeSources,
  accessModes: field(3, optional(list(text))),
  claimRef: field(4, optional(object(objectReferenceFields))),
  persistentVolumeReclaimPolicy: field(5, optional(text)),
  storageClassName: field(6, optional(text)),
  mountOptions: field(7, optional(list(text))),
  volumeMode: pointer(8, optional(text)),
  nodeAffinity: field(
    9,
    optional(object('core.v1.VolumeNodeAffinity', { required: field(1, optional(NodeSelectorSchema)) })),
  ),
  volumeAttributesClassName: pointer(10, optional(text)),
})
export type PersistentVolumeSpec = Described<typeof PersistentVolumeSpecSchema>

const PersistentVolumeStatusSchema = object('core.v1.PersistentVolumeStatus', {
  phase: field(1, optional(text)),
  message: field(2, optional(text)),
  reason: field(3, optional(text)),
  lastPhaseTransitionTime: field(4, optional(time)),
})
export type PersistentVolumeStatus = Described<typeof PersistentVolumeStatusSchema>

export const PersistentVolumeSchema = object({
  apiVersion: oneOf('v1'),
  kind: oneOf('PersistentVolume'),
  metadata: field(1, ObjectMetaSchema),
  spec: field(2, optional(PersistentVolumeSpecSchema)),
  status: field(3, optional(PersistentVolumeStatusSchema)),
})
export type PersistentVolume = Described<typeof PersistentVolumeSchema>
