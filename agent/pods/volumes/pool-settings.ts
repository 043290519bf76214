/** `pools` of the agent's configuration: where this machine has pools for volumes. */
import { quantityToNumber, tryParseQuantity } from '../../../api/quantity.ts'
import { bool, type Described, numberOrText, object, optional, text } from '../../../api/schema.ts'
import { mostPools, poolNameProblem } from '../../../api/storage/pools.ts'

export const PoolSettingsSchema = object({
  name: text,
  /** An existing folder. */
  path: optional(text),
  /** The UUID of a file system, which the agent mounts. */
  disk: optional(text),
  reserve: optional(numberOrText),
  default: optional(bool),
})

/** What of a pool must stay free, in bytes or percent. */
export type PoolReserve = { readonly bytes: number } | { readonly percent: number }

export type PoolPlace = { readonly path: string } | { readonly disk: string }

export type ConfiguredPool = {
  readonly name: string
  readonly place: PoolPlace
  /** undefined: the usual one. */
  readonly reserve: PoolReserve | undefined
  readonly isDefault: boolean
}

const longestPath = 512
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** Adds what is wrong to `problems`, each with its field. Without `default` the first pool is the default one. */
export function configuredPools(
  written: readonly Described<typeof PoolSettingsSchema>[],
  problems: string[],
): readonly ConfiguredPool[] {
  const defaults = written.filter(({ default: isDefault }) => isDefault)
  // One is left for the pool of the data directory.
  if (written.length >= mostPools) problems.push(`pools: at most ${mostPools - 1} are possible`)
  if (defaults.length > 1)
    problems.push(`pools: ${defaults.map(({ name }) => name).join(', ')} are all the default; only one may be`)
  const pools = written.map(({ name, reserve, ...one }, index) => {
    const where = `pools[${index}]`
    const because = poolNameProblem(name)
    if (because !== undefined) problems.push(`${where}.name: ${JSON.stringify(name)} ${because}`)
    return {
      name,
      place: placeOf(where, one, problems),
      reserve: reserve === undefined ? undefined : reserveOf(`${where}.reserve`, reserve, problems),
      isDefault: defaults.length === 0 ? index === 0 : one.default === true,
    }
  })
  for (const [index, one] of pools.entries()) {
    for (const other of pools.slice(0, index)) {
      const where = `pools[${index}]`
      if (one.name === other.name) problems.push(`${where}.name: ${one.name} is set twice`)
      if (areOneInTheOther(one.place, other.place))
        problems.push(`${where}: ${one.name} is at the place of ${other.name}, or one is in the other`)
    }
  }
  return pools
}

function placeOf(
  where: string,
  { path, disk }: { readonly path?: string; readonly disk?: string },
  problems: string[],
): PoolPlace {
  if ((path === undefined) === (disk === undefined)) {
    problems.push(`${where}: give either path, a folder, or disk, the UUID of a file system`)
  } else if (disk !== undefined && !uuid.test(disk)) {
    problems.push(`${where}.disk: ${JSON.stringify(disk)} must be the UUID of a file system ('lsblk -f' prints it)`)
  } else if (path !== undefined && !isFolderPath(path)) {
    problems.push(`${where}.path: ${JSON.stringify(path)} must be an absolute path of a folder, without . and ..`)
  }
  return disk === undefined ? { path: withoutSlash(path ?? '/') } : { disk: disk.toLowerCase() }
}

function isFolderPath(path: string): boolean {
  const parts = withoutSlash(path).split('/').slice(1)
  const isPlain = parts.every((part) => !['', '.', '..'].includes(part))
  return path.startsWith('/') && path !== '/' && path.length <= longestPath && isPlain && !path.includes('\0')
}

function withoutSlash(path: string): string {
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path
}

function areOneInTheOther(one: PoolPlace, other: PoolPlace): boolean {
  if ('disk' in one || 'disk' in other) return 'disk' in one && 'disk' in other && one.disk === other.disk
  const [a, b] = [`${one.path}/`, `${other.path}/`]
  return a.startsWith(b) || b.startsWith(a)
}

function reserveOf(where: string, written: string | number, problems: string[]): PoolReserve | undefined {
  const [, percent] = /^(\d{1,2}(?:\.\d+)?)%$/.exec(String(written)) ?? []
  if (percent !== undefined) return { percent: Number(percent) }
  const amount = tryParseQuantity(written)
  const bytes = amount === undefined ? Number.NaN : quantityToNumber(amount)
  if (bytes >= 0 && Number.isSafeInteger(Math.ceil(bytes))) return { bytes: Math.ceil(bytes) }
  problems.push(`${where}: ${JSON.stringify(written)} must be a percentage below 100% or a quantity (like 5% or 10Gi)`)
  return undefined
}

const gibibyte = 2 ** 30

/** Without a setting 5 %, and at least 1 GiB; of a small disk a fifth. */
export function keptFreeBytes(reserve: PoolReserve | undefined, capacityBytes: number): number {
  if (reserve === undefined) return Math.min(Math.max(capacityBytes / 20, gibibyte), capacityBytes / 5)
  return 'bytes' in reserve ? reserve.bytes : (capacityBytes * reserve.percent) / 100
}
