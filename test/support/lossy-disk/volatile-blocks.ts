/**
 * The content of a disk with a volatile write cache. What was written since the last flush is on the medium in part, block by block, in no
 * order. When its power is lost the rest of it is gone: the medium stays as it is from then on.
 */
import { readSync, writeSync } from 'node:fs'

export type VolatileBlocks = {
  read(offset: number, bytes: number): Buffer
  write(offset: number, data: Buffer): void
  /** All that was written is on the medium, unless the power is lost. */
  flush(): void
  /** From now on nothing reaches the medium. Reads still return what was written, so that file systems on it end without errors. */
  losePower(): void
}

export const blockBytes = 4096
/** This part of the blocks is on the medium before a flush. */
const early = 0.25
const flushedAtOnce = 256

/** `medium`: descriptor of a file of `size` bytes. `random`: from 0 to 1, decides which blocks are on the medium before a flush. */
export function volatileBlocks(medium: number, size: number, random: () => number): VolatileBlocks {
  const cache = new Map<number, Buffer>()
  let hasPower = true

  const read = (offset: number, bytes: number): Buffer => {
    const data = Buffer.alloc(Math.max(0, Math.min(bytes, size - offset)))
    if (data.length > 0) readSync(medium, data, 0, data.length, offset)
    for (let block = Math.floor(offset / blockBytes); block * blockBytes < offset + data.length; block++) {
      const from = block * blockBytes
      const cached = cache.get(block)
      if (cached === undefined) continue
      const skipped = Math.max(0, offset - from)
      cached.copy(data, from + skipped - offset, skipped)
    }
    return data
  }
  const put = (block: number, content: Buffer) => {
    if (hasPower && random() < early) {
      writeSync(medium, content, 0, content.length, block * blockBytes)
      cache.delete(block)
    } else {
      cache.set(block, content)
    }
  }
  return {
    read,
    write(offset, data) {
      if (offset + data.length > size) throw new Error(`A write ends at byte ${offset + data.length} of ${size}`)
      let written = 0
      while (written < data.length) {
        const block = Math.floor((offset + written) / blockBytes)
        const from = block * blockBytes
        const skipped = offset + written - from
        const part = data.subarray(written, written + blockBytes - skipped)
        const whole = part.length === blockBytes ? Buffer.from(part) : read(from, blockBytes)
        if (part.length < blockBytes) part.copy(whole, skipped)
        put(block, whole)
        written += part.length
      }
    },
    flush() {
      if (!hasPower) return
      const blocks = [...cache.keys()].sort((a, b) => a - b)
      // Blocks in a row are one write.
      for (let at = 0; at < blocks.length; ) {
        const first = blocks[at] ?? 0
        let count = 1
        while (count < flushedAtOnce && blocks[at + count] === first + count) count++
        const run = Buffer.concat(blocks.slice(at, at + count).flatMap((block) => cache.get(block) ?? []))
        writeSync(medium, run, 0, run.length, first * blockBytes)
        at += count
      }
      cache.clear()
    },
    losePower() {
      hasPower = false
    },
  }
}
