/** What the deletion of a volume of a pool, or on the share of a class, needs next. Pure. */
import type { PersistentVolume } from '../../../api/storage/persistent-volume.ts'
import { isOnClassShare } from '../../../api/storage/shares.ts'
import { deletionOrder, poolOfVolume, volumeDataFinalizer } from '../../../api/storage/volume-orders.ts'
import type { StorageReport } from '../../usage/storage-board.ts'
import type { VolumeEvent } from './claim-plan.ts'

export type VolumeDeletionFacts = {
  readonly volume: PersistentVolume
  /** Its claim is in the store, and bound to it or to nothing. Read from the store itself: a cache may be older than the bind. */
  readonly hasClaim: boolean
  /** The node that has the pool; undefined: none has. */
  readonly holder?: Holder | undefined
  /** The store was restored, and claims may come back: nothing is concluded from what is missing. */
  readonly isHeld: boolean
}

export type Holder = {
  readonly node: string
  readonly isReady: boolean
  /** What it reported since the controller started. */
  readonly report: Pick<StorageReport, 'done' | 'refused'> | undefined
}

export type VolumeDeletionPlan =
  | { readonly plan: 'nothing' }
  /**
   * The object is deleted, with the finalizer: it stays, and its node gets the order. One on a share goes at once, and its folder stays there.
   */
  | { readonly plan: 'delete' }
  /** The data is in the trash, or the policy keeps it: the finalizer goes. */
  | { readonly plan: 'release' }
  | { readonly plan: 'wait'; readonly event?: VolumeEvent }

const nothing: VolumeDeletionPlan = { plan: 'nothing' }

export function planVolumeDeletion({ volume, hasClaim, holder, isHeld }: VolumeDeletionFacts): VolumeDeletionPlan {
  const pool = poolOfVolume(volume)
  const { deletionTimestamp, finalizers = [], uid = '' } = volume.metadata
  const isProtected = finalizers.includes(volumeDataFinalizer)
  const isUnwanted = volume.spec?.persistentVolumeReclaimPolicy === 'Delete'
  const isOnShare = isOnClassShare(volume)
  if (pool === undefined && deletionTimestamp !== undefined) return isProtected ? { plan: 'release' } : nothing
  if (pool === undefined && !isOnShare) return nothing
  if (deletionTimestamp === undefined) {
    const isReleased = ['Released', 'Failed'].includes(volume.status?.phase ?? '')
    return isReleased && isUnwanted && !hasClaim && !isHeld ? { plan: 'delete' } : nothing
  }
  if (!isProtected || pool === undefined) return nothing
  if (!isUnwanted) return { plan: 'release' }
  // Bound or not visited by the binder yet, or its claim may come back.
  if (deletionOrder(volume) === undefined || isHeld) return { plan: 'wait' }
  if (holder?.report?.done.has(uid)) return { plan: 'release' }
  return { plan: 'wait', event: waiting(pool, uid, holder) }
}

function waiting(pool: string, uid: string, holder: Holder | undefined): VolumeEvent {
  const wait = (message: string): VolumeEvent => ({ type: 'Normal', reason: 'DeletionWaitsForNode', message })
  const orKeep =
    'To delete the volume without its data, set its persistentVolumeReclaimPolicy to Retain (kubectl patch pv)'
  if (holder === undefined) return wait(`the data is in the pool ${pool}, which no node has. ${orKeep}`)
  const reason = holder.report?.refused.get(uid)
  if (reason !== undefined) {
    const message = `node "${holder.node}" keeps the data: ${reason}`
    return { type: 'Warning', reason: 'VolumeFailedDelete', message }
  }
  const state = holder.isReady ? 'has not confirmed its deletion yet' : `is not ready. ${orKeep}`
  return wait(`the data is on node "${holder.node}", which ${state}`)
}
