/**
 * What becomes of a claim (syncUnboundClaim and syncBoundClaim in pkg/controller/volume/persistentvolume/pv_controller.go). A visit
 * takes the step that the objects show to be the next one, and decides again after it. Pure.
 */
import type { StorageClass } from '../../../api/storage/storage-class.ts'
import {
  classOfClaim,
  classOfVolume,
  hasAccessModesOf,
  hasAttributesClass,
  hasVolumeModeOf,
  isDelayed,
  isLargeEnoughFor,
  isReservedFor,
} from '../../../api/storage/volume-matching.ts'
import { volumeAnnotations } from '../../../api/storage/volume-names.ts'
import type { Occurrence } from '../../store/event-correlation.ts'
import {
  claimPhase,
  hasAnnotation,
  type StoredClaim,
  selectedNodeOf,
  type VolumeWrite,
  withoutSelectedNode,
} from './bind-writes.ts'
import type { StoredVolume } from './volume-index.ts'

export type VolumeEvent = Pick<Occurrence, 'type' | 'reason' | 'message'>

export type ClaimPlan = {
  /** This volume is to be bound to it. */
  readonly bind?: StoredVolume
  readonly write?: VolumeWrite
  /** Recorded on the claim, after the write. */
  readonly event?: VolumeEvent
}

export type ClaimFacts = {
  readonly claim: StoredClaim
  /** The volume that its specification names, if it exists. */
  readonly named: StoredVolume | undefined
  /** The one that fits it best; asked only if it names none. */
  readonly fitting: (delayed: boolean) => StoredVolume | undefined
  /** Its class, if it exists. */
  readonly storageClass: StorageClass | undefined
  /** The name of the default class. */
  readonly defaultClass: string | undefined
  /** The names of pods without a node that use it and have not ended. */
  readonly waitingPods: () => readonly string[]
  readonly hasNode: (name: string) => boolean
  /** The store was restored, and volumes and nodes may come back: nothing is concluded from one that is missing. */
  readonly isHeld: boolean
  /** It came with the backup, and a node may return it with the volume that it got since. */
  readonly mayBeBound?: boolean
}

export function planClaim(facts: ClaimFacts): ClaimPlan {
  const { claim, named, isHeld } = facts
  if (hasAnnotation(claim, volumeAnnotations.bindCompleted)) return planBound(claim, named, isHeld)
  return (claim.spec?.volumeName ?? '') === '' ? planUnbound(facts) : planNamed(claim, named)
}

function planUnbound(facts: ClaimFacts): ClaimPlan {
  const { claim, fitting, storageClass, defaultClass, waitingPods, mayBeBound = false } = facts
  const delayed = isDelayed(storageClass)
  const volume = fitting(delayed || mayBeBound)
  if (volume !== undefined) return { bind: volume }
  if (mayBeBound) return pending(claim, waitingForNodes)
  const className = classOfClaim(claim)
  if (className === undefined && defaultClass !== undefined) {
    const object = { ...claim, spec: { ...claim.spec, storageClassName: defaultClass } }
    return { write: { resource: 'persistentvolumeclaims', part: 'whole', object } }
  }
  const missing = missingNode(facts)
  if (missing !== undefined) {
    const message = `failed to get target node: node "${missing}" not found`
    return { write: withoutSelectedNode(claim), event: { type: 'Warning', reason: 'ProvisioningFailed', message } }
  }
  if (delayed && !hasAnnotation(claim, volumeAnnotations.selectedNode)) return pending(claim, waiting(waitingPods()))
  if (className) return planProvisioning(claim, className, storageClass)
  const message = 'no persistent volumes available for this claim and no storage class is set'
  return pending(claim, { type: 'Normal', reason: 'FailedBinding', message })
}

const waitingForNodes: VolumeEvent = {
  type: 'Normal',
  reason: 'AcceptsCheckpoints',
  message:
    'the claim came with the backup, and may have got a volume since: it waits for the checkpoints of nodes ' +
    "('bramble-controller checkpoints' shows until when)",
}

/**
 * The node that was selected for the claim, if it is gone: no pod of the claim would be placed anywhere else. A provisioner does the same
 * where one runs (provisionClaimOperation of sig-storage-lib-external-provisioner).
 */
function missingNode({ claim, hasNode, isHeld }: ClaimFacts): string | undefined {
  const node = selectedNodeOf(claim)
  return node === undefined || isHeld || hasNode(node) ? undefined : node
}

function waiting(pods: readonly string[]): VolumeEvent {
  if (pods.length === 0) {
    const message = 'waiting for first consumer to be created before binding'
    return { type: 'Normal', reason: 'WaitForFirstConsumer', message }
  }
  const message = `waiting for ${pods.length > 1 ? 'pods' : 'pod'} ${pods.join()} to be scheduled`
  return { type: 'Normal', reason: 'WaitForPodScheduled', message }
}

/** Plugins of Kubernetes itself have such names. This control plane has none of them. */
export const inTreePrefix = 'kubernetes.io/'

/** Provisioners are programs of their own: they are asked by an annotation (provisionClaimOperationExternal). */
function planProvisioning(claim: StoredClaim, className: string, storageClass: StorageClass | undefined): ClaimPlan {
  const failed = (message: string): ClaimPlan => ({ event: { type: 'Warning', reason: 'ProvisioningFailed', message } })
  if (storageClass === undefined) return failed(`storageclass.storage.k8s.io "${className}" not found`)
  const { provisioner } = storageClass
  if (provisioner.startsWith(inTreePrefix)) return failed(`no volume plugin matched name: ${provisioner}`)
  const event: VolumeEvent = {
    type: 'Normal',
    reason: 'ExternalProvisioning',
    message:
      `Waiting for a volume to be created either by the external provisioner '${provisioner}' ` +
      'or manually by the system administrator. If volume creation is delayed, please verify that ' +
      'the provisioner is running and correctly registered.',
  }
  const { annotations = {} } = claim.metadata
  if (annotations[volumeAnnotations.provisioner] === provisioner) return { event }
  const asked = { [volumeAnnotations.betaProvisioner]: provisioner, [volumeAnnotations.provisioner]: provisioner }
  const object = { ...claim, metadata: { ...claim.metadata, annotations: { ...annotations, ...asked } } }
  return { write: { resource: 'persistentvolumeclaims', part: 'whole', object }, event }
}

/** Its author or the binder named a volume. */
function planNamed(claim: StoredClaim, named: StoredVolume | undefined): ClaimPlan {
  if (named === undefined) return pending(claim)
  if (isReservedFor(named, claim)) return { bind: named }
  const { name } = named.metadata
  if (named.spec?.claimRef !== undefined) {
    const message = `volume "${name}" already bound to a different claim.`
    return pending(claim, { type: 'Warning', reason: 'FailedBinding', message })
  }
  const because = mismatch(named, claim)
  if (because === undefined) return { bind: named }
  const message = `Cannot bind to requested volume "${name}": ${because}`
  return pending(claim, { type: 'Warning', reason: 'VolumeMismatch', message })
}

/** Why this volume cannot be that of the claim (checkVolumeSatisfyClaim). */
function mismatch(volume: StoredVolume, claim: StoredClaim): string | undefined {
  const { name, deletionTimestamp } = volume.metadata
  if (deletionTimestamp !== undefined) return `the volume is marked for deletion "${name}"`
  if (!isLargeEnoughFor(volume, claim)) return 'requested PV is too small'
  if (classOfVolume(volume) !== (classOfClaim(claim) ?? '')) return 'storageClassName does not match'
  if (hasAttributesClass(volume) || hasAttributesClass(claim)) {
    return 'volumeAttributesClassName is not supported when the feature-gate VolumeAttributesClass is disabled'
  }
  if (!hasVolumeModeOf(volume, claim)) return 'incompatible volumeMode'
  return hasAccessModesOf(volume, claim) ? undefined : 'incompatible accessMode'
}

/** A claim that was bound once never gets another volume: what it had is lost until that comes back. */
function planBound(claim: StoredClaim, named: StoredVolume | undefined, isHeld: boolean): ClaimPlan {
  if ((claim.spec?.volumeName ?? '') === '') {
    return lost(claim, 'ClaimLost', 'Bound claim has lost reference to PersistentVolume. Data on the volume is lost!')
  }
  if (named === undefined) {
    if (isHeld) return {}
    return lost(claim, 'ClaimLost', 'Bound claim has lost its PersistentVolume. Data on the volume is lost!')
  }
  const { claimRef } = named.spec ?? {}
  if (claimRef === undefined || claimRef.uid === claim.metadata.uid) return { bind: named }
  return lost(claim, 'ClaimMisbound', 'Two claims are bound to the same volume, this one is bound incorrectly')
}

function pending(claim: StoredClaim, event?: VolumeEvent): ClaimPlan {
  const write = claimPhase(claim, 'Pending')
  return { ...(write && { write }), ...(event && { event }) }
}

/** The Event is recorded when the phase changes, not at each visit. */
function lost(claim: StoredClaim, reason: string, message: string): ClaimPlan {
  if (claim.status?.phase === 'Lost') return {}
  const write = claimPhase(claim, 'Lost')
  return { ...(write && { write }), event: { type: 'Warning', reason, message } }
}
