/** Whether a move that a person asks for can begin, and what the nodes report of one that has. Pure. */
import { backupOf, restoreOf } from '../../../../api/backups/volume-backup.ts'
import type { Node } from '../../../../api/node.ts'
import { labelledPools, poolParameter, poolsOfClass } from '../../../../api/storage/pools.ts'
import type { StorageClass } from '../../../../api/storage/storage-class.ts'
import type { MoveReport } from '../../../../api/storage/volume-messages.ts'
import { poolOfVolume } from '../../../../api/storage/volume-place.ts'
import type { StorageReport } from '../../../usage/storage-board.ts'
import { isReady } from '../../node-lifecycle/zones.ts'
import type { StoredVolume } from '../volume-index.ts'
import type { SourceReport, TargetReport } from './move-plan.ts'
import type { MoveTarget } from './move-writes.ts'

/** A node and what it reported since the controller started. */
export type MoveNode = { readonly node: Node; readonly report: Pick<StorageReport, 'moves'> | undefined }

export type MoveStart =
  | { readonly start: MoveTarget }
  /** Nothing changes that by itself. */
  | { readonly refuse: string }
  | { readonly wait: string }

export type MoveStartFacts = {
  readonly source: MoveNode | undefined
  readonly target: MoveNode | undefined
  /** Class of the volume, if it still exists: the copy is made in the target's pool that the class names. */
  readonly storageClass: StorageClass | undefined
}

export function planStart(
  volume: StoredVolume,
  to: string,
  { source, target, storageClass }: MoveStartFacts,
): MoveStart {
  const pool = poolOfVolume(volume)
  if (pool === undefined) return { refuse: 'only volumes of a pool can be moved' }
  if (volume.metadata.deletionTimestamp !== undefined) return { refuse: 'the volume is being deleted' }
  if (restoreOf(volume) !== undefined) return { refuse: 'its data is being restored from a backup' }
  if (!volume.spec?.claimRef?.uid) return { refuse: 'the volume is not bound to a claim' }
  if (target === undefined) return { refuse: `there is no node "${to}"` }
  if (labelledPools(target.node).includes(pool)) return { refuse: `the volume is on node "${to}"` }
  const { parameters = {} } = storageClass ?? {}
  const wanted = parameters[poolParameter]
  const found = poolsOfClass(target.node, { parameters })[0]
  if (found === undefined)
    return {
      refuse: `node "${to}" has no ${wanted === undefined ? 'pool for volumes' : `pool ${JSON.stringify(wanted)}`}`,
    }
  if (found.full === true) return { refuse: `the pool at ${found.path} on node "${to}" is full` }
  if (source === undefined) return { wait: `no node has the pool ${pool}` }
  if (backupOf(volume) !== undefined) return { wait: 'the volume is being backed up' }
  const away = [source, target].find((one) => !isReady(one.node) || one.report === undefined)
  if (away !== undefined) return { wait: `node "${away.node.metadata.name}" is not ready` }
  const older = [source, target].find(({ report }) => report?.moves === undefined)
  if (older !== undefined)
    return { refuse: `node "${older.node.metadata.name}" runs an agent that does not move volumes` }
  return { start: { node: to, pool: found } }
}

/** `isDiscarded`: the node reports the order for the trash as done. */
export function sourceReport(
  report: MoveReport | undefined,
  { id, isDiscarded }: { readonly id: string; readonly isDiscarded: boolean },
): SourceReport | undefined {
  if (isDiscarded) return { id, isFenced: false, isReleased: false, isDiscarded }
  if (report === undefined) return undefined
  // What is not there yet waits: only a node that follows the order reports that pods may have the volume.
  if (report.waits !== undefined) return undefined
  const { held = false, released = false, sent } = report
  return { id: report.id, isFenced: held, isReleased: released, isDiscarded, ...(sent && { sent }) }
}

export function targetReport(report: MoveReport | undefined): TargetReport | undefined {
  if (report === undefined) return undefined
  const { id, received, refusal, kept = false, removed = false } = report
  return {
    ...{ id, isPlaced: kept, isRemoved: removed },
    ...(received && { received }),
    ...(refusal !== undefined && { refusal }),
  }
}
