/** When the data of a volume in a pool is to be deleted, and by which order. Pure. */
import { backupOf } from '../backups/volume-backup.ts'
import type { PersistentVolume } from './persistent-volume.ts'
import { deletingNodeAnnotation, madeFolder, onDeleteOf, shareOfVolume, storeAnnotation } from './shares.ts'
import { trashAnnotation, trashSeconds } from './trash-time.ts'
import type { NodeVolumeOrder } from './volume-messages.ts'
import { moveOf } from './volume-move.ts'
import { poolOfVolume } from './volume-place.ts'

/** Holds a PersistentVolume that is being deleted until its node confirms that the data is in the trash. */
export const volumeDataFinalizer = 'bramble.dev/volume-data'

/** Where the folder of the volume is, for an order; undefined: no node deletes it. */
function placeOfFolder(
  volume: PersistentVolume,
): Pick<NodeVolumeOrder, 'kind' | 'pool' | 'folder' | 'share'> | undefined {
  const pool = poolOfVolume(volume)
  if (pool !== undefined) return { kind: 'trash', pool, folder: volume.spec?.local?.path?.split('/').at(-1) ?? '' }
  const [onDelete, share] = [onDeleteOf(volume), shareOfVolume(volume)]
  const made = onDelete === 'retain' || share === undefined ? undefined : madeFolder(share)
  if (made === undefined) return undefined
  const { readOnly: _, secret: __, ...root } = made.root
  return { kind: `share-${onDelete}`, pool: '', folder: made.folder, share: root }
}

/** What follows the order: a pool, on whichever node it is, or a node. undefined: none yet, or the store is not the one of the volume. */
export function targetOfOrder(
  volume: PersistentVolume,
  store: string,
): { readonly [Kind in 'pool' | 'node']?: string } | undefined {
  const pool = poolOfVolume(volume)
  if (pool !== undefined) return { pool }
  const { [deletingNodeAnnotation]: node, [storeAnnotation]: madeIn } = volume.metadata.annotations ?? {}
  return node === undefined || madeIn !== store ? undefined : { node }
}

/**
 * undefined: no data is to be deleted. The object must be on its way out: nothing takes that back, so an order is as right later, from an older
 * message, as it was at first.
 */
export function deletionOrder(volume: PersistentVolume): NodeVolumeOrder | undefined {
  const { name = '', uid = '', deletionTimestamp, finalizers = [] } = volume.metadata
  const { claimRef, persistentVolumeReclaimPolicy, capacity = {}, storageClassName } = volume.spec ?? {}
  const place = placeOfFolder(volume)
  if (place === undefined || deletionTimestamp === undefined) return undefined
  if (persistentVolumeReclaimPolicy !== 'Delete' || !finalizers.includes(volumeDataFinalizer)) return undefined
  // Its data is at two places, or being read: that ends first.
  if (moveOf(volume) !== undefined || backupOf(volume) !== undefined) return undefined
  // Bound: its claim goes first. Without a phase the binder has not looked for the claim.
  if (!['Available', 'Released', 'Failed'].includes(volume.status?.phase ?? '')) return undefined
  return {
    ...{ ...place, volume: name, uid },
    ...(claimRef?.name && { claim: `${claimRef.namespace ?? ''}/${claimRef.name}` }),
    ...(claimRef?.uid && { claimUID: claimRef.uid }),
    ...(capacity['storage'] !== undefined && { capacity: String(capacity['storage']) }),
    ...(storageClassName && { storageClass: storageClassName }),
    ...keptFor(volume),
  }
}

/** An annotation that is not a time keeps it for the usual one. */
function keptFor({ metadata: { annotations = {} } }: PersistentVolume): Pick<NodeVolumeOrder, 'keepSeconds'> {
  const keepSeconds = trashSeconds(annotations[trashAnnotation] ?? '')
  return keepSeconds === undefined ? {} : { keepSeconds }
}
