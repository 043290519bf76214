/** The entries of a directory, read from its bytes and written into them. Pure, but for the bytes that it is given to change. */
import { displayedShortName, foldedName, lettersOf, longNameEntries, shortNameOf, shortNameSum } from './file-names.ts'

export const entryBytes = 32
/** A directory has no more entries (FAT specification, 6.2). */
export const maxDirectoryBytes = 65_536 * entryBytes

const attribute = { volume: 0x08, directory: 0x10, archive: 0x20, longName: 0x0f } as const
const freed = 0xe5

export type DirectoryEntry = {
  readonly name: string
  /** Its eleven bytes. */
  readonly short: string
  readonly isDirectory: boolean
  /** 0: an empty file. */
  readonly cluster: number
  readonly size: number
  /** Its entries in the directory, with those of its long name. */
  readonly slots: { readonly first: number; readonly count: number }
}

/** Without the label of the volume, and without `.` and `..`. */
export function entriesOf(bytes: Buffer, isWide: boolean): readonly DirectoryEntry[] {
  const found: DirectoryEntry[] = []
  let long: LongName | undefined
  for (let slot = 0; (slot + 1) * entryBytes <= bytes.length; slot++) {
    const entry = bytes.subarray(slot * entryBytes, (slot + 1) * entryBytes)
    const kind = slotKind(entry)
    if (kind === 'end') break
    if (kind === 'longName') {
      long = withPart(long, entry, slot)
      continue
    }
    if (kind === 'entry') found.push(entryIn(entry, slot, long, isWide))
    long = undefined
  }
  return found
}

/** `other`: freed, the label of the volume, `.` or `..`. */
type SlotKind = 'end' | 'longName' | 'other' | 'entry'

function slotKind(entry: Buffer): SlotKind {
  const [mark = 0, attributes = 0] = [entry[0], entry[11]]
  if (mark === 0) return 'end'
  if (mark === freed) return 'other'
  if ((attributes & 0x3f) === attribute.longName) return 'longName'
  return mark === 0x2e || (attributes & attribute.volume) !== 0 ? 'other' : 'entry'
}

/** The parts of a long name read so far: the last is first in the directory. */
type LongName = {
  readonly name: string
  /** Checksum of the short name that follows. */
  readonly sum: number
  /** The number of the part that is expected next; 0: the name is complete. */
  readonly next: number
  readonly first: number
}

/** undefined: the part continues no name. */
function withPart(long: LongName | undefined, entry: Buffer, slot: number): LongName | undefined {
  const [mark = 0, sum = 0] = [entry[0], entry[13]]
  const order = mark & 0x1f
  if ((mark & 0x40) !== 0) return { name: lettersOf(entry), sum, next: order - 1, first: slot }
  if (long?.next !== order || long.sum !== sum) return undefined
  return { ...long, name: lettersOf(entry) + long.name, next: order - 1 }
}

function entryIn(entry: Buffer, slot: number, long: LongName | undefined, isWide: boolean): DirectoryEntry {
  const short = entry.subarray(0, 11)
  const named = long?.next === 0 && long.sum === shortNameSum(short) ? long : undefined
  const high = isWide ? entry.readUInt16LE(20) : 0
  const first = named?.first ?? slot
  return {
    name: named?.name ?? displayedShortName(short, entry[12] ?? 0),
    short: short.toString('latin1'),
    isDirectory: ((entry[11] ?? 0) & attribute.directory) !== 0,
    cluster: high * 0x10000 + entry.readUInt16LE(26),
    size: entry.readUInt32LE(28),
    slots: { first, count: slot - first + 1 },
  }
}

export function findEntry(entries: readonly DirectoryEntry[], name: string): DirectoryEntry | undefined {
  return entries.find((one) => foldedName(one.name) === foldedName(name))
}

export type NewEntry = {
  readonly name: string
  readonly isDirectory: boolean
  readonly cluster: number
  readonly size: number
  readonly nowMs: number
}

/** What is written for a new file or folder: its long name, if it needs one, and its entry. */
export function encodeEntry(wanted: NewEntry, others: readonly DirectoryEntry[]): Buffer {
  const { short, isLong } = shortNameOf(wanted.name, new Set(others.map((one) => one.short)))
  return Buffer.concat([...(isLong ? longNameEntries(wanted.name, short) : []), shortEntry(short, wanted)])
}

/** `.` and `..` of a new folder. */
export function firstEntries(own: number, parent: number, nowMs: number): Buffer {
  const dots = { isDirectory: true, size: 0, nowMs }
  return Buffer.concat([
    shortEntry('.'.padEnd(11), { ...dots, cluster: own }),
    shortEntry('..'.padEnd(11), { ...dots, cluster: parent }),
  ])
}

function shortEntry(short: string, { isDirectory, cluster, size, nowMs }: Omit<NewEntry, 'name'>): Buffer {
  const entry = Buffer.alloc(entryBytes)
  const { date, time } = fatTime(nowMs)
  entry.write(short, 0, 11, 'latin1')
  entry[11] = isDirectory ? attribute.directory : attribute.archive
  for (const at of [14, 22]) entry.writeUInt16LE(time, at)
  for (const at of [16, 18, 24]) entry.writeUInt16LE(date, at)
  entry.writeUInt16LE(cluster >>> 16, 20)
  entry.writeUInt16LE(cluster & 0xffff, 26)
  entry.writeUInt32LE(size, 28)
  return entry
}

/** Puts `entries` into free slots; false: there is no room for them. */
export function placeEntry(bytes: Buffer, entries: Buffer): boolean {
  const count = entries.length / entryBytes
  const all = bytes.length / entryBytes
  let run = 0
  let isPastEnd = false
  for (let slot = 0; slot < all; slot++) {
    const mark = bytes[slot * entryBytes]
    isPastEnd ||= mark === 0
    run = isPastEnd || mark === freed ? run + 1 : 0
    if (run < count) continue
    const at = (slot + 1 - count) * entryBytes
    entries.copy(bytes, at)
    // What follows the end may be old bytes, which are not the end again.
    if (isPastEnd) bytes.fill(0, at + entries.length)
    return true
  }
  return false
}

export function removeEntry(bytes: Buffer, { slots }: DirectoryEntry): void {
  for (let slot = slots.first; slot < slots.first + slots.count; slot++) bytes[slot * entryBytes] = freed
}

/** In UTC, within the years that FAT has: 1980 to 2107. */
function fatTime(nowMs: number): { readonly date: number; readonly time: number } {
  const at = new Date(Math.min(Math.max(nowMs, Date.UTC(1980, 0, 1)), Date.UTC(2107, 11, 31)))
  return {
    date: ((at.getUTCFullYear() - 1980) << 9) | ((at.getUTCMonth() + 1) << 5) | at.getUTCDate(),
    time: (at.getUTCHours() << 11) | (at.getUTCMinutes() << 5) | (at.getUTCSeconds() >> 1),
  }
}
