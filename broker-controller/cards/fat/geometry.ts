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
  const sectorBytes = view.getUint16(11, true)
  const sectorsPerCluster = view.getUint8(13)
  const clusterBytes = sectorBytes * sectorsPerCluster
  if (![512, 1024, 2048, 4096].includes(sectorBytes)) return `is not a FAT: sectors of ${sectorBytes} bytes`
  if (!isPowerOfTwo(sectorsPerCluster) || clusterBytes > 65_536)
    return `is not a FAT: clusters of ${clusterBytes} bytes`
  const reserved = view.getUint16(14, true)
  const tables = view.getUint8(16)
  const rootEntries = view.getUint16(17, true)
  const short = { sectors: view.getUint16(19, true), table: view.getUint16(22, true) }
  const sectors = short.sectors === 0 ? view.getUint32(32, true) : short.sectors
  const width = short.table === 0 ? 32 : 16 // As Linux decides.
  const tableSectors = width === 32 ? view.getUint32(36, true) : short.table
  if (reserved === 0 || tables === 0 || tables > 4 || tableSectors === 0) return 'is not a FAT: it has no table'
  if (sectors * sectorBytes > size) {
    return `has a damaged FAT: it claims ${sectors * sectorBytes} bytes of a partition of ${size}`
  }
  const rootBytes = Math.ceil((rootEntries * 32) / sectorBytes) * sectorBytes
  const tableStart = reserved * sectorBytes
  const tableBytes = tableSectors * sectorBytes
  const dataStart = tableStart + tables * tableBytes + rootBytes
  const clusters = Math.floor((sectors * sectorBytes - dataStart) / clusterBytes)
  if (clusters < 1) return 'has a damaged FAT: there is no room beside its tables'
  if (width === 16 && clusters < 4085) return 'is a FAT12, which no Raspberry Pi OS has'
  if (tableBytes > maxTableBytes) return `has a FAT of ${tableBytes} bytes; the limit is ${maxTableBytes}`
  if ((clusters + 2) * (width / 8) > tableBytes)
    return `has a damaged FAT: its table is too short for ${clusters} clusters`
  const common = { sectorBytes, clusterBytes, tableStart, tableBytes, tables, dataStart, clusters }
  if (width === 16) {
    if (rootEntries === 0) return 'has a damaged FAT: no root directory'
    const root = { start: dataStart - rootBytes, size: rootEntries * 32 }
    return { ...common, width, root, infoStart: undefined }
  }
  if (rootEntries !== 0) return 'has a damaged FAT: a root directory of FAT16 with a table of FAT32'
  if (view.getUint16(42, true) !== 0) return 'has a FAT32 of a version that is not known'
  if ((view.getUint16(40, true) & 0x80) !== 0) return 'has a FAT32 whose tables are not copies of each other'
  const cluster = view.getUint32(44, true)
  if (cluster < 2 || cluster > clusters + 1) return `has a damaged FAT: its root directory is in cluster ${cluster}`
  const info = view.getUint16(48, true)
  return {
    ...common,
    width,
    root: { cluster },
    infoStart: info > 0 && info < reserved ? info * sectorBytes : undefined,
  }
}

/** Where a cluster begins. */
export function clusterStart({ dataStart, clusterBytes }: Geometry, cluster: number): number {
  return dataStart + (cluster - 2) * clusterBytes
}

function isPowerOfTwo(value: number): boolean {
  return value > 0 && (value & (value - 1)) === 0
}
