/** Keeps room on the disk of the store: refuses growth before the disk is full, and gives the reserve up where it is. */
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { Growth } from '../room/growth.ts'
import { StoreFullError } from '../store.ts'
import { type DiskReserve, reserveBytes } from './disk-reserve.ts'
import { type DiskRoom, diskRefusal, hasRoomFor, isAdmitted } from './disk-room.ts'

export interface DiskGuard {
  /** Throws StoreFullError if this growth of `bytes`, with what waits to be written, would take the last room. */
  admit(growthOf: () => Growth, bytes: number, freePages: () => number): void
  /** Repeats a write that found the disk full after giving up the reserve. */
  write<T>(act: () => T): T
  /** The disk has almost no space: gives up the reserve for what a start writes. */
  prepareStart(): void
  room(freePages: () => number): DiskRoom
}

/** A reading of the disk is used for this long, less what was admitted since. */
const readingMs = 1_000
/** What a start may write: version, journal, and the small files beside the store. */
const startBytes = 4 * 2 ** 20

export type DiskGuardNeeds = {
  readonly reserve: DiskReserve
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly log: Log
}

export function diskGuard({ reserve, clock, log }: DiskGuardNeeds): DiskGuard {
  const { folder } = reserve
  let reading: { readonly atMs: number; free: number } | undefined

  const giveUp = (): boolean => {
    if (!reserve.release()) return false
    reading = undefined
    log.warn('The disk is full: the reserve of the store is given up', { folder, bytes: reserveBytes })
    return true
  }
  const room = (freePages: () => number): DiskRoom => ({
    free: reserve.freeBytes(),
    freePages: freePages(),
    ...(!reserve.isHeld() && { missingReserve: reserveBytes }),
  })
  return {
    admit(growthOf, bytes, freePages) {
      const nowMs = clock.monotonicMs()
      if (reading !== undefined && nowMs - reading.atMs < readingMs) {
        reading.free -= 2 * bytes
        const missing = reserve.isHeld() ? {} : { missingReserve: reserveBytes }
        if (hasRoomFor({ free: reading.free, freePages: 0, ...missing }, bytes)) return
      }
      const now = room(freePages)
      reading = { atMs: nowMs, free: now.free - 2 * bytes }
      if (hasRoomFor(now, bytes) || isAdmitted(growthOf(), now, bytes)) return
      throw new StoreFullError(diskRefusal(now, folder))
    },
    write(act) {
      try {
        return act()
      } catch (error) {
        if (!isDiskFull(error) || !giveUp()) throw error
        return act()
      }
    },
    prepareStart() {
      if (reserve.freeBytes() < startBytes) giveUp()
    },
    room,
  }
}

const fullCodes: ReadonlySet<string> = new Set(['SQLITE_FULL', 'ENOSPC', 'EDQUOT'])

/** A full disk, as SQLite or the system reports it. */
export function isDiskFull(error: unknown): boolean {
  return error instanceof Error && 'code' in error && fullCodes.has(String(error.code))
}
