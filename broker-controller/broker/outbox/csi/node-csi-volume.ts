/** A PersistentVolume of a CSI driver, as a node receives it. Pure. */
import type { Pod } from '../../../../api/pod.ts'
import type { CSIDriver, CSIDriverSpec } from '../../../../api/storage/csi-driver.ts'
import type { NodeCsiDriver, NodeCsiVolume } from '../../../../api/storage/node-claim.ts'
import type { PersistentVolume } from '../../../../api/storage/persistent-volume.ts'
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
  node: string | undefined,
  { csiDriver, attachment }: CsiSources,
): NodeCsiVolume | undefined {
  const { csi, accessModes } = volume.spec ?? {}
  if (csi === undefined || shareOfVolume(volume) !== undefined) return undefined
  const { driver, volumeHandle: handle, fsType, volumeAttributes } = csi
  const spec = csiDriver?.(driver)?.spec ?? {}
  const { attachRequired = true } = spec
  const [stageSecret, publishSecret] = [csi.nodeStageSecretRef, csi.nodePublishSecretRef].map(named)
  const name = attachmentName({ driver, handle, node: node ?? '' })
  const attached = attachRequired ? attachmentState({ handle, name }, attachment?.(name)) : {}
  return {
    ...{ driver, handle },
    ...(fsType && { fsType }),
    ...(volumeAttributes !== undefined && { attributes: volumeAttributes }),
    ...(accessModes !== undefined && { accessModes }),
    ...(stageSecret && { stageSecret }),
    ...(publishSecret && { publishSecret }),
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

/** The Secrets that the node needs for it, as `namespace/name`. */
export function secretsOfCsi(csi: Pick<NodeCsiVolume, 'stageSecret' | 'publishSecret'> | undefined): readonly string[] {
  return [csi?.stageSecret, csi?.publishSecret].flatMap((secret) =>
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
