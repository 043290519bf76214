/** Files that a power cut leaves whole: either the old content or the new, never half of one. */
import { open, readdir, rename, unlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/** Writes aside, flushes, renames, flushes the folder. `mode` holds from the first byte on. */
export async function replaceFile(path: string, content: string | Uint8Array, mode = 0o600): Promise<void> {
  const aside = `${path}.${process.pid}.new`
  try {
    const file = await open(aside, 'w', mode)
    try {
      await file.writeFile(content)
      await file.chmod(mode)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(aside, path)
  } catch (cause) {
    await unlink(aside).catch(() => undefined)
    throw new Error(`Cannot write ${path}`, { cause })
  }
  await syncFolder(dirname(path))
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

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}
