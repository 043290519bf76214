/**
 * Files that containers write to: termination messages, and a pod's `/etc/hosts` and `/etc/resolv.conf`. They are in a small filesystem in memory: a
 * container that fills it leaves no space for other messages, but does not affect Secrets.
 */

import { constants } from 'node:fs'
import { chmod, type FileHandle, mkdir, open, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf } from '../../../daemon/errors.ts'

/** Two files of 4 KiB for each of a thousand containers. */
export const messageMemory = ['mode=0711', 'nosuid', 'nodev', 'noexec', 'size=8m']

/** Empty, and writable by any user of the container. Files of attempts before the last one are removed. */
export async function makeMessageFile(folder: string, attempt: number): Promise<string> {
  await mkdir(folder, { recursive: true, mode: 0o711 })
  const old = (await readdir(folder)).filter((name) => Number(name) < attempt - 1)
  for (const name of old) await rm(join(folder, name), { force: true })
  const path = join(folder, String(attempt))
  // An existing file is not replaced: it may still be mounted.
  await rm(path, { force: true })
  await writeFile(path, '', { flag: 'wx' })
  await chmod(path, 0o666)
  return path
}

/**
 * The file is beside the folders of the pod's containers; their names do not start with a dot. It is written in place: a mount of
 * a file refers to the inode, and does not see a renamed file. Writes only if the text changes.
 */
export async function writeEtcFile(folder: string, name: string, text: string): Promise<string> {
  await mkdir(folder, { recursive: true, mode: 0o711 })
  const path = join(folder, `.etc-${name}`)
  const before = await readFile(path, 'utf8').catch(() => undefined)
  if (before === text) return path
  const file = await open(path, constants.O_RDWR | constants.O_CREAT, 0o644)
  try {
    await replaceInPlace(file, Buffer.from(text))
    await file.chmod(0o644)
  } finally {
    await file.close()
  }
  return path
}

/**
 * The file is never empty or cut off, even if the agent is killed meanwhile or the memory is full: it first grows by empty lines,
 * then one write replaces all of it, and the remaining empty lines are cut off. The kernel completes a write within a page (4
 * KiB, more than most hosts files) once it has begun.
 */
async function replaceInPlace(file: FileHandle, next: Buffer): Promise<void> {
  const { size } = await file.stat()
  if (next.length > size) await writeAll(file, Buffer.alloc(next.length - size, '\n'), size)
  await writeAll(file, Buffer.concat([next, Buffer.alloc(Math.max(0, size - next.length), '\n')]), 0)
  await file.truncate(next.length)
}

async function writeAll(file: FileHandle, bytes: Buffer, position: number): Promise<void> {
  const { bytesWritten } = await file.write(bytes, 0, bytes.length, position)
  // The next write fails with the reason.
  if (bytesWritten < bytes.length) await writeAll(file, bytes.subarray(bytesWritten), position + bytesWritten)
}

/** The last bytes; empty if the file does not exist. */
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
    if (codeOf(error) === 'ENOENT') return Buffer.alloc(0)
    throw error
  }
}
