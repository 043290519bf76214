/**
 * What becomes of a volume (syncVolume and reclaimVolume in pkg/controller/volume/persistentvolume/pv_controller.go): the next
 * write; after it is decided again. Pure.
 */
import { hasVolumeModeOf } from '../../../api/storage/volume-matching.ts'
import { volumeAnnotations } from '../../../api/storage/volume-names.ts'
import { hasAnnotation, type StoredClaim, unbinding, type VolumeWrite, volumePhase } from './bind-writes.ts'
import { inTreePrefix, type VolumeEvent } from './claim-plan.ts'
import type { StoredVolume } from './volume-index.ts'

export type VolumePlan = {
  readonly write?: VolumeWrite
  /** Recorded on the volume, after the write. */
  readonly event?: VolumeEvent
  readonly claimEvent?: VolumeEvent
  /** Its claim does not name it yet: the claim is to be visited. */
  readonly visitClaim?: true
}

export type VolumeFacts = {
  readonly volume: StoredVolume
  /** The claim of the name that the volume has, read from the store itself: a cache may be older than the bind. */
  readonly claim: StoredClaim | undefined
  /** `namespace/name` of the pods that use its claim and have not ended. */
  readonly usedBy: () => readonly string[]
  /** The store was restored, and claims may come back: nothing is concluded from what is missing. */
  readonly isHeld: boolean
  readonly nowMs: number
}

export function planVolume(facts: VolumeFacts): VolumePlan {
  const { volume, nowMs, isHeld } = facts
  const { claimRef } = volume.spec ?? {}
  const to = (phase: 'Available' | 'Bound') => written(volumePhase(volume, phase, nowMs))
  if (claimRef === undefined || (claimRef.uid ?? '') === '') return to('Available')
  const claim = facts.claim?.metadata.uid === claimRef.uid ? facts.claim : undefined
  if (claim === undefined) return isHeld ? {} : release(facts)
  const { volumeName = '' } = claim.spec ?? {}
  if (volumeName === '') return planUnnamed(volume, claim)
  if (volumeName === volume.metadata.name) return to('Bound')
  const isUnneeded =
    hasAnnotation(volume, volumeAnnotations.provisionedBy) && volume.spec?.persistentVolumeReclaimPolicy === 'Delete'
  if (!isUnneeded) return { write: unbinding(volume) }
  return isHeld ? {} : release(facts)
}

/** The claim does not name the volume yet. */
function planUnnamed(volume: StoredVolume, claim: StoredClaim): VolumePlan {
  // The bind was cut off, and no claim gets a volume that is being deleted. Kubernetes leaves it bound for as long as the claim waits.
  if (volume.metadata.deletionTimestamp !== undefined) return { write: unbinding(volume) }
  return hasVolumeModeOf(volume, claim) ? { visitClaim: true } : modesDiffer(volume, claim)
}

function written(write: VolumeWrite | undefined): VolumePlan {
  return write === undefined ? {} : { write }
}

/** The binder does not choose such a volume for the claim, so nothing else shows why both wait. */
function modesDiffer(volume: StoredVolume, claim: StoredClaim): VolumePlan {
  const because = 'due to incompatible volumeMode.'
  const event = (message: string): VolumeEvent => ({ type: 'Warning', reason: 'VolumeMismatch', message })
  const [volumeName, claimName] = [volume.metadata.name, claim.metadata.name]
  return {
    event: event(`Cannot bind PersistentVolume to requested PersistentVolumeClaim "${claimName}" ${because}`),
    claimEvent: event(`Cannot bind PersistentVolume "${volumeName}" to requested PersistentVolumeClaim ${because}`),
  }
}

/** Its claim is gone, or has another one. A volume that failed stays so, and its reclaim is tried again. */
function release(facts: VolumeFacts): VolumePlan {
  const { volume, nowMs } = facts
  const isReleased = ['Released', 'Failed'].includes(volume.status?.phase ?? '')
  return isReleased ? reclaim(facts) : written(volumePhase(volume, 'Released', nowMs))
}

function reclaim({ volume, claim, usedBy, nowMs }: VolumeFacts): VolumePlan {
  const failed = (reason: string, message: string): VolumePlan => {
    const write = volumePhase(volume, 'Failed', nowMs, message)
    return write === undefined ? {} : { write, event: { type: 'Warning', reason, message } }
  }
  if (volume.metadata.annotations?.[volumeAnnotations.migratedTo]) return {}
  switch (volume.spec?.persistentVolumeReclaimPolicy) {
    case 'Retain':
      return {}
    case 'Recycle': {
      const pods = claim === undefined ? usedBy() : []
      const message = `Volume is used by pods: ${pods.join()}`
      if (pods.length > 0) return { event: { type: 'Normal', reason: 'VolumeFailedRecycle', message } }
      return failed('VolumeFailedRecycle', 'No recycler plugin found for the volume!')
    }
    case 'Delete': {
      const because = deletionProblem(volume)
      return because === undefined ? {} : failed('VolumeFailedDelete', because)
    }
    default:
      return failed('VolumeUnknownReclaimPolicy', 'Volume has unrecognized PersistentVolumeReclaimPolicy')
  }
}

/** undefined: its provisioner deletes it. This control plane has no deleter of its own (findDeletablePlugin). */
function deletionProblem(volume: StoredVolume): string | undefined {
  const { name, annotations = {} } = volume.metadata
  const provisioner = annotations[volumeAnnotations.provisionedBy] ?? ''
  if (provisioner !== '') {
    return provisioner.startsWith(inTreePrefix) ? `no volume plugin matched name: ${provisioner}` : undefined
  }
  if (volume.spec?.csi !== undefined) return undefined
  return `error getting deleter volume plugin for volume "${name}": no deletable volume plugin matched`
}
