/** A range of bytes of a disk or of an image of one, read and written at offsets. */
import type { FileHandle } from 'node:fs/promises'

export type DiskRange = {
  readonly size: number
  /** Throws if the range ends before. */
  read(offset: number, length: number): Promise<Buffer>
  write(offset: number, bytes: Uint8Array): Promise<void>
}

/** `size` bytes of the open file from `start`. No read or write leaves them. */
export function rangeOf(file: FileHandle, start: number, size: number): DiskRange {
  const check = (offset: number, length: number) => {
    if (offset < 0 || length < 0 || offset + length > size) {
      throw new RangeError(`Bytes ${offset} to ${offset + length} are outside of a range of ${size} bytes`)
    }
  }
  return {
    size,
    async read(offset, length) {
      check(offset, length)
      const bytes = Buffer.alloc(length)
      for (let done = 0; done < length; ) {
        const { bytesRead } = await file.read(bytes, done, length - done, start + offset + done)
        if (bytesRead === 0)
          throw new Error(`The file ends at byte ${start + offset + done}, in the middle of a partition`)
        done += bytesRead
      }
      return bytes
    },
    async write(offset, bytes) {
      check(offset, bytes.length)
      for (let done = 0; done < bytes.length; ) {
        const { bytesWritten } = await file.write(bytes, done, bytes.length - done, start + offset + done)
        done += bytesWritten
      }
    },
  }
}
