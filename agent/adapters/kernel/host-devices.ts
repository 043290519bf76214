/** The devices that are declared in the configuration and connected now. */
import { readdir, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { MachineDevices } from '../../pods/containers/devices.ts'

export type DeclaredDevices = {
  readonly resource: string
  /** Paths; `*` and `?` are allowed in the last part. */
  readonly paths: readonly string[]
}

export async function findDevices(declared: readonly DeclaredDevices[]): Promise<MachineDevices> {
  const found = declared.map(async ({ resource, paths }) => {
    const matching = (await Promise.all(paths.map(matches))).flat()
    return [resource, [...new Set(matching)].sort()] as const
  })
  return new Map(await Promise.all(found))
}

async function matches(pattern: string): Promise<readonly string[]> {
  const isPattern = /[*?]/.test(pattern)
  const names = isPattern ? await readdir(dirname(pattern)).catch(() => []) : [basename(pattern)]
  const fits = wildcard(basename(pattern))
  const paths = names.filter((name) => !isPattern || fits.test(name)).map((name) => join(dirname(pattern), name))
  const devices = await Promise.all(paths.map(isDevice))
  return paths.filter((_, index) => devices[index])
}

function wildcard(pattern: string): RegExp {
  const escaped = pattern.replace(/[.+^${}()|[\]\\]/g, '\\$&')
  return new RegExp(`^${escaped.replaceAll('*', '.*').replaceAll('?', '.')}$`)
}

async function isDevice(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined)
  return found !== undefined && (found.isCharacterDevice() || found.isBlockDevice())
}
