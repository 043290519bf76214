/** The claim of a pod's volume → the volume that it is bound to, or why it cannot be mounted, in the kubelet's words. Pure. */
import type { Pod, Volume } from '../../../api/pod.ts'
import type { NodeClaim, NodeVolume } from '../../../api/storage/node-claim.ts'
import { claimsOfPod } from '../../../api/storage/pod-claims.ts'
import { setUpFailed, type WantedVolume } from './volume-store.ts'
import type { VolumeResult } from './wanted-volumes.ts'

export const inUseElsewhere = 'volume uses the ReadWriteOncePod access mode and is already in use by another pod'

export function isClaim({ persistentVolumeClaim, ephemeral }: Volume): boolean {
  return persistentVolumeClaim !== undefined || ephemeral !== undefined
}

/** The pod or the volume asks for it. A volume that is not a claim is not meant. */
export function isReadOnlyClaim(pod: Pod, volumeName: string, sources: { readonly claims?: readonly NodeClaim[] }) {
  const volume = pod.spec.volumes?.find(({ name }) => name === volumeName)
  if (volume === undefined || !isClaim(volume)) return false
  const options = claimOf(pod, volume, sources.claims).found?.volume?.mountOptions ?? []
  return volume.persistentVolumeClaim?.readOnly === true || options.includes('ro')
}

export function wantedClaim(
  pod: Pod,
  volume: Volume,
  claims: readonly NodeClaim[] | undefined,
): VolumeResult<WantedVolume> {
  const { name, namespace, isEphemeral, found } = claimOf(pod, volume, claims)
  const path = `${namespace}/${name}`
  if (found === undefined) {
    const missing = `failed to fetch PVC from API server: persistentvolumeclaims "${name}" not found`
    return notProcessed(volume.name, `error processing PVC ${path}: ${missing}`)
  }
  if (isEphemeral && found.owner !== pod.metadata.uid) {
    const { metadata } = pod
    const notOwner = `PVC ${path} was not created for pod ${metadata.namespace}/${metadata.name} (pod is not owner)`
    return notProcessed(volume.name, notOwner)
  }
  if (found.refusal !== undefined || found.volume === undefined) {
    return notProcessed(volume.name, `error processing PVC ${path}: ${found.refusal ?? 'PVC is not bound'}`)
  }
  const { volumeMode = 'Filesystem' } = found.volume
  if (volumeMode !== 'Filesystem') {
    const other = `volume ${volume.name} has volumeMode ${volumeMode}, but is specified in volumeMounts`
    return notProcessed(volume.name, other)
  }
  return wantedVolumeOf(pod, volume, found, found.volume)
}

function claimOf({ metadata, spec }: Pod, volume: Volume, claims: readonly NodeClaim[] = []) {
  const { namespace = 'default' } = metadata
  const [claim] = claimsOfPod({ apiVersion: 'v1', kind: 'Pod', metadata, spec: { ...spec, volumes: [volume] } })
  const { name, isEphemeral } = claim ?? { name: '', isEphemeral: false }
  return { name, namespace, isEphemeral, found: claims.find((one) => one.name === name && one.namespace === namespace) }
}

function wantedVolumeOf(
  pod: Pod,
  { name, persistentVolumeClaim }: Volume,
  { pod: holder, accessModes = [], ...claim }: NodeClaim,
  volume: NodeVolume,
): VolumeResult<WantedVolume> {
  const { source, path, type = '', mountOptions = [], elsewhere } = volume
  const failed = (step: string, message: string) => ({
    ...{ ok: false as const, message, event: `${step} for volume "${volume.name}" : ${message}` },
  })
  if (elsewhere) return failed('MountVolume.NodeAffinity check failed', 'no matching NodeSelectorTerms')
  if (source === 'other' || path === undefined) return failed(setUpFailed, 'no volume plugin matched')
  const options = mountOptions.filter((option) => source === 'hostPath' || !['ro', 'rw', 'defaults'].includes(option))
  if (options.length > 0) {
    const refused = 'Mount options are not supported for this volume type'
    return failed('MountVolume.MountOptionSupport check failed', `${refused}: ${options.join(',')}`)
  }
  if (holder !== undefined && holder !== pod.metadata.uid) return failed(setUpFailed, inUseElsewhere)
  const { fsGroup, fsGroupChangePolicy } = pod.spec.securityContext ?? {}
  const isReadOnly = persistentVolumeClaim?.readOnly === true || mountOptions.includes('ro')
  // Not those of a hostPath, which belongs to the machine (hostPath.GetAttributes in pkg/volume/hostpath).
  const isOwned = source === 'local' && fsGroup !== undefined && !isReadOnly
  return {
    ok: true,
    value: {
      ...{ name, kind: 'claim', uid: volume.uid, volume: volume.name, source, path, type },
      claim: `${claim.namespace}/${claim.name}`,
      claimUID: claim.uid,
      ...(volume.pool !== undefined && { pool: volume.pool }),
      ...(volume.hasData && { hasData: true }),
      isForOnePod: accessModes.includes('ReadWriteOncePod'),
      ...(isOwned && { group: fsGroup, groupOnMismatch: fsGroupChangePolicy === 'OnRootMismatch' }),
    },
  }
}

/** The pod waits for the claim (WaitForAttachAndMount in pkg/kubelet/volumemanager/volume_manager.go). */
function notProcessed(volume: string, why: string): VolumeResult<never> {
  const lists = `unmounted volumes=[${volume}], unattached volumes=[], failed to process volumes=[${volume}]`
  const event = `Unable to attach or mount volumes: ${lists}: ${why}: timed out waiting for the condition`
  return { ok: false, message: why, event }
}
