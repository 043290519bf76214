/**
 * What becomes of a claim and its volume that a node returns to a store which lacks them. Both had their names in the store before, so of
 * two claims with one name the later one is what was wanted last. No other claim gets the data, and no data is deleted for it. Pure.
 */
import { isDeepStrictEqual } from 'node:util'
import type { AnyObject } from '../../../../api/meta.ts'
import { learntFromAnnotation } from '../../../../api/node/node-checkpoint.ts'
import type { ClaimRecord } from '../../../../api/storage/claim-record.ts'
import type { PersistentVolume } from '../../../../api/storage/persistent-volume.ts'
import type { PersistentVolumeClaim } from '../../../../api/storage/persistent-volume-claim.ts'
import { isReservedFor } from '../../../../api/storage/volume-matching.ts'
import { volumeAnnotations } from '../../../../api/storage/volume-names.ts'

export type ClaimRestoreFacts = {
  readonly record: ClaimRecord
  /** Those of the names that are in the store. */
  readonly claim: PersistentVolumeClaim | undefined
  readonly volume: PersistentVolume | undefined
  /** When this store began; undefined: it is not known. */
  readonly sinceMs: number | undefined
}

export type ClaimRestorePlan =
  | { readonly plan: 'nothing' }
  | { readonly plan: 'refuse'; readonly because: string }
  | {
      readonly plan: 'restore'
      /** Written first: without it the volume would be one whose claim is gone. `replace`: the present one is removed. */
      readonly claim?: { readonly step: 'create' | 'write' | 'replace'; readonly object: PersistentVolumeClaim }
      readonly volume?: { readonly step: 'create' | 'write'; readonly object: PersistentVolume }
      /** The volume of the claim that is replaced: it is to keep its data. */
      readonly retain?: string
      /** What a person should see. */
      readonly note?: string
    }

export function planClaimRestore(facts: ClaimRestoreFacts): ClaimRestorePlan {
  const { record, claim, volume } = facts
  const replaced = claim !== undefined && isReplaced(claim, facts) ? claim : undefined
  const because = volume && takenBecause(volume, record, replaced)
  if (because !== undefined) return { plan: 'refuse', because }
  if (claim === undefined || claim.metadata.uid === record.claim.metadata.uid) return returned(record, claim, volume)
  if (replaced === undefined) return madeAgain(facts, claim)
  const earlier = replaced.spec?.volumeName ?? ''
  return {
    plan: 'restore',
    claim: { step: 'replace', object: boundClaim(record) },
    ...volumeStep(record.volume, volume),
    ...(earlier !== '' && earlier !== record.volume.metadata.name && { retain: earlier }),
  }
}

/** Why the volume in the store cannot be that of the record. */
function takenBecause(
  present: PersistentVolume,
  { claim, volume }: ClaimRecord,
  replaced: PersistentVolumeClaim | undefined,
): string | undefined {
  const name = volume.metadata.name ?? ''
  const { claimRef } = present.spec ?? {}
  const isOurs = [claim, ...(replaced ? [replaced] : [])].some((one) => isReservedFor(present, one))
  if (claimRef !== undefined && !isOurs) {
    return `volume "${name}" is bound to the claim ${claimRef.namespace ?? ''}/${claimRef.name ?? ''} (uid ${claimRef.uid ?? ''})`
  }
  const isSame = present.metadata.uid === volume.metadata.uid || isDeepStrictEqual(placeOf(present), placeOf(volume))
  return isSame ? undefined : `another volume with the name "${name}" exists`
}

/** Where the data is, as far as an owner of a volume writes it. */
function placeOf({ spec: { local, hostPath, nfs, csi, nodeAffinity } = {} }: PersistentVolume) {
  return { local, path: hostPath?.path, nfs, csi, nodeAffinity }
}

/** The claim is not in the store, or was not bound when the backup was made. */
function returned(
  record: ClaimRecord,
  claim: PersistentVolumeClaim | undefined,
  volume: PersistentVolume | undefined,
): ClaimRestorePlan {
  const { volumeName = '' } = claim?.spec ?? {}
  const wanted = record.volume.metadata.name ?? ''
  if (volumeName !== '' && volumeName !== wanted) {
    return { plan: 'refuse', because: `the claim is bound to volume "${volumeName}", and not to "${wanted}"` }
  }
  const isBound = volumeName !== '' && claim?.metadata.annotations?.[volumeAnnotations.bindCompleted] !== undefined
  const written = volumeStep(record.volume, volume)
  if (isBound && written.volume === undefined) return { plan: 'nothing' }
  const [step, object] =
    claim === undefined ? (['create', boundClaim(record)] as const) : (['write', bound(claim, record)] as const)
  return { plan: 'restore', ...(!isBound && { claim: { step, object } }), ...written }
}

/**
 * The present claim came with the backup, or from another node, and is older: it was deleted, and that of the record was made after it. A
 * claim that was made in this store is never replaced.
 */
function isReplaced(present: PersistentVolumeClaim, facts: ClaimRestoreFacts): boolean {
  const isOther = present.metadata.uid !== facts.record.claim.metadata.uid
  return isOther && !isOfThisStore(present, facts) && madeMs(present) < madeMs(facts.record.claim)
}

function isOfThisStore(present: PersistentVolumeClaim, { sinceMs }: ClaimRestoreFacts): boolean {
  const isLearnt = present.metadata.annotations?.[learntFromAnnotation] !== undefined
  return !isLearnt && (sinceMs === undefined || madeMs(present) > sinceMs)
}

/**
 * Another claim has the name. If somebody made it again after the loss, and it has no volume yet, the volume is reserved for it. Else the volume
 * stays by itself. In both cases no controller deletes its data.
 */
function madeAgain(facts: ClaimRestoreFacts, present: PersistentVolumeClaim): ClaimRestorePlan {
  const { record, volume } = facts
  const { namespace, name, uid } = present.metadata
  const { volumeName = '' } = present.spec ?? {}
  const wanted = record.volume.metadata.name ?? ''
  if (volumeName === wanted || volume?.spec?.claimRef?.uid) return { plan: 'nothing' }
  const isReserved = volumeName === '' && isOfThisStore(present, facts)
  const claimRef = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name, uid }
  const kept = withSpec(record.volume, { persistentVolumeReclaimPolicy: 'Retain', ...(isReserved && { claimRef }) })
  const has = volumeName === '' ? 'has no volume yet' : `has the volume "${volumeName}"`
  const outcome = isReserved ? 'is reserved for it' : 'stays by itself'
  return {
    plan: 'restore',
    ...volumeStep(kept, volume),
    note: `another claim with its name ${has}. Its volume "${wanted}" ${outcome}, with the policy Retain`,
  }
}

/** The volume as it was before the loss. */
function volumeStep(wanted: PersistentVolume, present: PersistentVolume | undefined) {
  const { claimRef, persistentVolumeReclaimPolicy } = wanted.spec ?? {}
  if (present === undefined) {
    return { volume: { step: 'create' as const, object: { ...wanted, status: { phase: 'Bound' } } } }
  }
  if (present.spec?.claimRef?.uid !== undefined && present.spec.claimRef.uid === claimRef?.uid) return {}
  const isKept = persistentVolumeReclaimPolicy === 'Retain'
  const object = withSpec(present, { ...(claimRef && { claimRef }), ...(isKept && { persistentVolumeReclaimPolicy }) })
  return { volume: { step: 'write' as const, object } }
}

function withSpec(volume: PersistentVolume, more: PersistentVolume['spec']): PersistentVolume {
  return { ...volume, spec: { ...volume.spec, ...more } }
}

function boundClaim(record: ClaimRecord): PersistentVolumeClaim {
  const { accessModes, capacity } = record.volume.spec ?? {}
  const status = { phase: 'Bound', ...(accessModes && { accessModes }), ...(capacity && { capacity }) }
  return { ...bound(record.claim, record), status }
}

function bound(claim: PersistentVolumeClaim, { volume }: ClaimRecord): PersistentVolumeClaim {
  const annotations = { ...claim.metadata.annotations, [volumeAnnotations.bindCompleted]: 'yes' }
  const spec = { ...claim.spec, volumeName: volume.metadata.name ?? '' }
  return { ...claim, metadata: { ...claim.metadata, annotations }, spec }
}

function madeMs({ metadata }: AnyObject): number {
  return Date.parse(metadata.creationTimestamp ?? '')
}
