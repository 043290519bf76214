/**
 * Reads control groups: version 1, version 2, or both (hybrid). The folder of each controller is in the entry of the process.
 * Reads are synchronous, because the kernel answers them from memory.
 */
import { join } from 'node:path'
import type { CpuReading, GroupReading, MemoryReading } from '../../usage/usage.ts'
import { textOf } from './kernel-files.ts'

/** The folder of each controller. `second`: the folder of version 2, as the only version or beside version 1. */
export type GroupFolders = {
  readonly memory?: string
  readonly cpuacct?: string
  readonly cpu?: string
  readonly pids?: string
  /** Version 1 only: in version 2 block I/O is counted in the same folder. */
  readonly blkio?: string
  readonly second?: string
}

/**
 * The control group of this container, by its process; if the process cannot be read, by the default paths of both cgroup drivers
 * of Docker. Undefined: the container is gone, or the PID belongs to another process.
 */
export function groupFolders(root: string, { id, pid }: { id: string; pid: number }): GroupFolders | undefined {
  const entries = textOf(join(root, `proc/${pid}/cgroup`))
  if (entries === undefined) return groupAtUsualPlace(root, id)
  const at = new Map<string, string>()
  for (const line of entries.split('\n')) {
    const [, controllers, ...path] = line.split(':')
    const place = upTo(id, path.join(':'))
    if (controllers === undefined || place === undefined) continue
    for (const controller of controllers.split(',')) at.set(controller, place)
  }
  return foldersIn(root, (controller) => at.get(controller))
}

/** A control group by its path, which is the same in every hierarchy: `/` is the machine itself. */
export function groupFoldersAt(root: string, path: string): GroupFolders | undefined {
  return foldersIn(root, () => path)
}

const usualPlaces = (id: string) => [`/docker/${id}`, `/system.slice/docker-${id}.scope`]

function groupAtUsualPlace(root: string, id: string): GroupFolders | undefined {
  for (const place of usualPlaces(id)) {
    const folders = groupFoldersAt(root, place)
    if (folders !== undefined) return folders
  }
  return undefined
}

/** A container with its own init may be in a group below the assigned one: the whole group counts. */
function upTo(id: string, path: string): string | undefined {
  const parts = path.split('/')
  const own = parts.findIndex((part) => part.includes(id))
  return own < 0 ? undefined : parts.slice(0, own + 1).join('/')
}

function foldersIn(root: string, placeOf: (controller: string) => string | undefined): GroupFolders | undefined {
  const all = join(root, 'sys/fs/cgroup')
  const first = (controller: string, file: string, ...names: readonly string[]) => {
    const place = placeOf(controller)
    if (place === undefined) return undefined
    return names.map((name) => join(all, name, place)).find((folder) => textOf(join(folder, file)) !== undefined)
  }
  const whole = placeOf('')
  const memory = first('memory', 'memory.usage_in_bytes', 'memory')
  const cpuacct = first('cpuacct', 'cpuacct.usage', 'cpuacct', 'cpu,cpuacct')
  const cpu = first('cpu', 'cpu.stat', 'cpu', 'cpu,cpuacct')
  const pids = first('pids', 'pids.current', 'pids')
  const blkio = first('blkio', 'blkio.throttle.io_service_bytes', 'blkio')
  const second =
    whole === undefined
      ? undefined
      : [join(all, whole), join(all, 'unified', whole)].find(
          (folder) => textOf(join(folder, 'cgroup.procs')) !== undefined,
        )
  if ((memory ?? cpuacct ?? pids ?? second) === undefined) return undefined
  return {
    ...(memory !== undefined && { memory }),
    ...(cpuacct !== undefined && { cpuacct }),
    ...(cpu !== undefined && { cpu }),
    ...(pids !== undefined && { pids }),
    ...(blkio !== undefined && { blkio }),
    ...(second !== undefined && { second }),
  }
}

/** Reads everything; with `brief`, only memory and processes. */
export function readGroup(folders: GroupFolders, brief = false): GroupReading {
  const cpu = brief ? undefined : readCpu(folders)
  const memory = readMemory(folders, brief)
  const pids = readPids(folders)
  return {
    ...(cpu !== undefined && { cpu }),
    ...(memory !== undefined && { memory }),
    ...(pids !== undefined && { pids }),
  }
}

function readCpu({ cpuacct, cpu, second }: GroupFolders): CpuReading | undefined {
  const usage = numberIn(cpuacct, 'cpuacct.usage')
  if (usage !== undefined) {
    const stat = lines(cpu, 'cpu.stat')
    return { usageNanoSeconds: usage, ...throttling(stat, stat.get('throttled_time')) }
  }
  const stat = lines(second, 'cpu.stat')
  const micros = stat.get('usage_usec')
  if (micros === undefined) return undefined
  const throttled = stat.get('throttled_usec')
  return {
    usageNanoSeconds: micros * 1000,
    ...throttling(stat, throttled === undefined ? undefined : throttled * 1000),
  }
}

/** Without a limit the kernel counts no periods. */
function throttling(stat: ReadonlyMap<string, number>, throttledNanoSeconds: number | undefined) {
  const [periods, throttledPeriods] = [stat.get('nr_periods'), stat.get('nr_throttled')]
  if (!periods || throttledPeriods === undefined || throttledNanoSeconds === undefined) return {}
  return { periods, throttledPeriods, throttledNanoSeconds }
}

function readMemory({ memory, second }: GroupFolders, brief: boolean): MemoryReading | undefined {
  return memory === undefined ? readSecondMemory(second, brief) : readFirstMemory(memory, brief)
}

function readFirstMemory(folder: string, brief: boolean): MemoryReading | undefined {
  const usageBytes = numberIn(folder, 'memory.usage_in_bytes')
  const stat = lines(folder, 'memory.stat')
  const inactive = stat.get('total_inactive_file')
  if (usageBytes === undefined || inactive === undefined) return undefined
  const swap = stat.get('total_swap')
  const limit = brief ? undefined : stat.get('hierarchical_memory_limit')
  const oomKills = brief ? undefined : lines(folder, 'memory.oom_control').get('oom_kill')
  return {
    usageBytes,
    workingSetBytes: Math.max(0, usageBytes - inactive),
    rssBytes: stat.get('total_rss') ?? 0,
    cacheBytes: stat.get('total_cache') ?? 0,
    ...(swap !== undefined && { swapBytes: swap }),
    pageFaults: stat.get('total_pgfault') ?? 0,
    majorPageFaults: stat.get('total_pgmajfault') ?? 0,
    // The kernel writes the largest number of pages for "no limit".
    ...(limit !== undefined && limit < 2 ** 62 && { limitBytes: limit }),
    ...(oomKills !== undefined && { oomKills }),
  }
}

function readSecondMemory(folder: string | undefined, brief: boolean): MemoryReading | undefined {
  const stat = lines(folder, 'memory.stat')
  const inactive = stat.get('inactive_file')
  if (folder === undefined || inactive === undefined) return undefined
  const [anon = 0, file = 0] = [stat.get('anon'), stat.get('file')]
  // The root group has no such file.
  const usageBytes = numberIn(folder, 'memory.current') ?? anon + file
  const swap = brief ? undefined : numberIn(folder, 'memory.swap.current')
  const limit = brief ? undefined : numberIn(folder, 'memory.max')
  const oomKills = brief ? undefined : lines(folder, 'memory.events').get('oom_kill')
  return {
    usageBytes,
    workingSetBytes: Math.max(0, usageBytes - inactive),
    rssBytes: anon,
    cacheBytes: file,
    ...(swap !== undefined && { swapBytes: swap }),
    pageFaults: stat.get('pgfault') ?? 0,
    majorPageFaults: stat.get('pgmajfault') ?? 0,
    ...(limit !== undefined && { limitBytes: limit }),
    ...(oomKills !== undefined && { oomKills }),
  }
}

function readPids({ pids, second }: GroupFolders): GroupReading['pids'] {
  const folder = pids ?? second
  const current = numberIn(folder, 'pids.current')
  if (current === undefined) return undefined
  const limit = numberIn(folder, 'pids.max')
  return { current, ...(limit !== undefined && { limit }) }
}

/** The lines of a file such as memory.stat: `inactive_file 12345`. */
function lines(folder: string | undefined, file: string): ReadonlyMap<string, number> {
  const text = folder === undefined ? undefined : textOf(join(folder, file))
  const found = new Map<string, number>()
  for (const line of text?.split('\n') ?? []) {
    const blank = line.indexOf(' ')
    if (blank > 0) found.set(line.slice(0, blank), Number(line.slice(blank + 1)))
  }
  return found
}

/** Undefined if the file does not exist, and for `max`. */
function numberIn(folder: string | undefined, file: string): number | undefined {
  const text = folder === undefined ? undefined : textOf(join(folder, file))
  const number = text === undefined ? Number.NaN : Number(text)
  return Number.isFinite(number) ? number : undefined
}
