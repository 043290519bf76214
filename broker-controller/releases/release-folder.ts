/** The releases of the agent that this controller serves: a folder of its data directory, with one for each release. */
import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import type { ReleaseFile } from '../../api/node/release-paths.ts'
import { codeOf } from '../../daemon/errors.ts'

/** Named after the SHA-256 of its release.json: what is in it never changes. */
export function releaseFolder(dataDir: string, digest = ''): string {
  return join(dataDir, 'releases', digest)
}

/** Reads the files of these folders. Links are not followed. */
export function storedReleases(dataDir: string) {
  return {
    async read({ digest, file }: ReleaseFile, from: number, most: number) {
      const opened = await openedFile(join(releaseFolder(dataDir, digest), file))
      if (opened === undefined) return undefined
      try {
        const found = await opened.stat()
        if (!found.isFile()) return undefined
        const bytes = Buffer.alloc(Math.max(0, Math.min(most, found.size - from)))
        const { bytesRead } = await opened.read(bytes, 0, bytes.length, from)
        return { size: found.size, bytes: bytes.subarray(0, bytesRead) }
      } finally {
        await opened.close()
      }
    },
  }
}

/** Undefined: there is no such file. */
async function openedFile(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'ELOOP'].includes(codeOf(error) ?? '')) return undefined
    throw error
  }
}
