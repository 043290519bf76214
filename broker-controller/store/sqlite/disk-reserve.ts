/**
 * A file of random bytes beside the store. Where the disk is full it is removed, and what the store then writes takes its blocks:
 * deletions, statuses, and what a start writes. Random, because a filesystem that compresses would give zeros no blocks.
 */
import { randomBytes } from 'node:crypto'
import { closeSync, fsyncSync, openSync, rmSync, statfsSync, statSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'

/**
 * A journal of SQLite at its largest between two checkpoints has 4 MiB and one transaction. The rest is for the files that a start
 * writes, and for other programs, which may be faster.
 */
export const reserveBytes = 16 * 2 ** 20
const chunkBytes = 2 ** 20

export interface DiskReserve {
  /** The folder of the store. */
  readonly folder: string
  /** Free bytes of its disk for a process without root rights; without the blocks of the reserve. */
  freeBytes(): number
  isHeld(): boolean
  /** Makes its blocks free. False: it was not held. */
  release(): boolean
  /** Takes it again; resolves when it is on the disk. Rejects if there is no room. */
  take(): Promise<void>
}

export function diskReserve(path: string, freeBytes = () => freeOf(dirname(path))): DiskReserve {
  const folder = dirname(path)
  let isHeld = statSync(path, { throwIfNoEntry: false }) !== undefined
  return {
    folder,
    freeBytes,
    isHeld: () => isHeld,
    release() {
      if (!isHeld) return false
      rmSync(path, { force: true })
      isHeld = false
      syncFolder(folder)
      return true
    },
    async take() {
      // As a file of `durable-file.ts`: what a power cut leaves of it is removed at the next start.
      const draft = `${path}.${process.pid}.new`
      try {
        await writeWhole(draft)
        await rename(draft, path)
        isHeld = true
      } catch (error) {
        await rm(draft, { force: true })
        throw error
      }
    },
  }
}

function freeOf(folder: string): number {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize
}

async function writeWhole(path: string): Promise<void> {
  const file = await open(path, 'w', 0o600)
  try {
    for (let written = 0; written < reserveBytes; written += chunkBytes) await file.write(randomBytes(chunkBytes))
    await file.sync()
  } finally {
    await file.close()
  }
}

/** The blocks of a file that is removed are free when the journal of the filesystem has the removal. */
function syncFolder(folder: string): void {
  const opened = openSync(folder, 'r')
  try {
    fsyncSync(opened)
  } finally {
    closeSync(opened)
  }
}
