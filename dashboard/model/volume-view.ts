/** How urgent the pools and volumes of the fleet are, and in which order they are shown. */
import type { UrgencyLevel } from '../../api/dashboard/node-view.ts'
import { isFound } from '../../api/dashboard/view-words.ts'
import type { FleetPool, FleetVolume } from '../../api/storage/fleet-volumes.ts'

const order: readonly UrgencyLevel[] = ['bad', 'warn', 'good', 'idle']

/** A row with its level, and why it needs attention. */
export type Judged<T> = { readonly row: T; readonly level: UrgencyLevel; readonly why?: string }

/** The pool is nearly full below this part, as the trash is emptied then. */
const leastFree = 0.05

export function judgedPool(row: FleetPool): Judged<FleetPool> {
  const { state, capacityBytes, availableBytes } = row
  if (state === 'Missing')
    return { row, level: 'bad', why: 'No machine has it: mount its disk, and restart the agent there' }
  if (state === 'NodeNotReady') return { row, level: 'warn', why: 'Its machine is not ready' }
  const isFull =
    capacityBytes !== undefined && availableBytes !== undefined && availableBytes < capacityBytes * leastFree
  return isFull ? { row, level: 'warn', why: 'Less than 5 % is free: its trash is emptied' } : { row, level: 'good' }
}

export function judgedVolume(row: FleetVolume, pools: ReadonlyMap<string, FleetPool>): Judged<FleetVolume> {
  if (['Lost', 'Failed'].includes(row.state)) return { row, level: 'bad', why: row.state }
  if (pools.get(row.pool ?? '')?.state === 'Missing') return { row, level: 'bad', why: 'No machine has its pool' }
  if (row.state !== 'Bound') return { row, level: row.state === 'Pending' ? 'warn' : 'idle', why: row.state }
  if (row.restore?.why !== undefined) return { row, level: 'bad', why: 'Its data does not come from its backup yet' }
  if (row.move?.why !== undefined) return { row, level: 'warn', why: 'Its move is rolled back' }
  if (row.backupFailure !== undefined) return { row, level: 'warn', why: `Not backed up: ${row.backupFailure.why}` }
  const isLarge = (row.usedBytes ?? 0) > row.requestedBytes
  return isLarge ? { row, level: 'warn', why: 'Uses more than it requests' } : { row, level: 'good' }
}

/** The worst first. */
export function sortedVolumes(
  volumes: readonly FleetVolume[],
  pools: readonly FleetPool[],
  search: string,
): readonly Judged<FleetVolume>[] {
  const byID = new Map(pools.map((pool) => [pool.id, pool]))
  return volumes
    .filter(({ claim = '', volume = '', node = '' }) => isFound(search, [claim, volume, node]))
    .map((row) => judgedVolume(row, byID))
    .sort((a, b) => order.indexOf(a.level) - order.indexOf(b.level))
}
