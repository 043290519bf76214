/** Measures CPU times for tests, and how they grow with the input: a ratio, which a slow or busy machine does not change. */

const factor = 8
const runs = 7
const leastMicroseconds = 300 // below it the figures are chance

/** Cost that grows with the input is multiplied by about 8 here, cost that grows with its square by 64. */
export const linearAtMost = 32

/**
 * By how much the CPU time of the work rises from an input of `size` to one eight times as large. `prepare` builds the
 * input and gives the work to measure; the least of seven runs counts, so that a collection of garbage in one of them
 * does not.
 */
export function growth(size: number, prepare: (size: number) => () => unknown): number {
  const [small, large] = [prepare(size), prepare(size * factor)]
  small()
  return leastCpuMicroseconds(large) / Math.max(leastCpuMicroseconds(small), leastMicroseconds)
}

/**
 * The CPU time of the work in milliseconds: the least of seven runs, each after `prepare`. In one of them code may be compiled or
 * garbage collected, and a virtual machine may count the time in which its host ran another one.
 */
export async function leastCpuMs(work: () => unknown, prepare: () => unknown = () => undefined): Promise<number> {
  const costs: number[] = []
  while (costs.length < runs) {
    await prepare()
    const before = process.cpuUsage()
    await work()
    costs.push(microsecondsSince(before) / 1000)
  }
  return Math.min(...costs)
}

function leastCpuMicroseconds(work: () => unknown): number {
  const costs = Array.from({ length: runs }, () => {
    const before = process.cpuUsage()
    work()
    return microsecondsSince(before)
  })
  return Math.min(...costs)
}

function microsecondsSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before)
  return user + system
}
