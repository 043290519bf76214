/** Images of cards, small and made by hand: an MBR, a FAT and the first bytes of a Linux partition. */

import { FatVolume } from '../cards/fat/fat-volume.ts'
import { memoryDisk } from './memory-disk.ts'

export type MadeFat = { readonly width?: 16 | 32; readonly clusters?: number; readonly sectorsPerCluster?: number }

/** A FAT without files. */
export function madeFat({ width = 32, clusters = 5000, sectorsPerCluster = 1 }: MadeFat = {}): Buffer {
  const tableSectors = Math.ceil(((clusters + 2) * (width / 8)) / 512)
  const rootEntries = width === 16 ? 512 : 0
  const reserved = width === 16 ? 1 : 32
  const sectors = reserved + 2 * tableSectors + rootEntries / 16 + clusters * sectorsPerCluster
  const bytes = Buffer.alloc(sectors * 512)
  bytes.writeUInt16LE(512, 11)
  bytes[13] = sectorsPerCluster
  bytes.writeUInt16LE(reserved, 14)
  bytes[16] = 2
  bytes.writeUInt16LE(rootEntries, 17)
  bytes[21] = 0xf8
  bytes.writeUInt32LE(sectors, 32)
  bytes.writeUInt16LE(0xaa55, 510)
  const links = width === 16 ? [0xfff8, 0xffff] : [0x0ffffff8, 0x0fffffff, 0x0fffffff]
  for (const copy of [0, 1]) {
    const start = (reserved + copy * tableSectors) * 512
    for (const [index, link] of links.entries()) {
      if (width === 16) bytes.writeUInt16LE(link, start + index * 2)
      else bytes.writeUInt32LE(link, start + index * 4)
    }
  }
  if (width === 16) bytes.writeUInt16LE(tableSectors, 22)
  else {
    bytes.writeUInt32LE(tableSectors, 36)
    bytes.writeUInt32LE(2, 44)
    bytes.writeUInt16LE(1, 48)
    bytes.writeUInt32LE(0x41615252, 512)
    bytes.writeUInt32LE(0x61417272, 512 + 484)
    bytes.writeUInt32LE(clusters - 1, 512 + 488)
    bytes.writeUInt32LE(3, 512 + 492)
    bytes.writeUInt16LE(0xaa55, 512 + 510)
  }
  return bytes
}

export async function putFiles(fat: Buffer, files: Readonly<Record<string, string>>): Promise<Buffer> {
  const volume = await FatVolume.open(memoryDisk(fat), 0)
  for (const [path, text] of Object.entries(files)) {
    const bytes = Buffer.from(text)
    await volume.write(path.split('/'), { size: bytes.length, chunks: [bytes] })
  }
  await volume.flush()
  return fat
}

export type MadePartition = { readonly type: number; readonly sector: number; readonly sectors: number }

/** The first sector of a disk. */
export function madeTable(partitions: readonly MadePartition[]): Buffer {
  const sector = Buffer.alloc(512)
  for (const [index, { type, sector: first, sectors }] of partitions.entries()) {
    const at = 446 + index * 16
    sector[at + 4] = type
    sector.writeUInt32LE(first, at + 8)
    sector.writeUInt32LE(sectors, at + 12)
  }
  sector.writeUInt16LE(0xaa55, 510)
  return sector
}

/** An image of a card with this FAT, and behind it what begins as ext4 does and is full of `fill`. */
export function madeCard(fat: Buffer, rootSectors = 64): Buffer {
  const first = 16
  const root = Buffer.alloc(rootSectors * 512, 'root')
  root.writeUInt16LE(0xef53, 1024 + 56)
  const table = madeTable([
    { type: 0x0c, sector: first, sectors: fat.length / 512 },
    { type: 0x83, sector: first + fat.length / 512, sectors: rootSectors },
  ])
  return Buffer.concat([table, Buffer.alloc((first - 1) * 512, 'gap'), fat, root])
}
