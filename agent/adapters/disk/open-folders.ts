/**
 * Folders by descriptor: a tree of any depth can be walked, also where its paths are too long for the kernel (PATH_MAX, 4096
 * bytes), and no link that is created meanwhile is followed. Names are Latin-1 strings, one character a byte: on Linux
 * a name is any bytes, and one that is not UTF-8 would not be found again under its UTF-8 reading.
 */

import { constants, type Dir } from 'node:fs'
import { type FileHandle, open, opendir, readFile } from 'node:fs/promises'
import { codeOf } from '../../../daemon/errors.ts'

const { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } = constants
const together = 64

/** A path of the folder itself, good while the handle is open. For us and for the processes we start. */
export function pathOf({ fd }: FileHandle): string {
  return `/proc/${process.pid}/fd/${fd}`
}

/** A path of an entry in the folder, good while the handle is open. */
export function entryOf(folder: FileHandle, name: string): Buffer {
  return Buffer.from(`${Buffer.from(`${pathOf(folder)}/`).toString('latin1')}${name}`, 'latin1')
}

/** For a person: in quotes, with what cannot be printed escaped. */
export function printedName(name: string): string {
  return JSON.stringify(Buffer.from(name, 'latin1').toString('utf8'))
}

/** Rejects with ENOTDIR or ELOOP where the path is no folder: a link, for example. */
export function openFolder(path: string | Buffer): Promise<FileHandle> {
  return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
}

export type EntryName = { readonly name: string; readonly isFolder: boolean }

/** To be closed by the caller; `readEntries` reads it. */
export function openEntries(folder: FileHandle): Promise<Dir> {
  return opendir(pathOf(folder), { bufferSize: together, encoding: 'latin1' })
}

/** Some more entries; none at the end. */
export async function readEntries(entries: Dir): Promise<readonly EntryName[]> {
  const names: EntryName[] = []
  while (names.length < together) {
    const entry = await entries.read()
    if (entry === null) break
    names.push({ name: entry.name, isFolder: entry.isDirectory() })
  }
  return names
}

/** Which mount the folder is in: unlike the device number, it identifies a bind mount too (proc(5), fdinfo). */
export async function mountOf({ fd }: FileHandle): Promise<string | undefined> {
  const [, id] = /^mnt_id:\s*(\d+)$/m.exec(await readFile(`/proc/${process.pid}/fdinfo/${fd}`, 'utf8')) ?? []
  return id
}

/** The system's name of an error, `ENOENT`; its text where it has none. */
export function failureCode(error: unknown): string {
  return codeOf(error) || String(error)
}
