/** Whether the disk of the store has room for a change, before the change is written: pure. */
import { byteText } from '../../../api/text/byte-text.ts'
import type { Growth } from '../room/growth.ts'

/** All in bytes. */
export type DiskRoom = {
  /** Free bytes of the disk, without the blocks of the reserve. */
  readonly free: number
  /** Bytes of the file's pages that are free for other rows. */
  readonly freePages: number
  /** undefined: the reserve is there. */
  readonly missingReserve?: number
}

/** SQLite writes the journal back into the file at 1,000 pages (wal_autocheckpoint). Until then a change takes its size twice. */
const journalBytes = 4 * 2 ** 20
const slackBytes = 2 ** 20
/** Base64 of an encrypted Secret is a third longer, and the last page of each row has free bytes. */
const onDisk = 1.5
/** About this much is what other programs write in minutes: time to act. */
const warningBytes = 64 * 2 ** 20

/** Whether objects with `bytes` of JSON fit, with what waits to be written. */
export function hasRoomFor({ free, freePages, missingReserve = 0 }: DiskRoom, bytes: number): boolean {
  const rows = bytes * onDisk
  const largerFile = Math.max(0, journalBytes + rows - freePages)
  return free - missingReserve >= rows + largerFile + slackBytes
}

/** Small growth takes the last room of the disk, and of a reserve that was given up the first half: the rest is for deletions. */
export function isAdmitted(growth: Growth, room: DiskRoom, bytes: number): boolean {
  if (growth === 'none') return true
  if (hasRoomFor(room, bytes)) return true
  return growth === 'small' && (room.missingReserve === undefined || room.free >= room.missingReserve / 2)
}

/** The room that the reserve leaves when it is taken again must be enough for more than the next change. */
export function canTakeReserve({ free, missingReserve = 0 }: DiskRoom): boolean {
  return missingReserve > 0 && free >= missingReserve + 2 * journalBytes
}

/** undefined: there is enough. */
export function diskWarning(room: DiskRoom, folder: string): string | undefined {
  if (room.free - (room.missingReserve ?? 0) + room.freePages >= warningBytes) return undefined
  const state = hasRoomFor(room, 0) ? 'soon objects cannot' : 'objects cannot'
  return `the disk of ${folder} has ${byteText(room.free, Math.floor)} free: ${state} be created or grow. ${remedy}`
}

export function diskRefusal({ free }: DiskRoom, folder: string): string {
  return `The disk of ${folder} has ${byteText(free, Math.floor)} free: objects cannot be created or grow. ${remedy}`
}

const remedy = 'Free space on it, or delete objects that are not needed: deletions are accepted'
