/**
 * Files that containers write to: what they leave to be read after their end, and a pod's `/etc/hosts`. In memory, and in
 * little of it: a container that fills it leaves no room for others' messages, but takes none from Secrets.
 */
import { chmod, mkdir, open, readdir, readFile, rm, writeFile } from 'node:fs/promises'
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

/**
 * Beside the folders of the pod's containers, whose names have no dot in front. Written in place: a mount of a file is of that file.
 * Not written when nothing changes, so that a full memory empties no file that is in use.
 */
export async function writeHostsFile(folder: string, text: string): Promise<string> {
  await mkdir(folder, { recursive: true, mode: 0o711 })
  const path = join(folder, '.etc-hosts')
  const before = await readFile(path, 'utf8').catch(() => undefined)
  if (before === text) return path
  await writeFile(path, text)
  await chmod(path, 0o644)
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
