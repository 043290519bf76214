/**
 * Gives all files of a volume to a group, with the permissions that the group needs (SetVolumeOwnership in pkg/volume/volume_linux.go).
 * Containers of other pods may write there meanwhile: every part is opened from the descriptor of the one before, no link is followed, and
 * mounts in the volume are left alone. A folder is done after its content, so that one with the permissions has been done as a whole.
 */
import { constants, type Dir } from 'node:fs'
import { chmod, chown, type FileHandle, lchown, open } from 'node:fs/promises'
import { VolumeError } from '../../../pods/volumes/volume-store.ts'
import {
  entryOf,
  failureCode,
  mountOf,
  openEntries,
  openFolder,
  pathOf,
  printedName,
  readEntries,
} from '../open-folders.ts'

/** O_PATH on Linux: a handle that only identifies a path. */
const pathOnly = 0o10000000
const fileBits = 0o660
const folderBits = 0o2770
/** A level holds two descriptors. */
const mostLevels = 128
/** The owner stays. */
const sameOwner = -1

export type GroupOptions = {
  /** Nothing is changed if the folder itself has the group and the permissions (fsGroupChangePolicy: OnRootMismatch). */
  readonly onMismatchOnly: boolean
  readonly signal: AbortSignal
}

type Level = { readonly name: string; readonly handle: FileHandle; readonly entries: Dir; readonly folders: string[] }

/** `path`: without links. */
export async function giveToGroup(
  path: string,
  group: number,
  { onMismatchOnly, signal }: GroupOptions,
): Promise<void> {
  const top = await openFolder(path)
  const levels: Level[] = []
  try {
    const { gid, mode } = await top.stat()
    if (onMismatchOnly && gid === group && (mode & folderBits) === folderBits) return
    const mount = await mountOf(top)
    levels.push(await levelOf('', top))
    for (let level = levels.at(-1); level !== undefined; level = levels.at(-1)) {
      signal.throwIfAborted()
      const { handle, entries, folders } = level
      const folder = folders.pop()
      if (folder !== undefined) {
        if (levels.length >= mostLevels) {
          throw new VolumeError(
            `cannot set the group of ${printedName(folder)}: it is deeper than ${mostLevels} folders`,
          )
        }
        const below = await entered(handle, folder, mount)
        if (below !== undefined) levels.push(below)
        continue
      }
      const read = await readEntries(entries)
      folders.push(...read.filter(({ isFolder }) => isFolder).map(({ name }) => name))
      const files = read.filter(({ isFolder }) => !isFolder)
      await Promise.all(files.map(({ name }) => changeEntry(handle, name, group)))
      if (read.length > 0) continue
      levels.pop()
      await change(handle, group)
      await closed(level, top)
    }
  } finally {
    for (const level of levels) await closed(level, top)
    await top.close()
  }
}

async function levelOf(name: string, handle: FileHandle): Promise<Level> {
  return { name, handle, entries: await openEntries(handle), folders: [] }
}

async function closed({ entries, handle }: Level, top: FileHandle): Promise<void> {
  await entries.close()
  if (handle !== top) await handle.close()
}

/** undefined: it is gone, is not a folder any more, or something is mounted there. */
async function entered(above: FileHandle, name: string, mount: string | undefined): Promise<Level | undefined> {
  const handle = await openFolder(entryOf(above, name)).catch(unlessGone)
  if (handle === undefined) return undefined
  try {
    if ((await mountOf(handle)) === mount) return await levelOf(name, handle)
  } catch (error) {
    await handle.close()
    throw error
  }
  await handle.close()
  return undefined
}

async function changeEntry(folder: FileHandle, name: string, group: number): Promise<void> {
  const handle = await open(entryOf(folder, name), pathOnly | constants.O_NOFOLLOW).catch(unlessGone)
  if (handle === undefined) return
  try {
    if ((await handle.stat()).isSymbolicLink()) await lchown(entryOf(folder, name), sameOwner, group).catch(unlessGone)
    else await change(handle, group)
  } finally {
    await handle.close()
  }
}

/** What is right already is not written. */
async function change(handle: FileHandle, group: number): Promise<void> {
  const found = await handle.stat()
  const mode = found.mode & 0o7777
  const wanted = mode | (found.isDirectory() ? folderBits : fileBits)
  // A change of the group takes away the setuid bit, so the mode is written after it.
  if (found.gid !== group) await chown(pathOf(handle), sameOwner, group)
  if (wanted !== mode || found.gid !== group) await chmod(pathOf(handle), wanted)
}

function unlessGone(error: unknown): undefined {
  if (!['ENOENT', 'ENOTDIR', 'ELOOP'].includes(failureCode(error))) throw error
  return undefined
}
