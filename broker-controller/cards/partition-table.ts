/** The partitions in the first sector of a disk (MBR). Pure. */

const sectorBytes = 512
const signature = 0xaa55
const firstEntry = 446
const entryBytes = 16

/** Types of partitions that hold FAT: FAT16 and FAT32, by cylinders or by sectors (LBA). */
const fatTypes: ReadonlySet<number> = new Set([0x04, 0x06, 0x0b, 0x0c, 0x0e])
const protective = 0xee
const extendedTypes: ReadonlySet<number> = new Set([0x05, 0x0f, 0x85])

/** Offsets and sizes are in bytes. */
export type Partition = {
  readonly number: number
  readonly type: number
  readonly start: number
  readonly size: number
}

/** `problem` continues "The image …". */
export type PartitionTable = { readonly boot: Partition; readonly root: Partition; readonly end: number }

/** The boot partition (FAT) and the one after it (Linux) of a Raspberry Pi's card, or why the sector does not have them. */
export function readPartitionTable(sector: Uint8Array): PartitionTable | string {
  const view = new DataView(sector.buffer, sector.byteOffset, sector.byteLength)
  if (sector.length < sectorBytes) return 'is shorter than a sector'
  if (view.getUint16(510, true) !== signature) return 'has no partition table: it is not the image of a card'
  const entries = [0, 1, 2, 3].map((index) => entryAt(view, index)).filter((one) => one.type !== 0)
  if (entries.some(({ type }) => type === protective)) {
    return 'has a GPT: images of Raspberry Pi OS have an MBR. It may be the image of a PC'
  }
  const impossible = entries.find(({ start, size }) => start < sectorBytes || size === 0)
  if (impossible !== undefined) return `has a damaged partition table: partition ${impossible.number} has no place`
  const sorted = entries.toSorted((a, b) => a.start - b.start)
  const over = sorted.find((one, index) => {
    const before = sorted[index - 1]
    return before !== undefined && before.start + before.size > one.start
  })
  if (over !== undefined) return `has a damaged partition table: partition ${over.number} overlaps another one`
  const [boot, root] = [1, 2].map((number) => entries.find((one) => one.number === number))
  if (boot === undefined || !fatTypes.has(boot.type)) return `has no FAT in its first partition (${nameOf(boot)})`
  if (root === undefined || root.type !== 0x83) return `has no Linux in its second partition (${nameOf(root)})`
  if (entries.some(({ type }) => extendedTypes.has(type)))
    return 'has an extended partition: it is not Raspberry Pi OS Lite'
  return { boot, root, end: Math.max(...entries.map(({ start, size }) => start + size)) }
}

function entryAt(view: DataView, index: number): Partition {
  const at = firstEntry + index * entryBytes
  return {
    number: index + 1,
    type: view.getUint8(at + 4),
    start: view.getUint32(at + 8, true) * sectorBytes,
    size: view.getUint32(at + 12, true) * sectorBytes,
  }
}

function nameOf(partition: Partition | undefined): string {
  return partition === undefined ? 'there is none' : `type 0x${partition.type.toString(16).padStart(2, '0')}`
}
