/** Block I/O and CPU limits of a control group, of version 1 or 2. Reads are synchronous: the kernel answers from memory. */
import { join } from 'node:path'
import type { CpuLimitReading, IoReading } from '../../usage/usage.ts'
import type { GroupFolders } from './cgroup-files.ts'
import { textOf } from './kernel-files.ts'

/** `179:0` → `mmcblk0`, of /proc/diskstats below `root`. */
export function deviceNames(root: string): ReadonlyMap<string, string> {
  const lines = [...(textOf(join(root, 'proc/diskstats')) ?? '').matchAll(/^ *(\d+) +(\d+) +(\S+)/gm)]
  return new Map(lines.map(([, major = '', minor = '', name = '']) => [`${major}:${minor}`, name]))
}

/**
 * Reading of each device that the group read or wrote. A number that the kernel does not have is 0: it counts from the
 * first use.
 */
export function readIo(
  { second, blkio }: Pick<GroupFolders, 'second' | 'blkio'>,
  names: ReadonlyMap<string, string>,
): readonly IoReading[] {
  const device = (number: string) => `/dev/${names.get(number) ?? number}`
  if (blkio !== undefined) {
    const bytes = columnsOf(textOf(join(blkio, 'blkio.throttle.io_service_bytes')))
    const operations = columnsOf(textOf(join(blkio, 'blkio.throttle.io_serviced')))
    return [...bytes].map(([number, of]) => ({
      device: device(number),
      readBytes: of.get('Read') ?? 0,
      writtenBytes: of.get('Write') ?? 0,
      reads: operations.get(number)?.get('Read') ?? 0,
      writes: operations.get(number)?.get('Write') ?? 0,
    }))
  }
  const stat = second === undefined ? undefined : textOf(join(second, 'io.stat'))
  return [...(stat ?? '').matchAll(/^(\d+:\d+) (.*)$/gm)].map(([, number = '', fields = '']) => {
    const of = new Map([...fields.matchAll(/\b(\w+)=(\d+)/g)].map(([, key = '', value]) => [key, Number(value)]))
    return {
      device: device(number),
      readBytes: of.get('rbytes') ?? 0,
      writtenBytes: of.get('wbytes') ?? 0,
      reads: of.get('rios') ?? 0,
      writes: of.get('wios') ?? 0,
    }
  })
}

/** `179:0 Read 4096` → by device, by operation. */
function columnsOf(text: string | undefined): ReadonlyMap<string, ReadonlyMap<string, number>> {
  const found = new Map<string, Map<string, number>>()
  for (const [, number = '', operation = '', value] of (text ?? '').matchAll(/^(\d+:\d+) (Read|Write) (\d+)$/gm)) {
    const of = found.get(number) ?? new Map<string, number>()
    found.set(number, of.set(operation, Number(value)))
  }
  return found
}

/** Undefined if the kernel has no CPU controller for the group. */
export function readCpuLimit({ second, cpu }: Pick<GroupFolders, 'second' | 'cpu'>): CpuLimitReading | undefined {
  if (cpu !== undefined) {
    const shares = numberIn(cpu, 'cpu.shares')
    const quota = numberIn(cpu, 'cpu.cfs_quota_us')
    const period = numberIn(cpu, 'cpu.cfs_period_us')
    return shares === undefined ? undefined : { shares, ...limit(quota, period) }
  }
  const weight = second === undefined ? undefined : numberIn(second, 'cpu.weight')
  if (second === undefined || weight === undefined) return undefined
  const [quota, period] = (textOf(join(second, 'cpu.max')) ?? '').trim().split(' ').map(Number)
  return { shares: sharesOf(weight), ...limit(quota, period) }
}

/** The reverse of runc's conversion (opencontainers/cgroups, ConvertCPUSharesToCgroupV2Value). */
function sharesOf(weight: number): number {
  return Math.round(2 + ((weight - 1) * 262_142) / 9_999)
}

/** Without a limit the quota is -1, or `max`. */
function limit(quotaMicros: number | undefined, periodMicros: number | undefined): Omit<CpuLimitReading, 'shares'> {
  if (periodMicros === undefined || !Number.isFinite(periodMicros)) return {}
  const hasQuota = quotaMicros !== undefined && Number.isFinite(quotaMicros) && quotaMicros > 0
  return { periodMicros, ...(hasQuota && { quotaMicros }) }
}

function numberIn(folder: string, file: string): number | undefined {
  const text = textOf(join(folder, file))?.trim()
  return text === undefined || text === '' || !Number.isFinite(Number(text)) ? undefined : Number(text)
}
