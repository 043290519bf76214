/** What a volume of this machine must be: its kind is checked, and it is made where its type allows that. */
import type { Stats } from 'node:fs'
import { mkdir, stat as statOf, writeFile } from 'node:fs/promises'
import { VolumeError } from '../../../pods/volumes/volume-store.ts'
import type { RemoteFiles } from '../remote/remote-files.ts'
import { remoteMountOn } from '../remote/remote-mounts.ts'

type HostFiles = {
  /** As `stat --format=%F` prints it; undefined: it does not exist. */
  kind(): Promise<string | undefined>
  makeFolder(): Promise<unknown>
  makeFile(): Promise<unknown>
}

/** On a remote mount that does not answer, its methods reject in time, and no call is left in this process. */
async function hostFiles(path: string, remote: RemoteFiles): Promise<HostFiles> {
  const mount = await remoteMountOn(path)
  if (mount === undefined) {
    return {
      kind: async () => kindOf(await statOf(path).catch(() => undefined)),
      makeFolder: () => mkdir(path, { recursive: true, mode: 0o755 }),
      makeFile: () => writeFile(path, '', { mode: 0o644, flag: 'a' }),
    }
  }
  return {
    kind: () => remote.kindOf(mount, path),
    makeFolder: () => remote.makeFolder(mount, path),
    makeFile: () => remote.makeFile(mount, path),
  }
}

function kindOf(found: Stats | undefined): string | undefined {
  if (found === undefined) return undefined
  if (found.isDirectory()) return 'directory'
  if (found.isFile()) return 'regular file'
  if (found.isSocket()) return 'socket'
  if (found.isCharacterDevice()) return 'character special file'
  return found.isBlockDevice() ? 'block special file' : 'other'
}

const kinds: { readonly [type: string]: { readonly is: RegExp; readonly called: string } } = {
  Directory: { is: /^directory$/, called: 'directory' },
  DirectoryOrCreate: { is: /^directory$/, called: 'directory' },
  File: { is: /^regular (empty )?file$/, called: 'file' },
  FileOrCreate: { is: /^regular (empty )?file$/, called: 'file' },
  Socket: { is: /^socket$/, called: 'socket file' },
  CharDevice: { is: /^character special file$/, called: 'character device' },
  BlockDevice: { is: /^block special file$/, called: 'block device' },
}

/** By the type of a hostPath. */
export async function checkHostPath(path: string, type: string, remote: RemoteFiles): Promise<void> {
  refuseSteps(path)
  const files = await hostFiles(path, remote)
  let found = await files.kind()
  if (found === undefined) {
    if (type === '' || type === 'DirectoryOrCreate') await files.makeFolder()
    else if (type === 'FileOrCreate') await files.makeFile()
    if (type !== '') found = await files.kind()
  }
  const kind = kinds[type]
  if (type === '') return
  if (kind === undefined || found === undefined || !kind.is.test(found)) {
    throw new VolumeError(`hostPath type check failed: ${path} is not a ${kind?.called ?? type}`)
  }
}

/** A local volume is a folder, or a device with a file system. It must exist: an empty folder in the place of a disk that is missing would look like lost data. */
export async function checkLocalPath(path: string, remote: RemoteFiles): Promise<'directory' | 'device'> {
  refuseSteps(path)
  const step = 'MountVolume.NewMounter initialization failed'
  const found = await (await hostFiles(path, remote)).kind()
  if (found === undefined) throw new VolumeError(`path ${JSON.stringify(path)} does not exist`, { step })
  if (found === 'directory') return 'directory'
  if (found === 'block special file') return 'device'
  throw new VolumeError(`path ${JSON.stringify(path)} is not a directory, but a ${found}`, { step })
}

/** Throws VolumeError where a local volume that was a folder before is a device now. `kind`: of `checkLocalPath`. */
export function refuseDevice(path: string, kind: 'directory' | 'device'): void {
  if (kind === 'directory') return
  const step = 'MountVolume.NewMounter initialization failed'
  throw new VolumeError(`path ${JSON.stringify(path)} is not a directory, but a block special file`, { step })
}

/** A local volume with the mode Block: containers have the device itself. Devices are never on a remote mount that could hang. */
export async function checkLocalDevice(path: string): Promise<void> {
  refuseSteps(path)
  const step = 'MapVolume.MapPodDevice failed'
  const found = (await remoteMountOn(path))
    ? 'folder on network storage'
    : kindOf(await statOf(path).catch(() => undefined))
  if (found === undefined) throw new VolumeError(`path ${JSON.stringify(path)} does not exist`, { step })
  if (found !== 'block special file')
    throw new VolumeError(`path ${JSON.stringify(path)} is not a block device, but a ${found}`, { step })
}

function refuseSteps(path: string): void {
  if (!path.startsWith('/') || path.split('/').includes('..')) throw new VolumeError(`${path} is not an absolute path`)
}
