/** The claim of a pod's volume → the volume that it is bound to, or why it cannot be mounted, in the kubelet's words. Pure. */
import type { Pod, Volume } from '../../../api/pod.ts'
import type { Secret } from '../../../api/secret.ts'
import type { NodeClaim, NodeCsiVolume, NodeVolume } from '../../../api/storage/node-claim.ts'
import { claimsOfPod } from '../../../api/storage/pod-claims.ts'
import type { NasShare } from '../../../api/storage/shares.ts'
import { csiMountOf, type InlineSources, inlineCsiMount } from './csi/wanted-csi.ts'
import { setUpFailed } from './mount-step.ts'
import { type MountedShare, shareUser } from './share-mount.ts'
import type { ClaimVolume, VolumeResult, WantedVolume } from './volume-store.ts'

export const inUseElsewhere = 'volume uses the ReadWriteOncePod access mode and is already in use by another pod'

export function isClaim({ persistentVolumeClaim, ephemeral }: Volume): boolean {
  return persistentVolumeClaim !== undefined || ephemeral !== undefined
}

/** The pod or the volume asks for it. A volume that is not a claim, nor a share, is not meant. */
export function isReadOnlyClaim(pod: Pod, volumeName: string, sources: { readonly claims?: readonly NodeClaim[] }) {
  const volume = pod.spec.volumes?.find(({ name }) => name === volumeName)
  if (volume?.nfs !== undefined) return volume.nfs.readOnly === true
  if (volume?.csi !== undefined) return volume.csi.readOnly === true
  if (volume === undefined || !isClaim(volume)) return false
  const { mountOptions = [], share } = claimOf(pod, volume, sources.claims).found?.volume ?? {}
  const isReadOnly = mountOptions.includes('ro') || share?.readOnly === true
  return volume.persistentVolumeClaim?.readOnly === true || isReadOnly
}

type ClaimSources = Pick<InlineSources, 'secrets' | 'tokens'> & { readonly claims?: readonly NodeClaim[] }

/** A pod's own `nfs` volume: as a claim, of no other pod. */
export function wantedShare(pod: Pod, name: string, nfs: NonNullable<Volume['nfs']>): VolumeResult<WantedVolume> {
  const { server, path, readOnly } = nfs
  return {
    ok: true,
    value: {
      ...{ name, kind: 'claim', uid: `${pod.metadata.uid}.${name}`, volume: name, source: 'share', path: '', type: '' },
      ...{ claim: '', isForOnePod: false, share: { kind: 'nfs', server, path, ...(readOnly && { readOnly }) } },
    },
  }
}

/** A pod's own volume of a CSI driver. */
export function wantedInline(
  pod: Pod,
  name: string,
  { inline, sources }: { readonly inline: NonNullable<Volume['csi']>; readonly sources: InlineSources },
): VolumeResult<WantedVolume> {
  const found = inlineCsiMount(pod, { name, inline }, sources)
  if ('message' in found) return notDone(name, found)
  return { ok: true, value: { name, kind: 'claim', ...found } }
}

/** The text of the kubelet's Event. */
function notDone(volume: string, { step, message, isQuiet }: CsiProblem): VolumeResult<never> {
  const event = `${step} for volume "${volume}" : ${message}`
  return { ok: false, message, event, ...(isQuiet && { isQuiet }) }
}

type CsiProblem = { readonly step: string; readonly message: string; readonly isQuiet?: true }

export function wantedClaim(pod: Pod, volume: Volume, sources: ClaimSources): VolumeResult<WantedVolume> {
  const { name, namespace, isEphemeral, found } = claimOf(pod, volume, sources.claims)
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
  const other = otherUse(pod, volume.name, volumeMode)
  if (other !== undefined) {
    return notProcessed(volume.name, `volume ${volume.name} has volumeMode ${volumeMode}, but is specified in ${other}`)
  }
  return wantedVolumeOf(pod, volume, { ...sources, claim: found, volume: found.volume })
}

/** The field in which a container has the volume as what it is not. */
function otherUse({ spec }: Pod, name: string, mode: string): 'volumeMounts' | 'volumeDevices' | undefined {
  const containers = [...(spec.initContainers ?? []), ...spec.containers, ...(spec.ephemeralContainers ?? [])]
  const isIn = (field: 'volumeMounts' | 'volumeDevices') =>
    containers.some((container) => container[field]?.some((one) => one.name === name))
  if (mode !== 'Filesystem' && isIn('volumeMounts')) return 'volumeMounts'
  return mode !== 'Block' && isIn('volumeDevices') ? 'volumeDevices' : undefined
}

function claimOf({ metadata, spec }: Pod, volume: Volume, claims: readonly NodeClaim[] = []) {
  const { namespace = 'default' } = metadata
  const [claim] = claimsOfPod({ apiVersion: 'v1', kind: 'Pod', metadata, spec: { ...spec, volumes: [volume] } })
  const { name, isEphemeral } = claim ?? { name: '', isEphemeral: false }
  return { name, namespace, isEphemeral, found: claims.find((one) => one.name === name && one.namespace === namespace) }
}

/** A bound claim in a pod, and what the ways to mount it have in common. */
type BoundClaim = Pick<InlineSources, 'secrets' | 'tokens'> & {
  readonly pod: Pod
  readonly volume: NodeVolume
  readonly head: Pick<ClaimVolume, 'uid' | 'volume' | 'type' | 'claim' | 'claimUID' | 'isForOnePod' | 'isBlock'> & {
    readonly name: string
    readonly kind: 'claim'
  }
  /** The pod asks for it. */
  readonly isReadOnly: boolean
  /** It is for one pod alone, and another one has it. */
  readonly isHeld: boolean
}

function wantedVolumeOf(
  pod: Pod,
  { name, persistentVolumeClaim }: Volume,
  { claim, volume, ...sources }: ClaimSources & { readonly claim: NodeClaim; readonly volume: NodeVolume },
): VolumeResult<WantedVolume> {
  const isBlock = volume.volumeMode === 'Block'
  if (volume.elsewhere) {
    const step = `${isBlock ? 'MapVolume' : 'MountVolume'}.NodeAffinity check failed`
    return notDone(volume.name, { step, message: 'no matching NodeSelectorTerms' })
  }
  const bound: BoundClaim = {
    ...{ ...sources, pod, volume },
    head: {
      ...{ name, kind: 'claim', uid: volume.uid, volume: volume.name, type: volume.type ?? '' },
      ...{ claim: `${claim.namespace}/${claim.name}`, claimUID: claim.uid },
      isForOnePod: claim.accessModes?.includes('ReadWriteOncePod') === true,
      ...(isBlock && { isBlock }),
    },
    isReadOnly: persistentVolumeClaim?.readOnly === true,
    isHeld: claim.pod !== undefined && claim.pod !== pod.metadata.uid,
  }
  const { share, csi, source, path } = volume
  if (share !== undefined) return shareOf(bound, share)
  if (csi !== undefined) return csiVolumeOf(bound, csi)
  if (source === 'other' || path === undefined) return noSetUp(bound, 'no volume plugin matched')
  return isBlock ? deviceOf(bound, { source, path }) : folderOf(bound, { source, path })
}

function noSetUp({ volume }: BoundClaim, message: string): VolumeResult<never> {
  return notDone(volume.name, { step: setUpFailed, message })
}

function noMapper({ volume }: BoundClaim): VolumeResult<never> {
  const step = 'MapVolume.FindMapperPluginBySpec failed to find BlockVolumeMapper plugin'
  return notDone(volume.name, { step, message: 'Volume plugin is nil.' })
}

function shareOf(bound: BoundClaim, nas: NasShare): VolumeResult<WantedVolume> {
  if (bound.head.isBlock) return noMapper(bound)
  if (bound.isHeld) return noSetUp(bound, inUseElsewhere)
  const share = withUser(nas, bound.secrets, bound.pod.spec.securityContext?.fsGroup)
  if ('ok' in share) return noSetUp(bound, share.message)
  return { ok: true, value: { ...bound.head, source: 'share', path: '', share } }
}

function csiVolumeOf(bound: BoundClaim, csi: NodeCsiVolume): VolumeResult<WantedVolume> {
  const { pod, volume, head, isReadOnly, secrets, tokens } = bound
  if (bound.isHeld) return noSetUp(bound, inUseElsewhere)
  const mount = csiMountOf(pod, { volume, csi, isReadOnly, secrets, ...(tokens && { tokens }) })
  if ('message' in mount) return notDone(volume.name, mount)
  return { ok: true, value: { ...head, source: 'csi', path: '', ...mount } }
}

/** A path of this machine. */
type PathOfVolume = { readonly source: 'hostPath' | 'local'; readonly path: string }

function deviceOf(bound: BoundClaim, { source, path }: PathOfVolume): VolumeResult<WantedVolume> {
  if (source !== 'local') return noMapper(bound)
  if (bound.isHeld) return noSetUp(bound, inUseElsewhere)
  return { ok: true, value: { ...bound.head, source, path } }
}

function folderOf(bound: BoundClaim, { source, path }: PathOfVolume): VolumeResult<WantedVolume> {
  const { volume, head } = bound
  const { mountOptions = [], pool, hasData, fsType } = volume
  const options = mountOptions.filter((option) => source === 'hostPath' || !['ro', 'rw', 'defaults'].includes(option))
  if (options.length > 0) {
    const message = `Mount options are not supported for this volume type: ${options.join(',')}`
    return notDone(volume.name, { step: 'MountVolume.MountOptionSupport check failed', message })
  }
  if (bound.isHeld) return noSetUp(bound, inUseElsewhere)
  const { fsGroup, fsGroupChangePolicy } = bound.pod.spec.securityContext ?? {}
  const isReadOnly = bound.isReadOnly || mountOptions.includes('ro')
  // Not those of a hostPath, which belongs to the machine (hostPath.GetAttributes in pkg/volume/hostpath).
  const isOwned = source === 'local' && fsGroup !== undefined && !isReadOnly
  return {
    ok: true,
    value: {
      ...{ ...head, source, path },
      ...(pool !== undefined && { pool }),
      ...(hasData && { hasData: true }),
      ...(fsType !== undefined && { fsType }),
      ...(source === 'local' && mountOptions.includes('ro') && { isReadOnly: true }),
      ...(isOwned && { group: fsGroup, groupOnMismatch: fsGroupChangePolicy === 'OnRootMismatch' }),
    },
  }
}

/** The files of an SMB share get the fsGroup, as it has no owners. Those of NFS do not (nfs.GetAttributes in pkg/volume/nfs). */
function withUser(
  { secret, ...share }: NasShare,
  secrets: readonly Secret[],
  group: number | undefined,
): MountedShare | { readonly ok: false; readonly message: string } {
  const owned = { ...share, ...(share.kind === 'smb' && group !== undefined && { group }) }
  if (secret === undefined) return owned
  const found = secrets.find(({ metadata }) => metadata.name === secret.name && metadata.namespace === secret.namespace)
  if (found === undefined) return { ok: false, message: `secret "${secret.namespace}/${secret.name}" not found` }
  const user = shareUser(found.data ?? {})
  return 'ok' in user ? user : { ...owned, user }
}

/** The pod waits for the claim (WaitForAttachAndMount in pkg/kubelet/volumemanager/volume_manager.go). */
function notProcessed(volume: string, why: string): VolumeResult<never> {
  const lists = `unmounted volumes=[${volume}], unattached volumes=[], failed to process volumes=[${volume}]`
  const event = `Unable to attach or mount volumes: ${lists}: ${why}: timed out waiting for the condition`
  return { ok: false, message: why, event }
}
