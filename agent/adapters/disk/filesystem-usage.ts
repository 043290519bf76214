/** The usage of filesystems. One that does not answer is not read again until it does, because each call holds a thread or a process. */
import { statfs } from 'node:fs/promises'
import { onceAtATime, within } from '../../../daemon/deadline.ts'
import type { FilesystemReading } from '../../usage/usage.ts'
import { remoteFiles, type Space } from './remote/remote-files.ts'
import { remoteMountOn } from './remote/remote-mounts.ts'

/** Usage of the filesystem of `path`; undefined if it cannot be read in time. */
export type FilesystemUsage = (path: string) => Promise<FilesystemReading | undefined>

const deadlineMs = 2_000

export function filesystemUsage(statfsOf: (path: string) => Promise<Space> = spaceOf()): FilesystemUsage {
  const ask = onceAtATime(statfsOf)
  return async (path) => {
    try {
      const stats = await within(deadlineMs, `No answer from the filesystem of ${path}`, ask(path))
      return {
        capacityBytes: stats.blocks * stats.bsize,
        availableBytes: stats.bavail * stats.bsize,
        usedBytes: (stats.blocks - stats.bfree) * stats.bsize,
        inodes: stats.files,
        inodesFree: stats.ffree,
      }
    } catch {
      return undefined
    }
  }
}

/** A process reads the usage of a remote mount, such as NTFS through FUSE: a thread that the mount holds could not be ended. */
function spaceOf(): (path: string) => Promise<Space> {
  const remote = remoteFiles(deadlineMs)
  return async (path) => {
    const mount = await remoteMountOn(path)
    return mount === undefined ? await statfs(path) : await remote.space(mount, path)
  }
}
