/** storage.k8s.io/v1 VolumeAttachment: a volume that a driver attaches to a node. */
import { ObjectMetaSchema } from '../meta.ts'
import { bool, type Described, field, mapOf, object, oneOf, optional, pointer, text, time } from '../schema.ts'
import { PersistentVolumeSpecSchema } from './persistent-volume.ts'

const VolumeAttachmentSpecSchema = object('storage.v1.VolumeAttachmentSpec', {
  attacher: field(1, text),
  source: field(
    2,
    object('storage.v1.VolumeAttachmentSource', {
      persistentVolumeName: pointer(1, optional(text)),
      inlineVolumeSpec: pointer(2, optional(PersistentVolumeSpecSchema)),
    }),
  ),
  nodeName: field(3, text),
})
export type VolumeAttachmentSpec = Described<typeof VolumeAttachmentSpecSchema>

const VolumeErrorSchema = object('storage.v1.VolumeError', {
  time: field(1, optional(time)),
  message: field(2, optional(text)),
})

const VolumeAttachmentStatusSchema = object('storage.v1.VolumeAttachmentStatus', {
  attached: field(1, bool),
  attachmentMetadata: field(2, optional(mapOf(text))),
  attachError: pointer(3, optional(VolumeErrorSchema)),
  detachError: pointer(4, optional(VolumeErrorSchema)),
})
export type VolumeAttachmentStatus = Described<typeof VolumeAttachmentStatusSchema>

export const VolumeAttachmentSchema = object({
  apiVersion: oneOf('storage.k8s.io/v1'),
  kind: oneOf('VolumeAttachment'),
  metadata: field(1, ObjectMetaSchema),
  spec: field(2, VolumeAttachmentSpecSchema),
  status: field(3, optional(VolumeAttachmentStatusSchema)),
})
export type VolumeAttachment = Described<typeof VolumeAttachmentSchema>
