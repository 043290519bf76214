/** Parsers for the formats of numbers in the kernel's text files. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** undefined: the file does not exist, or the kernel rejects the read. */
export function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

/** The kernel's total, or the limit of the root cgroup where that is less: the machine is a container. */
export function machineMemoryBytes(root: string, meminfo: string): number {
  const limits = ['sys/fs/cgroup/memory/memory.limit_in_bytes', 'sys/fs/cgroup/memory.max']
  // `max` is not a number; the first version's "no limit" is more than any machine has.
  const limit = Number(limits.map((path) => textOf(join(root, path))).find((text) => text !== undefined) ?? Number.NaN)
  const total = meminfoBytes(meminfo, 'MemTotal')
  return Number.isNaN(limit) || limit <= 0 ? total : Math.min(limit, total)
}

/** `MemTotal:  3884392 kB` → bytes. */
export function meminfoBytes(meminfo: string, name: string): number {
  const match = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(meminfo)
  if (match === null) throw new Error(`No ${name} in /proc/meminfo`)
  return Number(match[1]) * 1024
}

/** `inactive_file 12345` → 12345. */
export function lineValue(text: string, name: string): number {
  const match = new RegExp(`^${name} (\\d+)$`, 'm').exec(text)
  if (match === null) throw new Error(`No ${name} in memory.stat`)
  return Number(match[1])
}

/**
 * The number of tasks (with threads) and its limit: the smallest of the kernel's limits, or that of the root cgroup where fewer
 * are left.
 */
export function machineTasks(root: string): { readonly running: number; readonly capacity: number } {
  const [, , , tasks = ''] = readFileSync(join(root, 'proc/loadavg'), 'utf8').split(' ')
  const running = Number(tasks.split('/')[1])
  const limits = ['proc/sys/kernel/pid_max', 'proc/sys/kernel/threads-max']
  const capacity = Math.min(...limits.map((limit) => Number(readFileSync(join(root, limit), 'utf8'))))
  if (!Number.isFinite(running + capacity)) throw new Error(`Cannot parse ${join(root, 'proc/loadavg')}`)
  const own = tasksOfRootCgroup(root)
  return own !== undefined && own.capacity - own.running < capacity - running ? own : { running, capacity }
}

function tasksOfRootCgroup(root: string) {
  for (const folder of ['sys/fs/cgroup/pids', 'sys/fs/cgroup']) {
    const capacity = Number(textOf(join(root, folder, 'pids.max')) ?? Number.NaN)
    if (Number.isNaN(capacity)) continue // `max`, or the real root, which has no limit
    return { running: Number(textOf(join(root, folder, 'pids.current')) ?? 0), capacity }
  }
  return undefined
}

/** A path in a list of mounts: blanks are written as `\040`. */
export function unescapedPath(path: string): string {
  if (!path.includes('\\')) return path
  return path.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))
}

/** The number of items in a list of ranges: `0-3,6` → 5. */
export function countOfList(list: string): number {
  return list
    .trim()
    .split(',')
    .filter((part) => part !== '')
    .map((part) => part.split('-').map(Number))
    .reduce((sum, [first = 0, last = first]) => sum + last - first + 1, 0)
}
