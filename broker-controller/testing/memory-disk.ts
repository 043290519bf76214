/** A disk in memory, which counts what is written to it. */
import type { DiskRange } from '../cards/disk-range.ts'

export type MemoryDisk = DiskRange & { readonly bytes: Buffer; readonly writes: number }

export function memoryDisk(bytes: Buffer): MemoryDisk {
  let writes = 0
  const check = (offset: number, length: number) => {
    if (offset < 0 || offset + length > bytes.length)
      throw new RangeError(`Outside of the disk: ${offset}, ${length} bytes`)
  }
  return {
    bytes,
    size: bytes.length,
    get writes() {
      return writes
    },
    async read(offset, length) {
      check(offset, length)
      return Buffer.from(bytes.subarray(offset, offset + length))
    },
    async write(offset, data) {
      check(offset, data.length)
      writes++
      bytes.set(data, offset)
    },
  }
}
