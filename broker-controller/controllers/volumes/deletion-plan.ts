/** What the deletion of a volume of a pool, or on the share of a class, needs next. Pure. */
import type { PersistentVolume } from '../../../api/storage/persistent-volume.ts'
import { isOnClassShare, onDeleteOf, shareOfVolume, storeAnnotation } from '../../../api/storage/shares.ts'
import { deletionOrder, volumeDataFinalizer } from '../../../api/storage/volume-orders.ts'
import { poolOfVolume } from '../../../api/storage/volume-place.ts'
import type { StorageReport } from '../../usage/storage-board.ts'
import type { VolumeEvent } from './claim-plan.ts'

export type VolumeDeletionFacts = {
  readonly volume: PersistentVolume
  /** Its claim is in the store, and bound to it or to nothing. Read from the store itself: a cache may be older than the bind. */
  readonly hasClaim: boolean
  /** The node that has the pool, or was chosen for a volume on a share; undefined: none has. */
  readonly holder?: Holder | undefined
  /** Set for a volume on a share that is being deleted. */
  readonly share?: ShareFacts
  /** The store was restored, and claims may come back: nothing is concluded from what is missing. */
  readonly isHeld: boolean
}

export type ShareFacts = {
  /** The present store. */
  readonly store: string
  /** A ready node that mounts such shares. */
  readonly candidate: string | undefined
  /** Another volume with its folder, a part of it, or a folder that has it. */
  readonly sharedWith: string | undefined
}

export type Holder = {
  readonly node: string
  readonly isReady: boolean
  /** What it reported since the controller started. */
  readonly report: Pick<StorageReport, 'done' | 'refused'> | undefined
}

export type VolumeDeletionPlan =
  | { readonly plan: 'nothing' }
  /** The object is deleted, with the finalizer: it stays, and a node gets the order. */
  | { readonly plan: 'delete' }
  /** This node gets the order. */
  | { readonly plan: 'choose'; readonly node: string }
  /** The data is in the trash, or the policy keeps it: the finalizer goes. */
  | { readonly plan: 'release' }
  | { readonly plan: 'wait'; readonly event?: VolumeEvent }

const nothing: VolumeDeletionPlan = { plan: 'nothing' }

export function planVolumeDeletion(facts: VolumeDeletionFacts): VolumeDeletionPlan {
  return facts.volume.metadata.deletionTimestamp === undefined ? planPresent(facts) : planLeaving(facts)
}

function planPresent({ volume, hasClaim, isHeld }: VolumeDeletionFacts): VolumeDeletionPlan {
  if (poolOfVolume(volume) === undefined && !isOnClassShare(volume)) return nothing
  const isReleased = ['Released', 'Failed'].includes(volume.status?.phase ?? '')
  return isReleased && isUnwanted(volume) && !hasClaim && !isHeld ? { plan: 'delete' } : nothing
}

function planLeaving({ volume, holder, isHeld, share }: VolumeDeletionFacts): VolumeDeletionPlan {
  const pool = poolOfVolume(volume)
  const { finalizers = [], uid = '' } = volume.metadata
  if (!finalizers.includes(volumeDataFinalizer)) return nothing
  if (pool === undefined && onDeleteOf(volume) === 'retain') return { plan: 'release' }
  if (pool === undefined && !isOnClassShare(volume)) return nothing
  if (!isUnwanted(volume)) return { plan: 'release' }
  // Bound or not visited by the binder yet, or its claim may come back.
  if (deletionOrder(volume) === undefined || isHeld) return { plan: 'wait' }
  if (holder?.report?.done.has(uid)) return { plan: 'release' }
  return pool === undefined ? planOnShare(volume, holder, share) : { plan: 'wait', event: waiting(pool, uid, holder) }
}

function isUnwanted({ spec }: PersistentVolume): boolean {
  return spec?.persistentVolumeReclaimPolicy === 'Delete'
}

/** The folder stays while another volume has it. */
function planOnShare(volume: PersistentVolume, holder: Holder | undefined, share?: ShareFacts): VolumeDeletionPlan {
  if (share === undefined) return { plan: 'wait' }
  if (share.sharedWith !== undefined) return { plan: 'release' }
  const { name, uid = '', annotations = {} } = volume.metadata
  if (annotations[storeAnnotation] !== share.store) {
    const message = `it was made by another store than this one, which may be a copy. To delete its folder: kubectl annotate --overwrite pv ${name} ${storeAnnotation}=${share.store}. ${orKeep}`
    return { plan: 'wait', event: { type: 'Warning', reason: 'VolumeFailedDelete', message } }
  }
  if (holder?.isReady) {
    if (holder.report?.refused.has(uid)) return { plan: 'wait', event: onNode(holder, uid) }
    const message = `node "${holder.node}" has not confirmed its deletion yet`
    return { plan: 'wait', event: { type: 'Normal', reason: 'DeletionWaitsForNode', message } }
  }
  if (share.candidate !== undefined) return { plan: 'choose', node: share.candidate }
  const { kind, server } = shareOfVolume(volume) ?? { kind: 'nfs', server: '' }
  const message = `no ready node mounts shares of the kind ${kind}, and the data is on ${server}. ${orKeep}`
  return { plan: 'wait', event: { type: 'Normal', reason: 'DeletionWaitsForNode', message } }
}

const orKeep =
  'To delete the volume without its data, set its persistentVolumeReclaimPolicy to Retain (kubectl patch pv)'

function waiting(pool: string, uid: string, holder: Holder | undefined): VolumeEvent {
  if (holder !== undefined) return onNode(holder, uid)
  const message = `the data is in the pool ${pool}, which no node has. ${orKeep}`
  return { type: 'Normal', reason: 'DeletionWaitsForNode', message }
}

function onNode(holder: Holder, uid: string): VolumeEvent {
  const reason = holder.report?.refused.get(uid)
  if (reason !== undefined) {
    const message = `node "${holder.node}" keeps the data: ${reason}`
    return { type: 'Warning', reason: 'VolumeFailedDelete', message }
  }
  const state = holder.isReady ? 'has not confirmed its deletion yet' : `is not ready. ${orKeep}`
  return {
    type: 'Normal',
    reason: 'DeletionWaitsForNode',
    message: `the data is on node "${holder.node}", which ${state}`,
  }
}
