/** Everything read at one moment, and the rates between two such moments. */
import type { NodeReading, PodDiskReading, PodReading } from './usage.ts'

export type Sample = {
  /** On the monotonic clock, and as a date. */
  readonly atMs: number
  readonly wallMs: number
  readonly node: NodeReading
  readonly pods: readonly PodReading[]
  /** Undefined if it was not requested, or reading it takes too long. */
  readonly disks?: readonly PodDiskReading[]
}

/** Nanoseconds of CPU per second, by what was counted: a container's id, a pod's uid, or one of the two below. */
export type Rates = { readonly windowMs: number; readonly nanoCores: ReadonlyMap<string, number> }

export const nodeKey = 'node'
export const agentKey = 'agent'

/** Over a shorter time, the rate is too inexact. */
const leastWindowMs = 500

/** Undefined if there is no earlier sample or it is too close. */
export function ratesBetween(earlier: Sample | undefined, later: Sample): Rates | undefined {
  if (earlier === undefined || later.atMs - earlier.atMs < leastWindowMs) return undefined
  const windowMs = later.atMs - earlier.atMs
  const before = new Map(counters(earlier))
  const nanoCores = new Map<string, number>()
  for (const [key, nanoSeconds] of counters(later)) {
    const then = before.get(key)
    // A lower count is that of a new control group.
    if (then !== undefined && nanoSeconds >= then)
      nanoCores.set(key, Math.round(((nanoSeconds - then) * 1000) / windowMs))
  }
  return { windowMs, nanoCores }
}

function* counters({ node, pods }: Sample): Iterable<readonly [string, number]> {
  if (node.cpu !== undefined) yield [nodeKey, node.cpu.usageNanoSeconds]
  yield [agentKey, node.agent.cpuNanoSeconds]
  for (const pod of pods) {
    if (pod.sandbox?.cpu !== undefined) yield [sandboxKey(pod), pod.sandbox.cpu.usageNanoSeconds]
    for (const { id, cpu } of pod.containers) if (cpu !== undefined) yield [id, cpu.usageNanoSeconds]
  }
}

export function sandboxKey({ uid }: PodReading): string {
  return `sandbox ${uid}`
}
