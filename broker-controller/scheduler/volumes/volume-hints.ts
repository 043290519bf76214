/** Whether a change of a claim, a volume or a storage class may let a pod fit that the volume plugins refused. */
import type { Pod } from '../../../api/pod.ts'
import { claimsOfPod } from '../../../api/storage/pod-claims.ts'
import { classOfClaim, classOfVolume } from '../../../api/storage/volume-matching.ts'
import type { StoredObject } from '../../store/store.ts'
import { claimKeyOf, type KnownClaim, type KnownVolume, usesClaims, type VolumeView } from './volume-cache.ts'

const plugins = ['VolumeRestrictions', 'NodeVolumeLimits', 'VolumeBinding', 'VolumeZone']

export function isRefusedByVolumes(refusedBy: ReadonlySet<string>): boolean {
  return plugins.some((plugin) => refusedBy.has(plugin))
}

export function usesClaim(pod: Pod, { metadata }: KnownClaim): boolean {
  return pod.metadata.namespace === metadata.namespace && claimsOfPod(pod).some(({ name }) => name === metadata.name)
}

/** Both name one claim: it may be for one pod alone. */
export function shareClaim(pod: Pod, other: Pod): boolean {
  if (pod.metadata.namespace !== other.metadata.namespace || !usesClaims(other)) return false
  const names = new Set(claimsOfPod(other).map(({ name }) => name))
  return claimsOfPod(pod).some(({ name }) => names.has(name))
}

/** The volume of one of its claims, or one that a claim without a volume may get. */
export function mayUseVolume(pod: Pod, volume: KnownVolume, view: Pick<VolumeView, 'claim'>): boolean {
  const { claimRef } = volume.spec ?? {}
  return claimsOf(pod, view).some((claim) => {
    const { volumeName } = claim.spec ?? {}
    if (volumeName) return volumeName === volume.metadata.name
    if (claimRef !== undefined) return claimRef.name === claim.metadata.name
    return classOfVolume(volume) === (classOfClaim(claim) ?? '')
  })
}

export function mayUseClass(
  pod: Pod,
  { metadata }: StoredObject<'storageclasses'>,
  view: Pick<VolumeView, 'claim'>,
): boolean {
  return claimsOf(pod, view).some((claim) => classOfClaim(claim) === metadata.name)
}

function claimsOf(pod: Pod, view: Pick<VolumeView, 'claim'>): readonly KnownClaim[] {
  return claimsOfPod(pod).flatMap(({ name }) => view.claim(claimKeyOf(pod, name)) ?? [])
}
