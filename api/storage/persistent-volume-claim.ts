/** core/v1 PersistentVolumeClaim: a wish for storage, which a PersistentVolume can be bound to. */
import { LabelSelectorSchema, ObjectMetaSchema } from '../meta.ts'
import {
  atomic,
  type Described,
  field,
  list,
  listBy,
  mapOf,
  object,
  oneOf,
  optional,
  pointer,
  quantity,
  text,
  time,
} from '../schema.ts'

const reference = { apiGroup: pointer(1, optional(text)), kind: field(2, text), name: field(3, text) }

export const PersistentVolumeClaimSpecSchema = object('core.v1.PersistentVolumeClaimSpec', {
  accessModes: field(1, optional(list(text))),
  resources: field(
    2,
    optional(
      object('core.v1.VolumeResourceRequirements', {
        limits: field(1, optional(mapOf(quantity))),
        requests: field(2, optional(mapOf(quantity))),
      }),
    ),
  ),
  volumeName: field(3, optional(text)),
  selector: field(4, optional(LabelSelectorSchema)),
  storageClassName: pointer(5, optional(text)),
  volumeMode: pointer(6, optional(text)),
  dataSource: field(7, optional(atomic(object('core.v1.TypedLocalObjectReference', reference)))),
  dataSourceRef: field(
    8,
    optional(object('core.v1.TypedObjectReference', { ...reference, namespace: pointer(4, optional(text)) })),
  ),
  volumeAttributesClassName: pointer(9, optional(text)),
})
export type PersistentVolumeClaimSpec = Described<typeof PersistentVolumeClaimSpecSchema>

const PersistentVolumeClaimStatusSchema = object('core.v1.PersistentVolumeClaimStatus', {
  phase: field(1, optional(text)),
  accessModes: field(2, optional(list(text))),
  capacity: field(3, optional(mapOf(quantity))),
  conditions: field(
    4,
    optional(
      listBy(
        'type',
        object('core.v1.PersistentVolumeClaimCondition', {
          type: field(1, text),
          status: field(2, text),
          lastProbeTime: field(3, optional(time)),
          lastTransitionTime: field(4, optional(time)),
          reason: field(5, optional(text)),
          message: field(6, optional(text)),
        }),
      ),
    ),
  ),
  allocatedResources: field(5, optional(mapOf(quantity))),
  allocatedResourceStatuses: field(7, optional(mapOf(text))),
  currentVolumeAttributesClassName: pointer(8, optional(text)),
  modifyVolumeStatus: field(
    9,
    optional(
      object('core.v1.ModifyVolumeStatus', {
        targetVolumeAttributesClassName: field(1, optional(text)),
        status: field(2, text),
      }),
    ),
  ),
})
export type PersistentVolumeClaimStatus = Described<typeof PersistentVolumeClaimStatusSchema>

export const PersistentVolumeClaimSchema = object({
  apiVersion: oneOf('v1'),
  kind: oneOf('PersistentVolumeClaim'),
  metadata: field(1, ObjectMetaSchema),
  spec: field(2, optional(PersistentVolumeClaimSpecSchema)),
  status: field(3, optional(PersistentVolumeClaimStatusSchema)),
})
export type PersistentVolumeClaim = Described<typeof PersistentVolumeClaimSchema>

/** A claim that a StatefulSet makes for each of its pods. */
export const StatefulClaimSchema = object('core.v1.PersistentVolumeClaim', {
  apiVersion: optional(text),
  kind: optional(text),
  metadata: field(1, optional(ObjectMetaSchema)),
  spec: field(2, optional(PersistentVolumeClaimSpecSchema)),
  status: field(3, optional(PersistentVolumeClaimStatusSchema)),
})
export type StatefulClaim = Described<typeof StatefulClaimSchema>

/** A claim that is made for a volume of one pod. */
export const EphemeralVolumeSourceSchema = object('core.v1.EphemeralVolumeSource', {
  volumeClaimTemplate: pointer(
    1,
    optional(
      object('core.v1.PersistentVolumeClaimTemplate', {
        metadata: field(1, optional(ObjectMetaSchema)),
        spec: field(2, optional(PersistentVolumeClaimSpecSchema)),
      }),
    ),
  ),
})
export type EphemeralVolumeSource = Described<typeof EphemeralVolumeSourceSchema>

/** Its class in the days before `storageClassName` (core/v1 BetaStorageClassAnnotation); it still wins. */
export const storageClassAnnotation = 'volume.beta.kubernetes.io/storage-class'
