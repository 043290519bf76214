/**
 * The writes that bind a volume and a claim to each other, in their order: each is decided from the objects as they are, so a
 * process that ends between two of them is followed by one that makes the next (bind in
 * pkg/controller/volume/persistentvolume/pv_controller.go). Pure.
 */
import type { ObjectMeta } from '../../../api/meta.ts'
import { tryParseQuantity } from '../../../api/quantity.ts'
import type { PersistentVolume } from '../../../api/storage/persistent-volume.ts'
import type {
  PersistentVolumeClaim,
  PersistentVolumeClaimStatus,
} from '../../../api/storage/persistent-volume-claim.ts'
import { isReservedFor } from '../../../api/storage/volume-matching.ts'
import { volumeAnnotations } from '../../../api/storage/volume-names.ts'
import { rfc3339 } from '../../../daemon/clock.ts'
import { equalJSON } from '../../store/equal-json.ts'
import type { StoredObject } from '../../store/store.ts'
import type { StoredVolume } from './volume-index.ts'

export type StoredClaim = StoredObject<'persistentvolumeclaims'>

/** An object as it is to be written, over the version that it was decided on. */
export type VolumeWrite =
  | { readonly resource: 'persistentvolumes'; readonly part: 'whole' | 'status'; readonly object: StoredVolume }
  | { readonly resource: 'persistentvolumeclaims'; readonly part: 'whole' | 'status'; readonly object: StoredClaim }

/** The next write; undefined: they are bound. */
export function nextBindWrite(claim: StoredClaim, volume: StoredVolume, nowMs: number): VolumeWrite | undefined {
  return (
    reservation(volume, claim) ??
    volumePhase(volume, 'Bound', nowMs) ??
    claimOfVolume(claim, volume.metadata.name) ??
    claimPhase(claim, 'Bound', volume)
  )
}

/** The volume names the claim and its uid (GetBindVolumeToClaim). undefined: it does. */
export function reservation(volume: StoredVolume, claim: StoredClaim): VolumeWrite | undefined {
  const { name, namespace = '', uid, resourceVersion } = claim.metadata
  const isReserved = isReservedFor(volume, claim)
  if (isReserved && volume.spec?.claimRef?.uid === uid) return undefined
  const claimRef = { kind: 'PersistentVolumeClaim', apiVersion: 'v1', namespace, name, uid, resourceVersion }
  const object = { ...volume, spec: { ...volume.spec, claimRef } }
  return whole(isReserved ? object : annotated(object, { [volumeAnnotations.boundByController]: 'yes' }))
}

function claimOfVolume(claim: StoredClaim, volumeName: string): VolumeWrite | undefined {
  const { bindCompleted, boundByController } = volumeAnnotations
  const isNamed = claim.spec?.volumeName === volumeName
  if (isNamed && hasAnnotation(claim, bindCompleted)) return undefined
  const object = isNamed
    ? claim
    : annotated({ ...claim, spec: { ...claim.spec, volumeName } }, { [boundByController]: 'yes' })
  return { resource: 'persistentvolumeclaims', part: 'whole', object: annotated(object, { [bindCompleted]: 'yes' }) }
}

/** The volume is taken from its claim: one that a person reserved stays reserved for the name (unbindVolume). */
export function unbinding(volume: StoredVolume): VolumeWrite {
  const { claimRef = {}, ...spec } = volume.spec ?? {}
  if (!hasAnnotation(volume, volumeAnnotations.boundByController)) {
    const { uid: _, ...reserved } = claimRef
    return whole({ ...volume, spec: { ...spec, claimRef: reserved } })
  }
  return whole(unannotated({ ...volume, spec }, volumeAnnotations.boundByController))
}

/** undefined: it is in that phase. */
export function volumePhase(
  volume: StoredVolume,
  phase: 'Available' | 'Bound' | 'Released' | 'Failed',
  nowMs: number,
  message?: string,
): VolumeWrite | undefined {
  if (volume.status?.phase === phase) return undefined
  const { message: _, ...status } = volume.status ?? {}
  const lastPhaseTransitionTime = rfc3339(nowMs)
  const moved = { ...status, phase, lastPhaseTransitionTime, ...(message !== undefined && { message }) }
  return { resource: 'persistentvolumes', part: 'status', object: { ...volume, status: moved } }
}

/**
 * The status of the claim with the access modes of its volume. The capacity is written when the phase changes: while a volume
 * grows, that of a bound claim is what its file system has. undefined: nothing changes (updateClaimStatus).
 */
export function claimPhase(
  claim: StoredClaim,
  phase: 'Pending' | 'Bound' | 'Lost',
  volume?: PersistentVolume,
): VolumeWrite | undefined {
  const { accessModes: _, capacity, ...kept } = claim.status ?? {}
  const accessModes = volume?.spec?.accessModes
  const isMoved = claim.status?.phase !== phase
  const has = volume === undefined ? undefined : isMoved ? capacityInStatus(volume) : capacity
  const status = { ...kept, phase, ...(accessModes && { accessModes }), ...(has && { capacity: has }) }
  if (equalJSON(status, claim.status ?? {})) return undefined
  return { resource: 'persistentvolumeclaims', part: 'status', object: { ...claim, status } }
}

function capacityInStatus({ metadata, spec }: PersistentVolume): PersistentVolumeClaimStatus['capacity'] {
  const before = metadata.annotations?.[volumeAnnotations.preResizeCapacity]
  if (before === undefined || tryParseQuantity(before) === undefined) return spec?.capacity
  return { ...spec?.capacity, storage: before }
}

/** The node where the volume of this claim is to be made; undefined: it has a volume, or none is selected. */
export function selectedNodeOf({ metadata, spec = {} }: StoredClaim): string | undefined {
  return spec.volumeName ? undefined : metadata.annotations?.[volumeAnnotations.selectedNode]
}

/** The scheduler may choose another node (rescheduleProvisioning). */
export function withoutSelectedNode(claim: StoredClaim): VolumeWrite {
  return {
    resource: 'persistentvolumeclaims',
    part: 'whole',
    object: unannotated(claim, volumeAnnotations.selectedNode),
  }
}

export function hasAnnotation({ metadata }: { readonly metadata: ObjectMeta }, name: string): boolean {
  return metadata.annotations !== undefined && Object.hasOwn(metadata.annotations, name)
}

/** What has the annotation already keeps its value. */
export function annotated<O extends StoredVolume | StoredClaim | PersistentVolumeClaim>(
  object: O,
  annotations: { readonly [name: string]: string },
): O {
  return {
    ...object,
    metadata: { ...object.metadata, annotations: { ...annotations, ...object.metadata.annotations } },
  }
}

function unannotated<O extends StoredVolume | StoredClaim>(object: O, annotation: string): O {
  const { annotations: { [annotation]: _, ...annotations } = {}, ...metadata } = object.metadata
  const isEmpty = Object.keys(annotations).length === 0
  return { ...object, metadata: { ...metadata, ...(!isEmpty && { annotations }) } }
}

function whole(object: StoredVolume): VolumeWrite {
  return { resource: 'persistentvolumes', part: 'whole', object }
}
