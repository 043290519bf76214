/** Whether a claim or a volume that is being deleted is still used (pkg/controller/volume/pvcprotection, pvprotection). Pure. */
import { isReleased } from '../../../api/deletion/object-deletion.ts'
import type { AnyObject } from '../../../api/meta.ts'
import type { Pod } from '../../../api/pod.ts'
import type { PersistentVolume } from '../../../api/storage/persistent-volume.ts'
import type { PersistentVolumeClaim } from '../../../api/storage/persistent-volume-claim.ts'
import { claimsOfPod, isMadeForPod } from '../../../api/storage/pod-claims.ts'

export type ProtectionStep = 'protect' | 'release-if-unused' | 'none'

export function protectionStep(object: AnyObject, finalizer: string): ProtectionStep {
  const { deletionTimestamp, finalizers = [] } = object.metadata
  const isProtected = finalizers.includes(finalizer)
  if (deletionTimestamp === undefined) return isProtected ? 'none' : 'protect'
  // One that nothing holds any more was left by a process that ended before it removed the object.
  return isProtected || isReleased(object) ? 'release-if-unused' : 'none'
}

/**
 * A pod with a node uses its claims, also after it has ended: its node may still have them mounted. One without a node does not:
 * it is not bound to one as long as its claim is being deleted.
 */
export function isUsedBy(claim: PersistentVolumeClaim, pod: Pod): boolean {
  if ((pod.spec.nodeName ?? '') === '' || claim.metadata.namespace !== pod.metadata.namespace) return false
  return claimsOfPod(pod).some(
    ({ name, isEphemeral }) =>
      name === claim.metadata.name && (!isEphemeral || (!hasShutDown(pod) && isMadeForPod(claim, pod))),
  )
}

/** Its node is done with it, or it was deleted by force. A finalizer of it may wait for the claim, so the claim does not wait for it. */
function hasShutDown({ metadata }: Pod): boolean {
  return metadata.deletionTimestamp !== undefined && metadata.deletionGracePeriodSeconds === 0
}

export function isVolumeUsed({ status }: PersistentVolume): boolean {
  return status?.phase === 'Bound'
}
