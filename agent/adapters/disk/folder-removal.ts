/**
 * Removes a folder with any content of containers: trees deeper than the longest path, names that are not UTF-8, folders with
 * millions of entries. Memory and open files do not grow with the tree.
 */
import type { Dir } from 'node:fs'
import { type FileHandle, lstat, rename, rmdir, unlink } from 'node:fs/promises'
import { entryOf, failureCode, mountOf, openEntries, openFolder, printedName, readEntries } from './open-folders.ts'

/** Deeper levels are moved to the top of the tree and removed from there. A level holds two descriptors. */
const mostLevels = 32

/**
 * Resolves when `path` does not exist any more. Links in it are removed, not followed; mounts in it are kept. Removes as much as
 * possible, then rejects with the first entry that cannot be removed. Rejects when `signal` aborts.
 */
export async function removeFolder(path: string, signal?: AbortSignal): Promise<void> {
  const found = await lstat(path).catch(unless('ENOENT'))
  if (found === undefined) return
  if (!found.isDirectory()) return await unlink(path).catch(unless('ENOENT'))
  const top = await openFolder(path)
  try {
    for (;;) {
      const { removed, failures } = await emptied(top, signal)
      const left = await rmdir(path).then(() => undefined, failureCode)
      if (left === undefined || left === 'ENOENT') return
      // Entries that were moved to the top, or created meanwhile, are removed in the next pass, as long as passes remove
      // something.
      if (left === 'ENOTEMPTY' && removed > 0) continue
      throw new Error(`Cannot remove ${path}: ${failures.first ?? left}${failures.more}`)
    }
  } finally {
    await top.close()
  }
}

type Level = {
  /** Its name in the parent folder. */
  readonly name: string
  readonly handle: FileHandle
  readonly entries: Dir
  /** Subfolders that are still to be removed, of the entries that were read, so they are few. */
  readonly folders: string[]
}

/** Depth first, with the levels from the top to the current one in a list. */
async function emptied(top: FileHandle, signal: AbortSignal | undefined) {
  const tally = tallied()
  const mount = await mountOf(top)
  const levels: Level[] = [await levelOf('', top)]
  let moved = 0
  const moveUp = async ({ handle }: Level, name: string) => {
    // If a pod has created an entry of that name, the next name is tried.
    while (!(await movedTo(entryOf(top, `..deep-${moved++}`), entryOf(handle, name)))) signal?.throwIfAborted()
  }
  try {
    for (let level = levels.at(-1); level !== undefined; level = levels.at(-1)) {
      signal?.throwIfAborted()
      const { handle, entries, folders } = level
      const folder = folders.pop()
      if (folder !== undefined) {
        if (levels.length >= mostLevels) await tally.attempt(folder, moveUp(level, folder))
        else await tally.visit(folder, async () => levels.push(await descended(handle, folder, mount)))
        continue
      }
      const read = await readEntries(entries)
      folders.push(...read.filter(({ isFolder }) => isFolder).map(({ name }) => name))
      const others = read.filter(({ isFolder }) => !isFolder)
      await Promise.all(others.map(({ name }) => tally.attempt(name, unlink(entryOf(handle, name)))))
      if (read.length > 0) continue
      levels.pop()
      await closed(level, top)
      const above = levels.at(-1)
      if (above !== undefined) await tally.attempt(level.name, rmdir(entryOf(above.handle, level.name)))
    }
    return tally
  } finally {
    for (const level of levels) await closed(level, top)
  }
}

async function levelOf(name: string, handle: FileHandle): Promise<Level> {
  return { name, handle, entries: await openEntries(handle), folders: [] }
}

async function closed({ entries, handle }: Level, top: FileHandle): Promise<void> {
  await entries.close()
  if (handle !== top) await handle.close()
}

async function descended(above: FileHandle, name: string, mount: string | undefined): Promise<Level> {
  const handle = await openFolder(entryOf(above, name))
  try {
    if ((await mountOf(handle)) !== mount) throw new Error('something is mounted there')
    return await levelOf(name, handle)
  } catch (error) {
    await handle.close()
    throw error
  }
}

/** False: an entry of that name exists. */
async function movedTo(target: Buffer, source: Buffer): Promise<boolean> {
  try {
    await rename(source, target)
    return true
  } catch (error) {
    if (['ENOTEMPTY', 'EEXIST', 'ENOTDIR'].includes(failureCode(error))) return false
    throw error
  }
}

/**
 * The result of one pass over the entries. An entry that is gone, or a folder that was filled meanwhile, is not a failure: the next
 * pass handles it.
 */
function tallied() {
  let removed = 0
  let failed = 0
  let first: string | undefined
  const note = (name: string, error: unknown) => {
    const code = failureCode(error)
    if (code === 'ENOENT' || code === 'ENOTEMPTY') return
    failed++
    first ??= `${printedName(name)}: ${code}`
  }
  return {
    get removed() {
      return removed
    },
    get failures() {
      return { first, more: failed > 1 ? `, and ${failed - 1} more` : '' }
    },
    async attempt(name: string, work: Promise<unknown>) {
      try {
        await work
        removed++
      } catch (error) {
        note(name, error)
      }
    },
    visit: (name: string, work: () => Promise<unknown>) => work().catch((error) => note(name, error)),
  }
}

function unless(code: string): (error: unknown) => undefined {
  return (error) => {
    if (failureCode(error) !== code) throw error
    return undefined
  }
}
