/** How often a failed pod of a DaemonSet is replaced on a node: the node may refuse each one (flowcontrol.Backoff in client-go). */
import type { Clock } from '../../../../daemon/clock.ts'
import { expiringMap } from '../../../../daemon/limits/expiring-map.ts'

export interface FailedDaemons {
  /** In how many ms a failed pod may be deleted; 0: now. */
  waitMs(key: string): number
  /** One is deleted now. */
  deleted(key: string): void
}

const firstMs = 1_000
const longestMs = 15 * 60_000
/** A node without failures for so long begins again. */
const lifeMs = 2 * longestMs

export function failedDaemons(clock: Pick<Clock, 'monotonicMs'>): FailedDaemons {
  const kept = expiringMap<{ readonly delayMs: number; readonly sinceMs: number }>(clock, lifeMs)
  return {
    waitMs(key) {
      const last = kept.get(key)
      return last === undefined ? 0 : Math.max(0, last.sinceMs + last.delayMs - clock.monotonicMs())
    },
    deleted(key) {
      const last = kept.get(key)
      const delayMs = last === undefined ? firstMs : Math.min(2 * last.delayMs, longestMs)
      kept.set(key, { delayMs, sinceMs: clock.monotonicMs() })
    },
  }
}
