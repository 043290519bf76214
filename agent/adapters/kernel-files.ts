/** The few shapes in which the kernel writes numbers into text files. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** undefined: there is no such file, or the kernel does not give it now. */
export function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

/** The kernel's total, or the limit of the machine's root cgroup where that is less: a machine that is a container. */
export function machineMemoryBytes(root: string, meminfo: string): number {
  const limits = ['sys/fs/cgroup/memory/memory.limit_in_bytes', 'sys/fs/cgroup/memory.max']
  // `max` is no number; the first version's "no limit" is more than any machine has.
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

/** `0-3,6` → 5: how many a list of ranges names. */
export function countOfList(list: string): number {
  return list
    .trim()
    .split(',')
    .filter((part) => part !== '')
    .map((part) => part.split('-').map(Number))
    .reduce((sum, [first = 0, last = first]) => sum + last - first + 1, 0)
}
