/**
 * Files for what containers leave to be read after their end. In memory, and in little of it: whoever fills it takes the
 * others' words, not their secrets' place.
 */
import { chmod, mkdir, open, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Two of 4 KiB for each of a thousand containers. */
export const messageMemory = ['mode=0711', 'nosuid', 'nodev', 'noexec', 'size=8m']

/** Empty, and writable by whoever the container runs as. Those before the last one go. */
export async function makeMessageFile(folder: string, attempt: number): Promise<string> {
  await mkdir(folder, { recursive: true, mode: 0o711 })
  const old = (await readdir(folder)).filter((name) => Number(name) < attempt - 1)
  for (const name of old) await rm(join(folder, name), { force: true })
  const path = join(folder, String(attempt))
  // Not over one that is there: it may be mounted still.
  await rm(path, { force: true })
  await writeFile(path, '', { flag: 'wx' })
  await chmod(path, 0o666)
  return path
}

/** The last bytes; none when it is not there. */
export async function readMessageFile(path: string, most: number): Promise<Buffer> {
  try {
    const file = await open(path, 'r')
    try {
      const { size } = await file.stat()
      const length = Math.min(size, most)
      const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, size - length)
      return buffer.subarray(0, bytesRead)
    } finally {
      await file.close()
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return Buffer.alloc(0)
    throw error
  }
}
