/** The claims that pods use (component-helpers/storage/ephemeral/ephemeral.go). Pure. */
import type { Pod } from '../pod.ts'
import type { PersistentVolumeClaim } from './persistent-volume-claim.ts'

export type PodClaim = {
  /** The name of the claim, in the namespace of the pod. */
  readonly name: string
  /** The name of the volume in the pod. */
  readonly volume: string
  /** It is made for the pod, and goes with it. */
  readonly isEphemeral: boolean
}

export function claimsOfPod({ metadata, spec }: Pod): readonly PodClaim[] {
  return (spec.volumes ?? []).flatMap(({ name: volume, persistentVolumeClaim, ephemeral }): readonly PodClaim[] => {
    if (persistentVolumeClaim !== undefined)
      return [{ name: persistentVolumeClaim.claimName, volume, isEphemeral: false }]
    if (ephemeral === undefined) return []
    return [{ name: ephemeralClaimName(metadata.name ?? '', volume), volume, isEphemeral: true }]
  })
}

export function ephemeralClaimName(pod: string, volume: string): string {
  return `${pod}-${volume}`
}

/** A claim of that name may be somebody else's: the pod never takes that (VolumeIsForPod). */
export function isMadeForPod(claim: PersistentVolumeClaim, { metadata }: Pod): boolean {
  const controller = claim.metadata.ownerReferences?.find(({ controller: isController }) => isController === true)
  return claim.metadata.namespace === metadata.namespace && controller !== undefined && controller.uid === metadata.uid
}

/** ReadWriteOncePod: no second pod uses it, on any node. */
export function isForOnePod({ spec }: Pick<PersistentVolumeClaim, 'spec'>): boolean {
  return spec?.accessModes?.includes('ReadWriteOncePod') === true
}
