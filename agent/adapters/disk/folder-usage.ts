/**
 * The disk usage of a folder. The count is bounded, and runs in threads of the pool, not on the event loop. Containers may write
 * there meanwhile, or try to evade the count, so the walk uses descriptors: see `open-folders.ts`.
 */
import type { Stats } from 'node:fs'
import { type FileHandle, lstat, statfs } from 'node:fs/promises'
import type { Filled } from '../../usage/usage.ts'
import { type MountPoint, mountPoints, mountsAt } from './mounts.ts'
import { entryOf, failureCode, openEntries, openFolder, printedName, readEntries } from './open-folders.ts'
import { isRemote } from './remote/remote-mounts.ts'

/** Entries that are counted per call: some seconds of work on a slow card. */
const entriesAtOnce = 100_000
/** The bound of a walk's memory: queued folders, and files with several names. */
const mostPending = 200_000
const mostLinked = 1_000_000
/** Counts that are paused at once: each holds up to `mostHeld` folders open. */
const mostPaused = 16
const blockBytes = 512 // the unit of st_blocks, whatever the filesystem's own block is
/** Levels that are held open; deeper ones are closed on the way down, and reopened from below. */
const mostHeld = 32

/**
 * Undefined when the folder does not exist. Mounts in it are not counted; a file with several names is counted once. If a part
 * cannot be counted, or there are more than `most` entries, the result is incomplete, with the reason.
 */
export async function folderUsage(path: string, most = entriesAtOnce): Promise<Filled | undefined> {
  const begun = await begin(path, most)
  if (begun === undefined || !('walk' in begun)) return begun
  const { walk, sum } = begun
  const isWhole = (await walk.next()).done === true
  if (!isWhole) await walk.return()
  return isWhole ? sum.filled() : { incomplete: `more than ${most} entries`, ...sum.filled() }
}

export interface FolderCounter {
  /**
   * As `folderUsage`. A folder with more entries than the limit of a call is counted over several calls. Until a count is
   * complete, the result is the last complete one or the present count, whichever is more. One call at a time for a folder.
   * A folder with a remote mount in it is not counted: a call on the mount point may never return.
   */
  usage(path: string): Promise<Filled | undefined>
  /** Ends the counts of folders that were not requested since the last call. */
  endRound(): Promise<void>
  close(): Promise<void>
}

type Count = { readonly walk: Walk; readonly sum: Counter }

export function folderCounter(atOnce = entriesAtOnce, readMounts = mountPoints): FolderCounter {
  const paused = new Map<string, Count>()
  const whole = new Map<string, Filled>()
  const asked = new Set<string>()
  /** Read once for each round. */
  let remote: Promise<readonly MountPoint[]> | undefined

  const readRemote = async () => {
    try {
      return (await readMounts()).filter(isRemote)
    } catch (error) {
      remote = undefined // The next call reads them again: this round may not be ended.
      throw error
    }
  }

  const end = async (path: string) => {
    const count = paused.get(path)
    paused.delete(path)
    whole.delete(path)
    await count?.walk.return()
  }

  return {
    async usage(path) {
      asked.add(path)
      remote ??= readRemote()
      const [mount] = mountsAt(await remote, path)
      if (mount !== undefined) {
        const known = whole.get(path) ?? { usedBytes: 0, inodesUsed: 0 }
        await end(path)
        whole.set(path, known)
        return { ...known, incomplete: `${mount.path} (${mount.type}) is mounted in it` }
      }
      paused.get(path)?.sum.allow(atOnce)
      const count = paused.get(path) ?? (await begin(path, atOnce))
      if (count === undefined || !('walk' in count)) {
        whole.delete(path)
        return count
      }
      paused.delete(path)
      if ((await count.walk.next()).done === true) {
        const filled = count.sum.filled()
        whole.set(path, filled)
        return filled
      }
      if (paused.size < mostPaused) paused.set(path, count)
      else await count.walk.return()
      return larger(count.sum.filled(), whole.get(path), `more than ${atOnce} entries, not all are counted yet`)
    },
    async endRound() {
      remote = undefined
      for (const path of new Set([...paused.keys(), ...whole.keys()])) if (!asked.has(path)) await end(path)
      asked.clear()
    },
    async close() {
      for (const path of [...paused.keys()]) await end(path)
    },
  }
}

function larger(partial: Filled, whole: Filled | undefined, why: string): Filled {
  if (whole === undefined) return { incomplete: why, ...partial }
  return partial.usedBytes > whole.usedBytes ? partial : whole
}

async function begin(path: string, atOnce: number): Promise<Count | Filled | undefined> {
  const top = await lstat(path).catch((error) => failureCode(error))
  if (top === 'ENOENT' || top === 'ENOTDIR') return undefined
  if (typeof top === 'string') return { usedBytes: 0, inodesUsed: 0, incomplete: `the folder itself: ${top}` }
  const sum = counter(atOnce)
  sum.add(top)
  return top.isDirectory() ? { walk: walk(path, top.dev, sum), sum } : sum.filled()
}

/** Pauses after the allowed number of entries; `return` closes the open folders. */
type Walk = AsyncGenerator<void, void, void>

type Level = {
  readonly ino: number
  /** Subfolders still to be counted. All levels together have no more than the entries that are counted. */
  readonly folders: string[]
  handle: FileHandle | undefined
}

async function* walk(path: string, dev: number, sum: Counter): Walk {
  const levels: Level[] = []
  const enter = async function* (where: string | Buffer, name: string): Walk {
    const handle = await openFolder(where).catch((error) => sum.missed(name, error))
    if (handle === undefined) return
    const found = await handle.stat().catch((error) => sum.missed(name, error))
    if (found?.dev !== dev) return await handle.close()
    const level: Level = { ino: found.ino, folders: [], handle }
    levels.push(level)
    yield* read(handle, dev, sum, level.folders)
  }
  try {
    yield* enter(path, '.')
    for (let level = levels.at(-1); level !== undefined; level = levels.at(-1)) {
      const folder = level.folders.pop()
      if (folder === undefined) await leave(levels, dev, sum)
      else if (level.handle !== undefined) {
        sum.entered()
        yield* enter(entryOf(level.handle, folder), folder)
        const isEntered = levels.at(-1) !== level
        if (isEntered && levels.length > mostHeld + 1) await released(level)
      }
    }
  } finally {
    for (const level of levels) await released(level)
  }
}

/** Returns to the parent level; if a folder was moved meanwhile, to the next level that is open. */
async function leave(levels: Level[], dev: number, sum: Counter): Promise<void> {
  const level = levels.pop()
  const above = levels.at(-1)
  if (level?.handle !== undefined && above !== undefined && above.handle === undefined) {
    const handle = await openFolder(entryOf(level.handle, '..')).catch(() => undefined)
    const found = await handle?.stat().catch(() => undefined)
    if (found?.ino === above.ino && found.dev === dev) above.handle = handle
    else await handle?.close()
  }
  if (level !== undefined) await released(level)
  while (levels.length > 0 && levels.at(-1)?.handle === undefined) {
    const lost = levels.pop()
    if (lost === undefined || lost.folders.length === 0) continue
    for (const _ of lost.folders) sum.entered()
    sum.missed('a folder', new Error('moved while it was counted'))
  }
}

async function released(level: Level): Promise<void> {
  const { handle } = level
  level.handle = undefined
  // A close that fails has released the descriptor all the same: close(2).
  await handle?.close().catch(() => undefined)
}

/** Counts the entries of a folder, and appends its subfolders to `folders`. */
async function* read(folder: FileHandle, dev: number, sum: Counter, folders: string[]): Walk {
  const entries = await openEntries(folder).catch((error) => sum.missed('a folder', error))
  if (entries === undefined) return
  try {
    // In parallel: waiting for each one would cost more than the call.
    for (let some = await readEntries(entries); some.length > 0; some = await readEntries(entries)) {
      const all = await Promise.all(
        some.map(({ name }) => lstat(entryOf(folder, name)).catch((error) => sum.missed(name, error))),
      )
      yield* count(some, all, dev, sum, folders)
    }
  } catch (error) {
    sum.missed('a folder', error)
  } finally {
    await entries.close()
  }
}

/** Entries of another file system are not counted. */
function* count(
  entries: readonly { readonly name: string }[],
  stats: readonly (Stats | undefined)[],
  dev: number,
  sum: Counter,
  folders: string[],
): Generator<void, void, void> {
  for (const [index, found] of stats.entries()) {
    if (found === undefined || found.dev !== dev) continue
    while (sum.isSpent()) yield
    sum.add(found)
    if (found.isDirectory() && sum.mayEnter()) folders.push(entries[index]?.name ?? '')
  }
}

type Counter = ReturnType<typeof counter>

function counter(allowed: number) {
  let usedBytes = 0
  let inodesUsed = 0
  let pending = 0
  let upTo = allowed
  let incomplete: string | undefined
  const seen = new Set<number>()
  return {
    add(found: Stats): void {
      if (found.nlink > 1 && !found.isDirectory()) {
        if (seen.has(found.ino)) return
        if (seen.size >= mostLinked) incomplete ??= `more than ${mostLinked} files of several names`
        else seen.add(found.ino)
      }
      usedBytes += found.blocks * blockBytes
      inodesUsed++
    },
    /** The allowed number of entries is counted. */
    isSpent: () => inodesUsed >= upTo,
    /** Allows so many more entries. */
    allow(more: number): void {
      upTo = inodesUsed + more
    },
    /** False: too many folders are queued, so this one is not counted. */
    mayEnter(): boolean {
      if (pending >= mostPending) {
        incomplete ??= `more than ${mostPending} folders beside one another`
        return false
      }
      pending++
      return true
    },
    entered(): void {
      pending--
    },
    /** It was removed or replaced during the count, so it is not counted. */
    missed(name: string, error: unknown): undefined {
      const code = failureCode(error)
      if (!['ENOENT', 'ENOTDIR', 'ELOOP'].includes(code)) incomplete ??= `${printedName(name)}: ${code}`
      return undefined
    },
    filled: (): Filled => ({ usedBytes, inodesUsed, ...(incomplete === undefined ? {} : { incomplete }) }),
  }
}

/** The usage of a volume that is a filesystem of its own. */
export async function mountUsage(path: string): Promise<Filled | undefined> {
  const stats = await statfs(path).catch(() => undefined)
  if (stats === undefined) return undefined
  return { usedBytes: (stats.blocks - stats.bfree) * stats.bsize, inodesUsed: stats.files - stats.ffree }
}
