/** What each flow has used lately: a sum in which older use counts less and less. */
import type { Clock } from '../../../daemon/clock.ts'

export interface RecentUse {
  add(key: string, amount: number): void
  of(key: string): number
  /** What each of the other flows has used. */
  ofOthers(key: string): Iterable<number>
  /** Flows in memory now. */
  readonly size: number
}

/** Less counts as nothing. */
const least = 0.05
const sweepFrom = 4_096

/** After `windowMs` a use counts 1/e of what it was: a steady rate has a sum of `rate * windowMs`. */
export function recentUse(windowMs: number, clock: Pick<Clock, 'monotonicMs'>): RecentUse {
  const flows = new Map<string, { amount: number; atMs: number }>()
  let sweepAt = sweepFrom
  const left = ({ amount, atMs }: { amount: number; atMs: number }, nowMs: number) =>
    amount * Math.exp((atMs - nowMs) / windowMs)
  const sweep = (nowMs: number) => {
    for (const [key, one] of flows) if (left(one, nowMs) < least) flows.delete(key)
    sweepAt = Math.max(sweepFrom, 2 * flows.size)
  }
  return {
    add(key, amount) {
      const nowMs = clock.monotonicMs()
      const known = flows.get(key)
      flows.set(key, { amount: amount + (known === undefined ? 0 : left(known, nowMs)), atMs: nowMs })
      if (flows.size >= sweepAt) sweep(nowMs)
    },
    of(key) {
      const known = flows.get(key)
      return known === undefined ? 0 : left(known, clock.monotonicMs())
    },
    *ofOthers(key) {
      const nowMs = clock.monotonicMs()
      for (const [other, one] of flows) {
        const amount = left(one, nowMs)
        if (amount < least) flows.delete(other)
        else if (other !== key) yield amount
      }
    },
    get size() {
      return flows.size
    },
  }
}
