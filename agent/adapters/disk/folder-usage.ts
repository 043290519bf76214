/**
 * How much is in a folder? Counted file by file, so it is bounded, and takes its time in threads, not in this one. Containers
 * write there meanwhile, and may want not to be counted: the walk goes by descriptors, see `open-folders.ts`.
 */
import type { Stats } from 'node:fs'
import { type FileHandle, lstat, statfs } from 'node:fs/promises'
import type { Filled } from '../../usage/usage.ts'
import { entryOf, failureCode, openEntries, openFolder, printedName, readEntries } from './open-folders.ts'

const mostEntries = 100_000
const blockBytes = 512 // what st_blocks counts in, whatever the filesystem's own block is
/** So many levels are held open; those below are left on the way down, and entered again from below. */
const mostHeld = 32

/**
 * Undefined when it is not there. What is mounted in it is not its own; a file of many names is counted once. What cannot be
 * counted makes the answer incomplete, with the reason.
 */
export async function folderUsage(path: string, most = mostEntries): Promise<Filled | undefined> {
  const top = await lstat(path).catch((error) => failureCode(error))
  if (top === 'ENOENT' || top === 'ENOTDIR') return undefined
  if (typeof top === 'string') return { usedBytes: 0, inodesUsed: 0, incomplete: `the folder itself: ${top}` }
  const sum = counter(most)
  sum.add(top)
  if (top.isDirectory()) await walk(path, top.dev, sum)
  return sum.filled()
}

type Level = {
  readonly ino: number
  /** In it, still to be counted. All levels together have no more than the entries that are counted. */
  readonly folders: string[]
  handle: FileHandle | undefined
}

async function walk(path: string, dev: number, sum: Counter): Promise<void> {
  const levels: Level[] = []
  const enter = async (where: string | Buffer, name: string) => {
    const handle = await openFolder(where).catch((error) => sum.missed(name, error))
    if (handle === undefined) return
    const found = await handle.stat()
    if (found.dev !== dev) return await handle.close()
    levels.push({ ino: found.ino, folders: await read(handle, dev, sum), handle })
  }
  try {
    await enter(path, '.')
    for (let level = levels.at(-1); level !== undefined && !sum.isFull(); level = levels.at(-1)) {
      const folder = level.folders.pop()
      if (folder === undefined) await leave(levels, dev, sum)
      else if (level.handle !== undefined) {
        await enter(entryOf(level.handle, folder), folder)
        const isEntered = levels.at(-1) !== level
        if (isEntered && levels.length > mostHeld + 1) await released(level)
      }
    }
  } finally {
    for (const level of levels) await released(level)
  }
}

/** Back to the level above; where a folder was moved meanwhile, to the next one that is held. */
async function leave(levels: Level[], dev: number, sum: Counter): Promise<void> {
  const level = levels.pop()
  const above = levels.at(-1)
  if (level?.handle !== undefined && above !== undefined && above.handle === undefined) {
    const handle = await openFolder(entryOf(level.handle, '..')).catch(() => undefined)
    const found = await handle?.stat()
    if (found?.ino === above.ino && found.dev === dev) above.handle = handle
    else await handle?.close()
  }
  if (level !== undefined) await released(level)
  while (levels.length > 0 && levels.at(-1)?.handle === undefined) {
    const lost = levels.pop()
    if (lost !== undefined && lost.folders.length > 0) sum.missed('a folder', new Error('moved while it was counted'))
  }
}

async function released(level: Level): Promise<void> {
  await level.handle?.close()
  level.handle = undefined
}

/** Counts the entries of a folder; gives the folders among them. */
async function read(folder: FileHandle, dev: number, sum: Counter): Promise<string[]> {
  const folders: string[] = []
  const entries = await openEntries(folder).catch((error) => sum.missed('a folder', error))
  if (entries === undefined) return folders
  try {
    // Not one by one: to wait for each of them would cost more than to look.
    for (let some = await readEntries(entries); some.length > 0; some = await readEntries(entries)) {
      const all = await Promise.all(
        some.map(({ name }) => lstat(entryOf(folder, name)).catch((error) => sum.missed(name, error))),
      )
      for (const [index, found] of all.entries()) {
        if (found === undefined || found.dev !== dev) continue
        if (!sum.add(found)) return folders
        if (found.isDirectory()) folders.push(some[index]?.name ?? '')
      }
    }
  } catch (error) {
    sum.missed('a folder', error)
  } finally {
    await entries.close()
  }
  return folders
}

type Counter = ReturnType<typeof counter>

function counter(most: number) {
  let usedBytes = 0
  let inodesUsed = 0
  let incomplete: string | undefined
  const seen = new Set<number>()
  return {
    /** False: there are more than are counted. */
    add(found: Stats): boolean {
      if (found.nlink > 1 && !found.isDirectory()) {
        if (seen.has(found.ino)) return true
        seen.add(found.ino)
      }
      if (inodesUsed >= most) {
        incomplete = `more than ${most} entries`
        return false
      }
      usedBytes += found.blocks * blockBytes
      inodesUsed++
      return true
    },
    isFull: () => inodesUsed >= most && incomplete !== undefined,
    /** It was removed, or replaced by something else, while we counted: then there is nothing to count. */
    missed(name: string, error: unknown): undefined {
      const code = failureCode(error)
      if (!['ENOENT', 'ENOTDIR', 'ELOOP'].includes(code)) incomplete ??= `${printedName(name)}: ${code}`
      return undefined
    },
    filled: (): Filled => ({ usedBytes, inodesUsed, ...(incomplete === undefined ? {} : { incomplete }) }),
  }
}

/** Of a filesystem of its own: it knows. */
export async function mountUsage(path: string): Promise<Filled | undefined> {
  const stats = await statfs(path).catch(() => undefined)
  if (stats === undefined) return undefined
  return { usedBytes: (stats.blocks - stats.bfree) * stats.bsize, inodesUsed: stats.files - stats.ffree }
}
