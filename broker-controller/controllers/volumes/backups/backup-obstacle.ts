/** Why the backup of a volume that is due is not begun. Pure. */
import type { BackupRules } from '../../../../api/backups/backup-due.ts'
import { moveOf, moveToAnnotation } from '../../../../api/storage/volume-move.ts'
import { poolOfVolume } from '../../../../api/storage/volume-place.ts'
import type { NoBackupPlace } from '../../../backups/nas-of-backups.ts'
import type { BackupPlace } from '../../../sessions/backup-place.ts'
import { isReady } from '../../node-lifecycle/zones.ts'
import type { PoolHolder } from '../pool-holders.ts'
import type { StoredVolume } from '../volume-index.ts'

export type BackupObstacle =
  /** A person has to change something. */
  | { readonly kind: 'refuse'; readonly why: string }
  | { readonly kind: 'wait'; readonly why: string }
  /** Not worth an Event. Without `afterMs`, until the volume changes. */
  | { readonly kind: 'later'; readonly afterMs?: number }

/** A node that becomes ready is noticed by then. */
const roundMs = 15_000
/** A volume that no pod has used has no data. */
const unusedMs = 15 * 60_000
const mostAtOnce = 2

type VolumeFacts = Pick<BackupRules, 'isWanted'> & {
  readonly volume: StoredVolume
  readonly source: PoolHolder | undefined
}

/** What keeps the volume from being read. `isWanted`: a person asks for the backup now. */
export function volumeObstacle({ volume, isWanted, source }: VolumeFacts): BackupObstacle | undefined {
  const pool = poolOfVolume(volume)
  if (pool === undefined) return { kind: 'refuse', why: 'only volumes of a pool are backed up' }
  if (!isBound(volume))
    return isWanted ? { kind: 'refuse', why: 'the volume is not bound to a claim' } : { kind: 'later' }
  if (isMoving(volume)) return { kind: 'wait', why: 'the volume is being moved' }
  if (!isWanted && usedBytesOf(volume, source) === undefined) return { kind: 'later', afterMs: unusedMs }
  return source === undefined ? { kind: 'wait', why: `no node has the pool ${pool}` } : undefined
}

function isBound({ metadata, spec, status }: StoredVolume): boolean {
  return Boolean(spec?.claimRef?.uid) && status?.phase === 'Bound' && metadata.deletionTimestamp === undefined
}

function isMoving(volume: StoredVolume): boolean {
  return moveOf(volume) !== undefined || volume.metadata.annotations?.[moveToAnnotation] !== undefined
}

/** As the node of its pool has measured it; undefined: no pod has used it yet. */
export function usedBytesOf({ metadata }: StoredVolume, source: PoolHolder | undefined): number | undefined {
  return source?.report?.volumes.find(({ uid }) => uid === metadata.uid)?.usedBytes
}

type PlaceFacts = {
  readonly place: BackupPlace | NoBackupPlace
  readonly source: PoolHolder
  /** The node of the place. */
  readonly target: PoolHolder | undefined
  /** How many are being made. */
  readonly backingUp: number
}

/** What keeps the backup from being written. */
export function placeObstacle({ place, source, target, backingUp }: PlaceFacts): BackupObstacle | undefined {
  if ('problem' in place) return { kind: place.waits ? 'wait' : 'refuse', why: place.problem }
  if (target === undefined) return { kind: 'refuse', why: `there is no node "${place.node}" for backups` }
  const away = [source, target].find((one) => !isReady(one.node) || one.report === undefined)
  if (away !== undefined) return { kind: 'wait', why: `node "${away.node.metadata.name}" is not ready` }
  return backingUp >= mostAtOnce ? { kind: 'later', afterMs: roundMs } : undefined
}
