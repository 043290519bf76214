/** The table of a FAT: which clusters belong together, and which are free. In memory; what changed is written at the end. */
import type { DiskRange } from '../disk-range.ts'
import type { Geometry } from './geometry.ts'

/** In a table of 32 bits the upper four are reserved and kept. */
const linkMask = 0x0fffffff
const chainEnd = { 16: 0xffff, 32: linkMask } as const
/** Values from here on end a chain; the one before marks a bad cluster. */
const firstEnd = { 16: 0xfff8, 32: 0x0ffffff8 } as const

export class AllocationTable {
  readonly #geometry: Geometry
  readonly #bytes: Buffer
  readonly #changedSectors = new Set<number>()
  #next = 2

  private constructor(geometry: Geometry, bytes: Buffer) {
    this.#geometry = geometry
    this.#bytes = bytes
  }

  static async read(disk: DiskRange, geometry: Geometry): Promise<AllocationTable> {
    return new AllocationTable(geometry, await disk.read(geometry.tableStart, geometry.tableBytes))
  }

  /** The clusters from `first` on. Throws on a chain that leaves the table, ends in a free cluster, or has more than `most`. */
  chain(first: number, most: number): readonly number[] {
    const { clusters, width } = this.#geometry
    const found: number[] = []
    for (let cluster = first; cluster < firstEnd[width]; cluster = this.#link(cluster)) {
      if (cluster < 2 || cluster > clusters + 1) {
        throw new Error(`The FAT of the boot partition is damaged: a chain leads to cluster ${cluster} of ${clusters}`)
      }
      if (found.length === most) {
        throw new Error(`The FAT of the boot partition is damaged: a chain does not end after ${most} clusters`)
      }
      found.push(cluster)
    }
    return found
  }

  get freeClusters(): number {
    let free = 0
    for (let cluster = 2; cluster <= this.#geometry.clusters + 1; cluster++) if (this.#link(cluster) === 0) free++
    return free
  }

  /** `count` free clusters, linked; empty for 0. Throws if there are not as many, and then takes none. */
  allocate(count: number): readonly number[] {
    const found: number[] = []
    const { clusters, clusterBytes, width } = this.#geometry
    for (let looked = 0; looked < clusters && found.length < count; looked++) {
      if (this.#link(this.#next) === 0) found.push(this.#next)
      this.#next = this.#next > clusters ? 2 : this.#next + 1
    }
    if (found.length < count) {
      throw new Error(
        `The boot partition is full: ${count * clusterBytes} bytes are needed, ${found.length * clusterBytes} are free`,
      )
    }
    for (const [index, cluster] of found.entries()) this.#setLink(cluster, found[index + 1] ?? chainEnd[width])
    return found
  }

  /** The same, of clusters beside each other. Throws if there is no such gap. */
  allocateTogether(count: number): readonly number[] {
    const { clusters, clusterBytes, width } = this.#geometry
    const last = clusters + 1
    for (let first = 2; first + count - 1 <= last; first++) {
      let free = 0
      while (free < count && this.#link(first + free) === 0) free++
      if (free === count) {
        const found = Array.from({ length: count }, (_, index) => first + index)
        for (const [index, cluster] of found.entries()) this.#setLink(cluster, found[index + 1] ?? chainEnd[width])
        return found
      }
      first += free
    }
    throw new Error(`The boot partition has no ${count * clusterBytes} free bytes beside each other`)
  }

  /** Makes `chain`, which ends, go on with `more`. */
  extend(chain: readonly number[], more: readonly number[]): void {
    const [last, first] = [chain.at(-1), more[0]]
    if (last !== undefined && first !== undefined) this.#setLink(last, first)
  }

  free(chain: readonly number[]): void {
    for (const cluster of chain) this.#setLink(cluster, 0)
  }

  /** Every copy of the table, and FAT32's count of free clusters. */
  async write(disk: DiskRange): Promise<void> {
    const { sectorBytes, tableStart, tableBytes, tables, infoStart } = this.#geometry
    if (this.#changedSectors.size === 0) return
    for (const sector of [...this.#changedSectors].sort((a, b) => a - b)) {
      const bytes = this.#bytes.subarray(sector * sectorBytes, (sector + 1) * sectorBytes)
      for (let copy = 0; copy < tables; copy++) {
        await disk.write(tableStart + copy * tableBytes + sector * sectorBytes, bytes)
      }
    }
    this.#changedSectors.clear()
    if (infoStart === undefined) return
    const info = await disk.read(infoStart, 512)
    if (info.readUInt32LE(0) !== 0x41615252 || info.readUInt32LE(484) !== 0x61417272) return
    info.writeUInt32LE(this.freeClusters, 488)
    info.writeUInt32LE(this.#next, 492)
    await disk.write(infoStart, info)
  }

  #link(cluster: number): number {
    return this.#geometry.width === 16
      ? this.#bytes.readUInt16LE(cluster * 2)
      : this.#bytes.readUInt32LE(cluster * 4) & linkMask
  }

  #setLink(cluster: number, link: number): void {
    const { width, sectorBytes } = this.#geometry
    if (width === 16) this.#bytes.writeUInt16LE(link, cluster * 2)
    else {
      const reserved = this.#bytes.readUInt32LE(cluster * 4) & ~linkMask
      this.#bytes.writeUInt32LE((reserved | link) >>> 0, cluster * 4)
    }
    this.#changedSectors.add(Math.floor((cluster * (width / 8)) / sectorBytes))
  }
}
