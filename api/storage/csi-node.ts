/** storage.k8s.io/v1 CSINode: the drivers of volumes on one node. It has the node's name. */
import { ObjectMetaSchema } from '../meta.ts'
import { type Described, field, integer, list, listBy, object, oneOf, optional, pointer, text } from '../schema.ts'

const CSINodeDriverSchema = object('storage.v1.CSINodeDriver', {
  name: field(1, text),
  nodeID: field(2, text),
  topologyKeys: field(3, optional(list(text))),
  allocatable: pointer(4, optional(object('storage.v1.VolumeNodeResources', { count: pointer(1, optional(integer)) }))),
})
export type CSINodeDriver = Described<typeof CSINodeDriverSchema>

export const CSINodeSchema = object({
  apiVersion: oneOf('storage.k8s.io/v1'),
  kind: oneOf('CSINode'),
  metadata: field(1, ObjectMetaSchema),
  spec: field(
    2,
    optional(object('storage.v1.CSINodeSpec', { drivers: field(1, optional(listBy('name', CSINodeDriverSchema))) })),
  ),
})
export type CSINode = Described<typeof CSINodeSchema>
