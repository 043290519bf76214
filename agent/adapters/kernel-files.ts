/** The few shapes in which the kernel writes numbers into text files. */

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
