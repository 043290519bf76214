/** Files and folders of a FAT16 or FAT32 in a disk or an image: read, written and removed without mounting it. */
import type { DiskRange } from '../disk-range.ts'
import { AllocationTable } from './allocation-table.ts'
import {
  type DirectoryEntry,
  encodeEntry,
  entriesOf,
  findEntry,
  firstEntries,
  maxDirectoryBytes,
  placeEntry,
  removeEntry,
} from './directory.ts'
import { isWritableName } from './file-names.ts'
import { clusterStart, type Geometry, readGeometry } from './geometry.ts'

/** Content of a file that is to be written: exactly `size` bytes. */
export type FatContent = {
  readonly size: number
  readonly chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>
  /** All of it lies in one piece. */
  readonly isTogether?: boolean
}

/** A folder with its bytes as they are on the disk. `chain` is empty for FAT16's root, which cannot grow. */
type Folder = { readonly chain: readonly number[]; readonly cluster: number; readonly bytes: Buffer }

/** Folders below folders, of those that are removed. */
const maxDepth = 16

export class FatVolume {
  readonly #disk: DiskRange
  readonly #geometry: Geometry
  readonly #table: AllocationTable
  readonly #nowMs: number

  private constructor(disk: DiskRange, geometry: Geometry, table: AllocationTable, nowMs: number) {
    this.#disk = disk
    this.#geometry = geometry
    this.#table = table
    this.#nowMs = nowMs
  }

  /** `nowMs`: the time of what is written. Throws if it is not a FAT that can be written. */
  static async open(disk: DiskRange, nowMs: number): Promise<FatVolume> {
    const geometry = readGeometry(await disk.read(0, Math.min(512, disk.size)), disk.size)
    if (typeof geometry === 'string') throw new Error(`The boot partition ${geometry}`)
    return new FatVolume(disk, geometry, await AllocationTable.read(disk, geometry), nowMs)
  }

  /** Names in a folder; undefined if there is no such folder. */
  async list(path: readonly string[]): Promise<readonly string[] | undefined> {
    const folder = await this.#find(path)
    return folder && this.#entries(folder).map(({ name }) => name)
  }

  /** Undefined if there is no such file. Throws if it is larger than `maxBytes`. */
  async read(path: readonly string[], maxBytes: number): Promise<Buffer | undefined> {
    const folder = await this.#find(path.slice(0, -1))
    const entry = folder && findEntry(this.#entries(folder), path.at(-1) ?? '')
    if (entry === undefined || entry.isDirectory) return undefined
    if (entry.size > maxBytes)
      throw new Error(`${path.join('/')} of the boot partition has ${entry.size} bytes; the limit is ${maxBytes}`)
    const needed = Math.ceil(entry.size / this.#geometry.clusterBytes)
    const chain = this.#chainOf(entry).slice(0, needed)
    if (chain.length < needed) {
      throw new Error(`The FAT of the boot partition is damaged: ${path.join('/')} is shorter than its size`)
    }
    return (await this.#readChain(chain)).subarray(0, entry.size)
  }

  /** Creates the file, and the folders above it, or replaces it. Where its first byte is on the disk; an empty file is nowhere. */
  async write(path: readonly string[], content: FatContent): Promise<number | undefined> {
    const name = path.at(-1) ?? ''
    const shown = path.join('/')
    for (const one of path)
      if (!isWritableName(one)) throw new Error(`${JSON.stringify(one)} cannot be a name on the boot partition`)
    const folder = await this.#makeFolder(path.slice(0, -1))
    const before = findEntry(this.#entries(folder), name)
    if (before?.isDirectory) throw new Error(`${shown} of the boot partition is a folder`)
    const clusters = Math.ceil(content.size / this.#geometry.clusterBytes)
    const chain = content.isTogether ? this.#table.allocateTogether(clusters) : this.#table.allocate(clusters)
    await this.#fill(chain, content, shown)
    if (before !== undefined) this.#drop(folder, before)
    const [first] = chain
    await this.#add(folder, { name, isDirectory: false, cluster: first ?? 0, size: content.size })
    return first && clusterStart(this.#geometry, first)
  }

  /** A file, or a folder with all that is in it. Nothing happens if it is not there. */
  async remove(path: readonly string[]): Promise<void> {
    const folder = await this.#find(path.slice(0, -1))
    const entry = folder && findEntry(this.#entries(folder), path.at(-1) ?? '')
    if (folder === undefined || entry === undefined) return
    if (entry.isDirectory) await this.#empty(entry, 0)
    this.#drop(folder, entry)
    await this.#writeFolder(folder)
  }

  /** The table and the count of free clusters; without it nothing of the above is on the disk whole. */
  async flush(): Promise<void> {
    await this.#table.write(this.#disk)
  }

  async #fill(chain: readonly number[], content: FatContent, shown: string): Promise<void> {
    const { clusterBytes } = this.#geometry
    let [pending, index, total] = [Buffer.alloc(0), 0, 0]
    const put = async (bytes: Buffer) => {
      const clusters = chain.slice(index, index + bytes.length / clusterBytes)
      index += bytes.length / clusterBytes
      if (index > chain.length)
        throw new Error(`${shown} is longer than the ${content.size} bytes that it had at first`)
      await this.#writeChain(clusters, bytes)
    }
    for await (const chunk of content.chunks) {
      total += chunk.length
      pending = Buffer.concat([pending, chunk])
      const whole = pending.length - (pending.length % clusterBytes)
      await put(pending.subarray(0, whole))
      pending = pending.subarray(whole)
    }
    if (pending.length > 0) await put(Buffer.concat([pending, Buffer.alloc(clusterBytes - pending.length)]))
    if (total !== content.size)
      throw new Error(`${shown} has ${total} bytes and not the ${content.size} that it had at first`)
  }

  async #empty(entry: DirectoryEntry, depth: number): Promise<void> {
    if (depth === maxDepth) throw new Error(`The FAT of the boot partition is damaged: folders ${maxDepth} deep`)
    const folder = await this.#openFolder(entry.cluster)
    for (const one of this.#entries(folder)) {
      if (one.isDirectory) await this.#empty(one, depth + 1)
      this.#drop(folder, one)
    }
  }

  /** Its clusters become free, and its entries in the bytes of the folder, which are not written by this. */
  #drop(folder: Folder, entry: DirectoryEntry): void {
    this.#table.free(this.#chainOf(entry))
    removeEntry(folder.bytes, entry)
  }

  async #find(path: readonly string[]): Promise<Folder | undefined> {
    let folder = await this.#root()
    for (const name of path) {
      const entry = findEntry(this.#entries(folder), name)
      if (entry === undefined || !entry.isDirectory) return undefined
      folder = await this.#openFolder(entry.cluster)
    }
    return folder
  }

  async #makeFolder(path: readonly string[]): Promise<Folder> {
    let folder = await this.#root()
    for (const name of path) {
      const entry = findEntry(this.#entries(folder), name)
      if (entry !== undefined && !entry.isDirectory) throw new Error(`${name} of the boot partition is a file`)
      folder = await this.#openFolder(entry?.cluster ?? (await this.#newFolder(folder, name)))
    }
    return folder
  }

  async #newFolder(parent: Folder, name: string): Promise<number> {
    const [cluster = 0] = this.#table.allocate(1)
    const bytes = Buffer.alloc(this.#geometry.clusterBytes)
    firstEntries(cluster, parent.cluster, this.#nowMs).copy(bytes)
    await this.#disk.write(clusterStart(this.#geometry, cluster), bytes)
    await this.#add(parent, { name, isDirectory: true, cluster, size: 0 })
    return cluster
  }

  async #add(
    folder: Folder,
    entry: { name: string; isDirectory: boolean; cluster: number; size: number },
  ): Promise<void> {
    const encoded = encodeEntry({ ...entry, nowMs: this.#nowMs }, this.#entries(folder))
    if (placeEntry(folder.bytes, encoded)) return this.#writeFolder(folder)
    const { clusterBytes } = this.#geometry
    if (folder.chain.length === 0) throw new Error('The root directory of the boot partition is full')
    const more = this.#table.allocate(Math.ceil(encoded.length / clusterBytes))
    this.#table.extend(folder.chain, more)
    const bytes = Buffer.concat([folder.bytes, Buffer.alloc(more.length * clusterBytes)])
    if (bytes.length > maxDirectoryBytes || !placeEntry(bytes, encoded))
      throw new Error('A folder of the boot partition is full')
    await this.#writeFolder({ ...folder, chain: [...folder.chain, ...more], bytes })
  }

  async #writeFolder({ chain, bytes }: Folder): Promise<void> {
    const { root } = this.#geometry
    if (chain.length === 0 && 'start' in root) await this.#disk.write(root.start, bytes)
    else await this.#writeChain(chain, bytes)
  }

  /** `..` of a folder in the root names cluster 0, also where the root has a number (FAT specification, 6.5). */
  async #root(): Promise<Folder> {
    const { root } = this.#geometry
    if ('start' in root) return { chain: [], cluster: 0, bytes: await this.#disk.read(root.start, root.size) }
    return { ...(await this.#openFolder(root.cluster)), cluster: 0 }
  }

  async #openFolder(cluster: number): Promise<Folder> {
    const chain = this.#table.chain(cluster, Math.ceil(maxDirectoryBytes / this.#geometry.clusterBytes))
    return { chain, cluster, bytes: await this.#readChain(chain) }
  }

  #entries(folder: Folder): readonly DirectoryEntry[] {
    return entriesOf(folder.bytes, this.#geometry.width === 32)
  }

  #chainOf({ cluster }: DirectoryEntry): readonly number[] {
    return cluster === 0 ? [] : this.#table.chain(cluster, this.#geometry.clusters)
  }

  async #readChain(chain: readonly number[]): Promise<Buffer> {
    const { clusterBytes } = this.#geometry
    const parts: Buffer[] = []
    for (const { first, count } of runsOf(chain)) {
      parts.push(await this.#disk.read(clusterStart(this.#geometry, first), count * clusterBytes))
    }
    return Buffer.concat(parts)
  }

  async #writeChain(chain: readonly number[], bytes: Buffer): Promise<void> {
    const { clusterBytes } = this.#geometry
    let at = 0
    for (const { first, count } of runsOf(chain)) {
      await this.#disk.write(clusterStart(this.#geometry, first), bytes.subarray(at, at + count * clusterBytes))
      at += count * clusterBytes
    }
  }
}

/** Clusters beside each other are read and written at once: a cluster may have 512 bytes. */
function runsOf(chain: readonly number[]): readonly { readonly first: number; readonly count: number }[] {
  const runs: { first: number; count: number }[] = []
  for (const cluster of chain) {
    const last = runs.at(-1)
    if (last !== undefined && last.first + last.count === cluster) last.count++
    else runs.push({ first: cluster, count: 1 })
  }
  return runs
}
