/** What updates do with a disk. Nothing is on disk before it is synced: a file by `sync`, a name by `syncFolder` of its folder. */

export interface UpdateDisk {
  /** Undefined: there is no such file. */
  read(path: string): Promise<Uint8Array | undefined>
  /** At most `most` bytes of a file; none behind its end. Rejects if there is no such file. */
  readPart(path: string, from: number, most: number): Promise<Uint8Array>
  /** Undefined: there is no such file. `size` in bytes. */
  fileOf(path: string): Promise<{ readonly size: number; readonly isProgram: boolean } | undefined>
  /** Undefined: there is nothing. */
  kindOf(path: string): Promise<'file' | 'folder' | undefined>
  /** Names in a folder; none if it does not exist. */
  list(folder: string): Promise<readonly string[]>
  /** Creates the file or replaces its content. */
  write(path: string, content: Uint8Array, mode: number): Promise<void>
  /** Adds to the end of a file, which must exist. */
  append(path: string, content: Uint8Array): Promise<void>
  /** Syncs a file: its content, and not its name. */
  sync(path: string): Promise<void>
  /** Syncs the names in a folder. */
  syncFolder(folder: string): Promise<void>
  /** Creates the folder unless it exists; its parent must exist. */
  makeFolder(path: string): Promise<void>
  /** Replaces a file in one step. */
  rename(from: string, to: string): Promise<void>
  /** A file, or a folder with all in it. No error if there is nothing. */
  remove(path: string): Promise<void>
}

/** After a power cut either the old content or the new one is there, once this has resolved the new one. */
export async function replaceOn(disk: UpdateDisk, folder: string, name: string, content: string): Promise<void> {
  const path = `${folder}/${name}`
  const aside = `${path}.new`
  await disk.write(aside, Buffer.from(content), 0o600)
  await disk.sync(aside)
  await disk.rename(aside, path)
  await disk.syncFolder(folder)
}

/** Copies a file or a folder with all in it; the copies are synced, and not the name `to`. Nothing is copied of what does not exist. */
export async function copyOn(disk: UpdateDisk, from: string, to: string): Promise<void> {
  const kind = await disk.kindOf(from)
  if (kind === 'file') {
    const content = await disk.read(from)
    if (content === undefined) return
    await disk.write(to, content, 0o600)
    await disk.sync(to)
  } else if (kind === 'folder') {
    await disk.makeFolder(to)
    for (const name of await disk.list(from)) await copyOn(disk, `${from}/${name}`, `${to}/${name}`)
    await disk.syncFolder(to)
  }
}
