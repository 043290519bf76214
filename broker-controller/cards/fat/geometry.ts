/** Where everything is in a FAT16 or FAT32, from its first sector. Pure. The source of the layout: Microsoft's FAT specification 1.03. */

/** Offsets and sizes are in bytes. */
export type Geometry = {
  readonly width: 16 | 32
  readonly sectorBytes: number
  readonly clusterBytes: number
  /** Place of the first copy of the table. */
  readonly tableStart: number
  readonly tableBytes: number
  readonly tables: number
  /** FAT16: a fixed place. FAT32: a chain of clusters. */
  readonly root: { readonly start: number; readonly size: number } | { readonly cluster: number }
  readonly dataStart: number
  /** Numbers of clusters are 2 to `clusters` + 1. */
  readonly clusters: number
  /** FAT32's sector with the number of free clusters, if it has one. */
  readonly infoStart: number | undefined
}

/** A table is read whole: this holds 16 million clusters, and bounds what a hostile image can take. */
const maxTableBytes = 64 * 1024 * 1024

/** `size`: that of the partition. A string is the reason why it is not a FAT that can be written, and continues "The boot partition …". */
export function readGeometry(sector: Uint8Array, size: number): Geometry | string {
  if (sector.length < 512) return 'is shorter than a sector'
  const view = new DataView(sector.buffer, sector.byteOffset, sector.byteLength)
  if (view.getUint16(510, true) !== 0xaa55) return 'is not a FAT: its first sector has no signature'
  const fields = fieldsIn(view)
  const fieldsProblem = firstProblem(problemsOfFields(fields, size))
  if (fieldsProblem !== undefined) return fieldsProblem
  const layout = layoutOf(fields)
  const layoutProblem = firstProblem(problemsOfLayout(fields, layout))
  if (layoutProblem !== undefined) return layoutProblem
  return fields.width === 16 ? narrowGeometry(fields, layout) : wideGeometry(view, fields, layout)
}

/** What both widths have in their first sector. */
type Fields = {
  readonly width: 16 | 32
  readonly sectorBytes: number
  readonly sectorsPerCluster: number
  readonly clusterBytes: number
  /** Sectors before the first table. */
  readonly reserved: number
  readonly tables: number
  readonly rootEntries: number
  readonly tableSectors: number
  /** The size that it claims, in bytes. */
  readonly claimed: number
}

function fieldsIn(view: DataView): Fields {
  const sectorBytes = view.getUint16(11, true)
  const sectorsPerCluster = view.getUint8(13)
  const short = { sectors: view.getUint16(19, true), table: view.getUint16(22, true) }
  const sectors = short.sectors === 0 ? view.getUint32(32, true) : short.sectors
  const width = short.table === 0 ? 32 : 16 // As Linux decides.
  return {
    ...{ width, sectorBytes, sectorsPerCluster, clusterBytes: sectorBytes * sectorsPerCluster },
    ...{ reserved: view.getUint16(14, true), tables: view.getUint8(16), rootEntries: view.getUint16(17, true) },
    tableSectors: width === 32 ? view.getUint32(36, true) : short.table,
    claimed: sectors * sectorBytes,
  }
}

type Layout = Pick<Geometry, 'tableStart' | 'tableBytes' | 'dataStart' | 'clusters'> & { readonly rootBytes: number }

function layoutOf({ sectorBytes, clusterBytes, reserved, tables, rootEntries, tableSectors, claimed }: Fields): Layout {
  const rootBytes = Math.ceil((rootEntries * 32) / sectorBytes) * sectorBytes
  const tableStart = reserved * sectorBytes
  const tableBytes = tableSectors * sectorBytes
  const dataStart = tableStart + tables * tableBytes + rootBytes
  return { rootBytes, tableStart, tableBytes, dataStart, clusters: Math.floor((claimed - dataStart) / clusterBytes) }
}

/** Whether it is so, and the reason of a refusal. */
type Check = readonly [isWrong: boolean, problem: string]

function firstProblem(checks: readonly Check[]): string | undefined {
  return checks.find(([isWrong]) => isWrong)?.[1]
}

function problemsOfFields(fields: Fields, size: number): readonly Check[] {
  const { sectorBytes, sectorsPerCluster, clusterBytes, reserved, tables, tableSectors, claimed } = fields
  const hasTables = reserved > 0 && tables > 0 && tables <= 4 && tableSectors > 0
  return [
    [![512, 1024, 2048, 4096].includes(sectorBytes), `is not a FAT: sectors of ${sectorBytes} bytes`],
    [!isPowerOfTwo(sectorsPerCluster) || clusterBytes > 65_536, `is not a FAT: clusters of ${clusterBytes} bytes`],
    [!hasTables, 'is not a FAT: it has no table'],
    [claimed > size, `has a damaged FAT: it claims ${claimed} bytes of a partition of ${size}`],
  ]
}

function problemsOfLayout({ width, rootEntries }: Fields, { tableBytes, clusters }: Layout): readonly Check[] {
  const shortTable = `has a damaged FAT: its table is too short for ${clusters} clusters`
  return [
    [clusters < 1, 'has a damaged FAT: there is no room beside its tables'],
    [width === 16 && clusters < 4085, 'is a FAT12, which no Raspberry Pi OS has'],
    [tableBytes > maxTableBytes, `has a FAT of ${tableBytes} bytes; the limit is ${maxTableBytes}`],
    [(clusters + 2) * (width / 8) > tableBytes, shortTable],
    [width === 16 && rootEntries === 0, 'has a damaged FAT: no root directory'],
    [width === 32 && rootEntries !== 0, 'has a damaged FAT: a root directory of FAT16 with a table of FAT32'],
  ]
}

function narrowGeometry({ sectorBytes, clusterBytes, tables, rootEntries }: Fields, layout: Layout): Geometry {
  const { rootBytes, ...places } = layout
  const root = { start: layout.dataStart - rootBytes, size: rootEntries * 32 }
  return { ...places, width: 16, sectorBytes, clusterBytes, tables, root, infoStart: undefined }
}

function wideGeometry(view: DataView, fields: Fields, layout: Layout): Geometry | string {
  const { sectorBytes, clusterBytes, tables, reserved } = fields
  const { rootBytes, ...places } = layout
  const cluster = view.getUint32(44, true)
  const problem = firstProblem([
    [view.getUint16(42, true) !== 0, 'has a FAT32 of a version that is not known'],
    [(view.getUint16(40, true) & 0x80) !== 0, 'has a FAT32 whose tables are not copies of each other'],
    [cluster < 2 || cluster > layout.clusters + 1, `has a damaged FAT: its root directory is in cluster ${cluster}`],
  ])
  if (problem !== undefined) return problem
  const info = view.getUint16(48, true)
  const infoStart = info > 0 && info < reserved ? info * sectorBytes : undefined
  return { ...places, width: 32, sectorBytes, clusterBytes, tables, root: { cluster }, infoStart }
}

/** Where a cluster begins. */
export function clusterStart({ dataStart, clusterBytes }: Geometry, cluster: number): number {
  return dataStart + (cluster - 2) * clusterBytes
}

function isPowerOfTwo(value: number): boolean {
  return value > 0 && (value & (value - 1)) === 0
}
