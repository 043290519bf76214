/** Reads the disk of the store every few seconds: warns before it is full, and takes the reserve again when there is room. */
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import { gauge, one } from '../../../daemon/prometheus-text.ts'
import type { ObjectSizes } from '../room/object-sizes.ts'
import { limitWarning, type StoreLimits } from '../room/store-limits.ts'
import type { StoreUpkeep } from '../store.ts'
import type { DiskGuard } from './disk-guard.ts'
import type { DiskReserve } from './disk-reserve.ts'
import { canTakeReserve, type DiskRoom, diskWarning } from './disk-room.ts'

export type SqliteUpkeepNeeds = {
  readonly reserve: DiskReserve
  readonly guard: Pick<DiskGuard, 'room'>
  /** Free pages of the file, in bytes. */
  readonly freePages: () => number
  readonly sizes: ObjectSizes
  readonly limits: StoreLimits | undefined
  readonly clock: Pick<Clock, 'sleep'>
  readonly log: Log
}

const periodMs = 10_000

export function sqliteUpkeep({ reserve, guard, freePages, sizes, limits, clock, log }: SqliteUpkeepNeeds): StoreUpkeep {
  const { folder } = reserve
  let room: DiskRoom | undefined
  let warned: readonly string[] = []
  let hasFailed = false

  /** By reason. Their texts have sizes, which change: a reason is logged when it begins and when it ends. */
  const warnings = (): ReadonlyMap<string, string> => {
    const disk = room && diskWarning(room, folder)
    const limit = limits && limitWarning(limits, sizes)
    return new Map([...(disk ? [['Disk', disk] as const] : []), ...(limit ? [['Limit', limit] as const] : [])])
  }
  const logChanges = () => {
    const now = warnings()
    for (const [reason, message] of now) {
      if (!warned.includes(reason)) log.warn('The store needs attention', { reason, why: message })
    }
    for (const reason of warned) if (!now.has(reason)) log.info('The store no longer needs attention', { reason })
    warned = [...now.keys()]
  }
  const read = async () => {
    room = guard.room(freePages)
    if (canTakeReserve(room)) {
      await reserve.take()
      room = guard.room(freePages)
      log.info('The reserve of the store is on the disk', { folder })
    }
    hasFailed = false
  }
  const fail = (error: unknown) => {
    if (!hasFailed) log.warn('Cannot keep a reserve on the disk of the store', { folder, error })
    hasFailed = true
  }

  return {
    name: 'store-upkeep',
    async run(signal) {
      while (!signal.aborted) {
        await read().catch(fail)
        logChanges()
        await clock.sleep(periodMs, signal)
      }
    },
    warnings: () => [...warnings().values()],
    metrics: () => [
      gauge('bramble_store_disk_free_bytes', 'Free space of the disk of the store.', one(room?.free)),
      gauge('bramble_store_disk_reserve_held', '1 if the reserve for deletions is on the disk.', [
        { labels: {}, value: reserve.isHeld() ? 1 : 0 },
      ]),
      gauge('bramble_store_objects_bytes', 'Size of the JSON of all objects.', one(sizes.total)),
      gauge('bramble_store_objects_limit_bytes', 'Size at which creations are refused.', one(limits?.maxBytes)),
      gauge(
        'bramble_store_warning',
        '1 if the operator has to act before creations are refused.',
        ['Disk', 'Limit'].flatMap((reason) => one(warnings().has(reason) ? 1 : 0, { reason })),
      ),
    ],
  }
}
