/**
 * The calls to file systems that pools make: for what people lose if it is wrong, the simulator has a disk of its own, which loses what was not
 * flushed when its power is cut.
 */
import { randomUUID } from 'node:crypto'
import { chmod, lstat, mkdir, mkdtemp, readdir, readFile, rename, rm, rmdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { makeFolder, replaceFile, syncFolder } from '../../../../daemon/durable-file.ts'
import { removeFolder } from '../folder-removal.ts'
import { type RemoteFiles, remoteFiles } from '../remote/remote-files.ts'
import { remoteMountOn } from '../remote/remote-mounts.ts'
import { checkLocalPath } from './host-files.ts'

/** Each call rejects with the error of the system, which has its code: ENOENT where nothing is there. */
export interface PoolFiles {
  read(path: string): Promise<string>
  /** The names of what is in the folder. */
  names(path: string): Promise<readonly string[]>
  /** About the thing itself: a link is not followed. `dev`: the file system that it is on. */
  found(path: string): Promise<{ readonly isFolder: boolean; readonly dev: number }>
  /** In its folder, with the old content or the new, also after a power cut. */
  replace(path: string, text: string): Promise<void>
  /** In place of an earlier one, with the folders above it. A power cut may lose it. */
  writeAside(path: string, text: string): Promise<void>
  /** For its owner only, unless it is there. It stays. */
  makeFolder(path: string): Promise<void>
  /** A new one in this folder, whose name begins so, with its mode from the first moment that others may find it. */
  freshFolder(folder: string, prefix: string, mode: number): Promise<string>
  rename(from: string, to: string): Promise<void>
  /** What was renamed, made and removed in this folder stays so when the power is cut. */
  sync(folder: string): Promise<void>
  /** Does nothing where it is not there. */
  removeFile(path: string): Promise<void>
  removeEmptyFolder(path: string): Promise<void>
  /** With all that is in it. Does nothing where it is not there. Rejects when `signal` aborts: that may take long. */
  removeFolder(path: string, signal?: AbortSignal): Promise<void>
  /** The type of the remote file system that the path is on, which may not answer; undefined: it is on none. */
  remoteType(path: string): Promise<string | undefined>
  /** What is at the path of a local volume. Throws VolumeError where it is neither. */
  checkLocalPath(path: string): Promise<'directory' | 'device'>
  newID(): string
}

/** Those of this machine. */
export function poolFilesOfMachine(remote: RemoteFiles = remoteFiles()): PoolFiles {
  return {
    read: (path) => readFile(path, 'utf8'),
    names: (path) => readdir(path),
    async found(path) {
      const found = await lstat(path)
      return { isFolder: found.isDirectory(), dev: found.dev }
    },
    replace: (path, text) => replaceFile(path, text),
    async writeAside(path, text) {
      const [folder, name] = [dirname(path), path.slice(path.lastIndexOf('/') + 1)]
      await mkdir(folder, { recursive: true, mode: 0o700 })
      // Names of volumes do not begin with a dot.
      await writeFile(join(folder, `.${name}`), text)
      await rename(join(folder, `.${name}`), path)
    },
    makeFolder,
    async freshFolder(folder, prefix, mode) {
      const fresh = await mkdtemp(join(folder, prefix))
      await chmod(fresh, mode)
      return fresh
    },
    rename,
    sync: syncFolder,
    removeFile: (path) => rm(path, { force: true }),
    removeEmptyFolder: (path) => rmdir(path),
    removeFolder,
    remoteType: async (path) => (await remoteMountOn(path))?.type,
    checkLocalPath: (path) => checkLocalPath(path, remote),
    newID: () => randomUUID(),
  }
}
