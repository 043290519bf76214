/** Lists, adds and removes mounts. Node.js has no such calls, so mount(8) and umount(8) are run. */
import { readFile } from 'node:fs/promises'
import { messageOf } from '../../../daemon/errors.ts'
import { deviceFileSystems } from '../../pods/volumes/device-format.ts'
import { VolumeError } from '../../pods/volumes/volume-store.ts'
import { unescapedPath } from '../kernel/kernel-files.ts'
import { runBounded } from './remote/bounded-child.ts'

const deadlineMs = 10_000

export type MountPoint = {
  readonly path: string
  readonly type: string
  /** Device, or server and path. */
  readonly source: string
}

/** What of a file system is mounted: two mounts of one folder have the same. */
export type MountedFolder = {
  /** As `major:minor`. */
  readonly device: string
  /** The folder in the file system. */
  readonly root: string
}

/** The mounts of this process, in the order of their creation. */
export async function mountPoints(): Promise<readonly (MountPoint & MountedFolder)[]> {
  const lines = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n')
  return lines.flatMap((line) => {
    const [before = '', after = ''] = line.split(' - ')
    const [, , device = '', root = '', path] = before.split(' ')
    const [type = '', source = ''] = after.split(' ')
    if (path === undefined) return []
    return [{ path: unescapedPath(path), type, source: unescapedPath(source), device, root: unescapedPath(root) }]
  })
}

/** The folder itself if it is a mount, and the mounts below it. */
export function mountsAt(points: readonly MountPoint[], folder: string): readonly MountPoint[] {
  return points.filter(({ path }) => path === folder || path.startsWith(`${folder}/`))
}

export async function mountMemory(path: string, options: readonly string[]): Promise<void> {
  await act(['mount', '-t', 'tmpfs', '-o', options.join(','), 'bramble', path], `Cannot mount memory at ${path}`)
}

/** A disk with data: nothing on it makes a device or raises rights, and a read writes nothing. */
export const diskOptions = 'nosuid,nodev,noatime'

/** By the UUID of its file system, which mount(8) finds among the devices. */
export async function mountDisk(uuid: string, path: string): Promise<void> {
  const types = deviceFileSystems.join(',')
  const command = ['mount', '--types', types, '--options', diskOptions, '--uuid', uuid, path]
  await act(command, `Cannot mount the disk with the UUID ${uuid} at ${path}`)
}

/**
 * Links in `source` are resolved by the kernel. What is mounted below the source appears below `path`, too, but an unmount there does not
 * reach the source: without `slave` it would take away what the owner of the machine has mounted in the folder.
 */
export async function mountBind(source: string, path: string): Promise<void> {
  const command = ['mount', '--no-canonicalize', '--bind', '--make-slave', source, path]
  await act(command, `Cannot mount a part of a volume at ${path}`)
}

/** As above, by descriptors: `folder` leads to the folder that is mounted on, `name` to its name in the folder above. */
export async function mountBindAt(
  source: string,
  path: string,
  { folder, name }: { readonly folder: string; readonly name: string },
): Promise<void> {
  const tried = `Cannot mount a volume at ${path}`
  await act(['mount', '--no-canonicalize', '--bind', source, folder], tried, path)
  await act(['mount', '--no-canonicalize', '--make-slave', name], tried, path)
}

/** A lazy unmount: a mount in use is removed after its last use. `link`: leads to `path`, by descriptors. */
export async function unmount(path: string, link = path): Promise<void> {
  await act(['umount', '--lazy', '--no-canonicalize', link], `Cannot unmount ${path}`, path)
}

/** Not awaited beyond its deadline: an unmount of a network file system can outlast SIGKILL. One at a time for each path. */
async function act(command: readonly string[], tried: string, path = command.at(-1)): Promise<void> {
  const key = `${command[0]} ${path}`
  const { code, stderr } = await runBounded({ key, command, deadlineMs }).catch((cause: unknown) => {
    throw new VolumeError(`${tried}: ${messageOf(cause)}`, { cause })
  })
  if (code !== 0) throw new VolumeError(`${tried}: ${stderr.trim() || `${command[0]} ended with status ${code}`}`)
}
