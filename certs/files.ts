/** Writing keys and certificates so that a crash leaves either nothing or the whole of it. */
import { randomBytes } from 'node:crypto'
import { link, open, readFile, rename, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { syncFolder } from '../daemon/durable-file.ts'

/** Undefined when there is no such file. */
export async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'ENOENT') return undefined
    throw new Error(`Cannot read ${path}`, { cause })
  }
}

/**
 * Writes the file unless there is one. Of several callers at one moment, exactly one gets true; the file is never
 * seen half written.
 */
export async function createOnce(path: string, content: string, mode: number): Promise<boolean> {
  return writeAside(path, content, mode, async (aside) => {
    try {
      await link(aside, path)
      return true
    } catch (cause) {
      if (cause instanceof Error && 'code' in cause && cause.code === 'EEXIST') return false
      throw cause
    } finally {
      await unlink(aside)
    }
  })
}

/** Writes the file, and replaces an existing one. */
export async function replaceWhole(path: string, content: string, mode: number): Promise<void> {
  await writeAside(path, content, mode, (aside) => rename(aside, path))
}

async function writeAside<T>(
  path: string,
  content: string,
  mode: number,
  place: (aside: string) => Promise<T>,
): Promise<T> {
  const aside = `${path}.${randomBytes(6).toString('hex')}.new`
  try {
    const file = await open(aside, 'wx', mode)
    try {
      await file.writeFile(content)
      await file.chmod(mode)
      await file.sync()
    } finally {
      await file.close()
    }
    const placed = await place(aside)
    await syncFolder(dirname(path))
    return placed
  } catch (cause) {
    await unlink(aside).catch(() => undefined)
    throw new Error(`Cannot write ${path}`, { cause })
  }
}
