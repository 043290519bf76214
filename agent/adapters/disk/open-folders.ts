/**
 * Folders by descriptor: a tree of any depth can be walked, even where its paths are too long for the kernel (PATH_MAX, 4096
 * bytes), and no link that is created meanwhile is followed. Names are Latin-1 strings, one character per byte: on Linux a name
 * consists of any bytes, and decoding it as UTF-8 would lose some.
 */

import { constants, type Dir } from 'node:fs'
import { type FileHandle, open, opendir, readFile } from 'node:fs/promises'
import { codeOf } from '../../../daemon/errors.ts'

const { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } = constants
const together = 64

/** A path of the folder itself, valid while the handle is open, in this process and its children. */
export function pathOf({ fd }: FileHandle): string {
  return `/proc/${process.pid}/fd/${fd}`
}

/** A path of an entry in the folder, valid while the handle is open. */
export function entryOf(folder: FileHandle, name: string): Buffer {
  return Buffer.from(`${Buffer.from(`${pathOf(folder)}/`).toString('latin1')}${name}`, 'latin1')
}

/** For messages: quoted, with unprintable characters escaped. */
export function printedName(name: string): string {
  return JSON.stringify(Buffer.from(name, 'latin1').toString('utf8'))
}

/** Rejects with ENOTDIR or ELOOP if the path is not a folder, such as a link. */
export function openFolder(path: string | Buffer): Promise<FileHandle> {
  return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
}

export type EntryName = { readonly name: string; readonly isFolder: boolean }

/** The caller closes it; read it with `readEntries`. */
export function openEntries(folder: FileHandle): Promise<Dir> {
  return opendir(pathOf(folder), { bufferSize: together, encoding: 'latin1' })
}

/** The next entries; empty at the end. */
export async function readEntries(entries: Dir): Promise<readonly EntryName[]> {
  const names: EntryName[] = []
  while (names.length < together) {
    const entry = await entries.read()
    if (entry === null) break
    names.push({ name: entry.name, isFolder: entry.isDirectory() })
  }
  return names
}

/** The entries, in no order. Stops once there are `most` or a few more. */
export async function listEntries(folder: FileHandle, most = Number.POSITIVE_INFINITY): Promise<readonly EntryName[]> {
  const entries = await openEntries(folder)
  const found: EntryName[] = []
  try {
    for (let some = await readEntries(entries); some.length > 0; some = await readEntries(entries)) {
      found.push(...some)
      if (found.length >= most) break
    }
  } finally {
    await entries.close()
  }
  return found
}

/** The mount of the folder: unlike the device number, it also identifies a bind mount (proc(5), fdinfo). */
export async function mountOf({ fd }: FileHandle): Promise<string | undefined> {
  const [, id] = /^mnt_id:\s*(\d+)$/m.exec(await readFile(`/proc/${process.pid}/fdinfo/${fd}`, 'utf8')) ?? []
  return id
}

/** The code of an error, such as `ENOENT`; its message if it has none. */
export function failureCode(error: unknown): string {
  return codeOf(error) || String(error)
}
