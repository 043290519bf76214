/** The disk of this machine, for updates. */
import { constants } from 'node:fs'
import { chmod, lstat, mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises'
import { syncFolder } from '../durable-file.ts'
import { codeOf, isMissing } from '../errors.ts'
import type { UpdateDisk } from './update-disk.ts'

/** Its folders are for their owner only. */
export const fileDisk = diskWith(0o700)
/** The program runs as another user than the one that installs it. */
export const readableDisk = diskWith(0o755)

function diskWith(folderMode: number): UpdateDisk {
  return {
    read: (path) => readFile(path).catch(undefinedIfMissing),
    async readPart(path, from, most) {
      const file = await open(path, 'r')
      try {
        const bytes = Buffer.alloc(most)
        const { bytesRead } = await file.read(bytes, 0, most, from)
        return bytes.subarray(0, bytesRead)
      } finally {
        await file.close()
      }
    },
    async fileOf(path) {
      const found = await lstat(path).catch(undefinedIfMissing)
      return found?.isFile() ? { size: found.size, isProgram: (found.mode & 0o100) !== 0 } : undefined
    },
    async kindOf(path) {
      const found = await lstat(path).catch(undefinedIfMissing)
      return found?.isFile() ? 'file' : found?.isDirectory() ? 'folder' : undefined
    },
    list: async (folder) => (await readdir(folder).catch(undefinedIfMissing)) ?? [],
    async write(path, content, mode) {
      const file = await open(path, 'w', mode)
      try {
        await file.writeFile(content)
        await file.chmod(mode)
      } finally {
        await file.close()
      }
    },
    async append(path, content) {
      const file = await open(path, constants.O_WRONLY | constants.O_APPEND)
      try {
        await file.writeFile(content)
      } finally {
        await file.close()
      }
    },
    async sync(path) {
      const file = await open(path, 'r')
      try {
        await file.sync()
      } finally {
        await file.close()
      }
    },
    syncFolder,
    async makeFolder(path) {
      try {
        await mkdir(path, { mode: folderMode })
        await chmod(path, folderMode)
      } catch (error) {
        if (codeOf(error) !== 'EEXIST') throw error
      }
    },
    rename,
    remove: (path) => rm(path, { recursive: true, force: true }),
  }
}

function undefinedIfMissing(error: unknown): undefined {
  if (!isMissing(error)) throw error
}
