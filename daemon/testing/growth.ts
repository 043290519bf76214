/** Measures CPU times for tests, and how they grow with the input: a ratio, which a slow or busy machine does not change. */

const factor = 8
const runs = 7
const leastMicroseconds = 300 // below it the figures are chance

/** Cost that grows with the input is multiplied by about 8 here, cost that grows with its square by 64. */
export const linearAtMost = 24
/** A figure above the limit is measured again so often. */
const repeats = 3

type Work = () => unknown
type GrowthOptions = {
  /** What the caller fails above. Default: `linearAtMost`. */
  readonly atMost?: number
  /** CPU time of one run in microseconds. Default: that of this process. */
  readonly costOf?: (work: Work) => number
}

/**
 * By how much the CPU time of the work rises from an input of `size` to one eight times as large. `prepare` builds the
 * input and gives the work to measure. The least of seven runs counts, so that a collection of garbage in one of them
 * does not. Both sizes are run in turn: load that begins or ends meanwhile is in the runs of both. Where the figure is
 * above `atMost`, up to 21 more runs of each are measured.
 */
export function growth(
  size: number,
  prepare: (size: number) => Work,
  { atMost = linearAtMost, costOf = cpuMicroseconds }: GrowthOptions = {},
): number {
  const [small, large] = [prepare(size), prepare(size * factor)]
  const least = { small: Number.POSITIVE_INFINITY, large: Number.POSITIVE_INFINITY }
  const risen = () => least.large / Math.max(least.small, leastMicroseconds)
  small()
  for (let round = 0; round === 0 || (round <= repeats && risen() > atMost); round++)
    for (let run = 0; run < runs; run++) {
      least.small = Math.min(least.small, costOf(small))
      least.large = Math.min(least.large, costOf(large))
    }
  return risen()
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

function cpuMicroseconds(work: Work): number {
  const before = process.cpuUsage()
  work()
  return microsecondsSince(before)
}

function microsecondsSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before)
  return user + system
}
