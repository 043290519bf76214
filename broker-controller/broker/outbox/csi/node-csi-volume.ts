/** A PersistentVolume of a CSI driver, as a node receives it. Pure. */
import type { Pod } from '../../../../api/pod.ts'
import { compareQuantities, formatQuantity } from '../../../../api/quantity.ts'
import type { CSIDriver, CSIDriverSpec } from '../../../../api/storage/csi-driver.ts'
import type { NodeCsiDriver, NodeCsiVolume } from '../../../../api/storage/node-claim.ts'
import type { PersistentVolume } from '../../../../api/storage/persistent-volume.ts'
import type { PersistentVolumeClaim } from '../../../../api/storage/persistent-volume-claim.ts'
import { shareOfVolume } from '../../../../api/storage/shares.ts'
import type { VolumeAttachment } from '../../../../api/storage/volume-attachment.ts'
import { attachmentName } from '../../../store/attachment-name.ts'

export type CsiSources = {
  readonly csiDriver?: (name: string) => CSIDriver | undefined
  /** By its name. */
  readonly attachment?: (name: string) => VolumeAttachment | undefined
}

/** undefined: it is not of a driver, or the node mounts it as a share by itself. */
export function nodeCsiVolume(
  volume: PersistentVolume,
  { node, claim }: { readonly node?: string | undefined; readonly claim?: PersistentVolumeClaim },
  { csiDriver, attachment }: CsiSources,
): NodeCsiVolume | undefined {
  const { csi, accessModes } = volume.spec ?? {}
  if (csi === undefined || shareOfVolume(volume) !== undefined) return undefined
  const { driver, volumeHandle: handle, fsType, volumeAttributes } = csi
  const spec = csiDriver?.(driver)?.spec ?? {}
  const { attachRequired = true } = spec
  const [stageSecret, publishSecret, expandSecret] = [
    ...[csi.nodeStageSecretRef, csi.nodePublishSecretRef, csi.nodeExpandSecretRef],
  ].map(named)
  const name = attachmentName({ driver, handle, node: node ?? '' })
  const attached = attachRequired ? attachmentState({ handle, name }, attachment?.(name)) : {}
  return {
    ...{ driver, handle },
    ...(fsType && { fsType }),
    ...(volumeAttributes !== undefined && { attributes: volumeAttributes }),
    ...(accessModes !== undefined && { accessModes }),
    ...(stageSecret && { stageSecret }),
    ...(publishSecret && { publishSecret }),
    ...(expandSecret && { expandSecret }),
    ...(claim && growthFacts(volume, claim)),
    ...mountFacts(spec),
    ...(attachRequired && { attachable: true }),
    ...attached,
  }
}

/** The CSIDrivers of volumes that these pods have inline, by name. */
export function inlineCsiDrivers(pods: readonly Pod[], { csiDriver }: CsiSources): readonly NodeCsiDriver[] {
  const names = new Set(pods.flatMap(({ spec }) => (spec.volumes ?? []).flatMap(({ csi }) => csi?.driver ?? [])))
  return [...names].sort().flatMap((name) => {
    const found = csiDriver?.(name)
    if (found === undefined) return []
    const { volumeLifecycleModes: modes = ['Persistent'], ...spec } = found.spec ?? {}
    return [{ name, modes, ...mountFacts(spec) }]
  })
}

function mountFacts({ podInfoOnMount, fsGroupPolicy, tokenRequests = [], requiresRepublish }: CSIDriverSpec) {
  return {
    ...(podInfoOnMount && { podInfo: true }),
    ...(fsGroupPolicy && { fsGroupPolicy }),
    ...(tokenRequests.length > 0 && { tokens: tokenRequests }),
    ...(requiresRepublish && { republish: true }),
  }
}

const nodeSteps: readonly (string | undefined)[] = ['NodeResizePending', 'NodeResizeInProgress']

/**
 * Whether the node has a step of the expansion to do (runPreCheck in pkg/volume/util/operationexecutor/node_expander.go). A resizer that is too old
 * to write what it allocates leaves only the difference of the capacities. A volume of several nodes is expanded on each of them.
 */
function growthFacts(volume: PersistentVolume, { spec, status = {} }: PersistentVolumeClaim) {
  const { capacity, allocatedResources, allocatedResourceStatuses = {} } = status
  const [size, has] = [volume.spec?.capacity?.['storage'], capacity?.['storage']]
  if (size === undefined || has === undefined) return {}
  const step = allocatedResourceStatuses['storage']
  const isNodes = nodeSteps.includes(step) || (step === undefined && allocatedResources === undefined)
  const grows = isNodes && compareQuantities(has, size) < 0
  const isShared = spec?.accessModes?.includes('ReadWriteMany') === true
  return grows || isShared ? { size: formatQuantity(size), ...(grows && { grows }) } : {}
}

/** The Secrets that the node needs for it, as `namespace/name`. */
export function secretsOfCsi(
  csi: Pick<NodeCsiVolume, 'stageSecret' | 'publishSecret' | 'expandSecret'> | undefined,
): readonly string[] {
  return [csi?.stageSecret, csi?.publishSecret, csi?.expandSecret].flatMap((secret) =>
    secret === undefined ? [] : [`${secret.namespace}/${secret.name}`],
  )
}

function named(reference: { readonly namespace?: string; readonly name?: string } | undefined) {
  const { namespace = '', name = '' } = reference ?? {}
  return namespace === '' || name === '' ? undefined : { namespace, name }
}

/** As the kubelet waits for it (WaitForAttach and verifyAttachmentStatus in pkg/volume/csi/csi_attacher.go). */
function attachmentState(
  { handle, name }: { readonly handle: string; readonly name: string },
  found: VolumeAttachment | undefined,
): Pick<NodeCsiVolume, 'notAttached' | 'publishContext'> {
  const { attached = false, attachmentMetadata, attachError } = found?.status ?? {}
  if (found?.metadata.deletionTimestamp !== undefined) return { notAttached: 'volume attachment is being deleted' }
  if (attached) return attachmentMetadata === undefined ? {} : { publishContext: attachmentMetadata }
  return { notAttached: attachError?.message || `volume ${handle} is not attached for volume attachment ${name}` }
}
