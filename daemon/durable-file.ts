/** Files that a power cut leaves whole: either the old content or the new, never half of one. */
import { mkdir, open, readdir, rename, rm, unlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { codeOf } from './errors.ts'

/**
 * Writes aside, flushes, renames, flushes the folder. `mode` holds from the first byte on. `owner`: to whom the file is given, by its
 * descriptor. Links that others put into the folder are replaced and not followed: it may belong to a user with fewer rights.
 */
export async function replaceFile(
  path: string,
  content: string | Uint8Array,
  mode = 0o600,
  owner?: { readonly uid: number; readonly gid: number },
): Promise<void> {
  await replaceUnsynced(path, content, mode, owner)
  await syncFolder(dirname(path))
}

/** As `replaceFile` for each of these in one folder, which is flushed once. After a power cut before it has resolved, some may be there. */
export async function replaceFilesIn(
  folder: string,
  files: Iterable<readonly [name: string, content: string]>,
): Promise<void> {
  for (const [name, content] of files) await replaceUnsynced(join(folder, name), content, 0o600)
  await syncFolder(folder)
}

/** Makes the folder, for its owner only, if it is not there. */
export async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700 })
  } catch (cause) {
    if (codeOf(cause) === 'EEXIST') return
    throw new Error(`Cannot write ${path}`, { cause })
  }
  await syncFolder(dirname(path))
}

/** The rename may be lost with the power. The content is not half: it is flushed before. */
async function replaceUnsynced(
  path: string,
  content: string | Uint8Array,
  mode: number,
  owner?: { readonly uid: number; readonly gid: number },
): Promise<void> {
  const aside = `${path}.${process.pid}.new`
  try {
    await rm(aside, { force: true })
    const file = await open(aside, 'wx', mode)
    try {
      await file.writeFile(content)
      await file.chmod(mode)
      if (owner !== undefined) await file.chown(owner.uid, owner.gid)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(aside, path)
  } catch (cause) {
    await unlink(aside).catch(() => undefined)
    throw new Error(`Cannot write ${path}`, { cause })
  }
}

/**
 * What a power cut left of unfinished writes in this folder, databases with what SQLite puts beside them. For its only
 * user, before it writes there.
 */
export async function removeUnfinished(folder: string): Promise<void> {
  const names = await readdir(folder).catch((): string[] => [])
  for (const name of names.filter((one) => /\.\d+\.new(-journal|-wal|-shm)?$/.test(one))) {
    await unlink(join(folder, name)).catch(() => undefined)
  }
}

/** Names in this folder that were changed stay so when the power is cut. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}
