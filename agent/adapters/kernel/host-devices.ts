/** The devices that are declared in the configuration and connected now. */
import { readdir, realpath, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { DeclaredDevices, DevicePath } from '../../pods/containers/device-settings.ts'
import type { DeviceFile, MachineDevices } from '../../pods/containers/devices.ts'

/** In the order of the declaration, groups first: if several paths lead to one device, the first is used. */
export async function findDevices(declared: readonly DeclaredDevices[]): Promise<MachineDevices> {
  const found = declared.map(async ({ resource, groups, paths, shared }) => {
    const together = await Promise.all(groups.map(groupFiles))
    const single = (await Promise.all(paths.map(matches))).flat().map((file) => [file])
    const devices = [...together, ...single].filter((files) => files.length > 0)
    return [resource, devices.map((files) => ({ files, shared }))] as const
  })
  return new Map(await Promise.all(found))
}

/** The type and number of the device at this path, or of the one that a link there leads to; undefined: there is none. */
export async function deviceNumber(path: string): Promise<string | undefined> {
  const found = await stat(path).catch(() => undefined)
  if (found?.isCharacterDevice()) return `c${found.rdev}`
  return found?.isBlockDevice() ? `b${found.rdev}` : undefined
}

/** Empty unless each of its paths is there. */
async function groupFiles(group: readonly DevicePath[]): Promise<readonly DeviceFile[]> {
  const found = await Promise.all(group.map(matches))
  return found.every((files) => files.length > 0) ? found.flat() : []
}

async function matches({ pattern, target }: DevicePath): Promise<readonly DeviceFile[]> {
  const isPattern = /[*?]/.test(pattern)
  const names = isPattern ? await readdir(dirname(pattern)).catch(() => []) : [basename(pattern)]
  const fits = wildcard(basename(pattern))
  const paths = names.filter((name) => !isPattern || fits.test(name)).map((name) => join(dirname(pattern), name))
  return (await Promise.all(paths.sort().map((path) => deviceAt(path, target ?? path)))).flat()
}

/** A link is resolved here: it may lead to another device later, while the container still has this one. */
async function deviceAt(path: string, target: string): Promise<readonly DeviceFile[]> {
  const source = await realpath(path).catch(() => undefined)
  const number = source === undefined ? undefined : await deviceNumber(source)
  return source === undefined || number === undefined ? [] : [{ number, source, target }]
}

function wildcard(pattern: string): RegExp {
  const escaped = pattern.replace(/[.+^${}()|[\]\\]/g, '\\$&')
  return new RegExp(`^${escaped.replaceAll('*', '.*').replaceAll('?', '.')}$`)
}
