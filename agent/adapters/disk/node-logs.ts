/**
 * The files below /var/log of the machine, as the kubelet serves them. Pods may write there through a hostPath, so no link is
 * followed, and only regular files are opened: a link could lead to any file of the machine, and a pipe would block the reader.
 */
import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf } from '../../../daemon/errors.ts'
import type { NodeLog } from '../http/endpoint-answers.ts'
import { entryOf, listEntries, openFolder } from './open-folders.ts'
import { remoteMountOn } from './remote/remote-mounts.ts'

const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants
/** A browser or a person does not read more. */
const mostEntries = 10_000

/** `path` below the folder; '' for the folder itself. undefined: there is none, or it is neither a file nor a folder. */
export function nodeLogs(root: string): (path: string) => Promise<NodeLog | undefined> {
  const logFolder = join(root, 'var/log')
  return async (path) => {
    const parts = path.split('/').filter((part) => part !== '')
    if (parts.some((part) => part === '..' || part === '.' || part.includes('\0'))) return undefined
    const mount = await remoteMountOn(join(logFolder, ...parts))
    if (mount !== undefined) {
      throw new Error(`/var/log/${parts.join('/')} is not read: ${mount.path} is a remote file system (${mount.type})`)
    }
    let folder = await openFolder(logFolder)
    try {
      for (const [i, part] of parts.entries()) {
        const entry = entryOf(folder, Buffer.from(part).toString('latin1'))
        const isLast = i === parts.length - 1
        const next = await openFolder(entry).catch((error) => {
          if (isLast && codeOf(error) === 'ENOTDIR') return undefined
          throw error
        })
        if (next === undefined) return await fileAt(entry)
        await folder.close()
        folder = next
      }
      return { kind: 'folder', names: await namesIn(folder) }
    } catch (error) {
      if (['ENOENT', 'ENOTDIR', 'ELOOP', 'ENXIO', 'ENAMETOOLONG'].includes(codeOf(error))) return undefined
      throw error
    } finally {
      await folder.close()
    }
  }
}

/** Names of folders end with a slash. */
async function namesIn(folder: FileHandle): Promise<readonly string[]> {
  const entries = await listEntries(folder, mostEntries)
  return entries.map(({ name, isFolder }) => `${Buffer.from(name, 'latin1')}${isFolder ? '/' : ''}`).sort()
}

/** As long as it is now: a log that grows while it is read would have no end. */
async function fileAt(entry: Buffer): Promise<NodeLog | undefined> {
  const file = await open(entry, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
  try {
    const found = await file.stat()
    if (found.isFile()) return { kind: 'file', bytes: found.size, pieces: piecesOf(file, found.size) }
  } catch (error) {
    await file.close()
    throw error
  }
  await file.close()
  return undefined
}

async function* piecesOf(file: FileHandle, bytes: number): AsyncGenerator<Uint8Array> {
  try {
    for (let left = bytes; left > 0; ) {
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(Math.min(left, 64 * 1024)), 0, null, null)
      if (bytesRead === 0) return
      left -= bytesRead
      yield buffer.subarray(0, bytesRead)
    }
  } finally {
    await file.close()
  }
}
