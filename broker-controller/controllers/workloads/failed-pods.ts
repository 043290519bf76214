/**
 * How often a failed pod is replaced by one of its name or on its node: the node may reject each one (flowcontrol.Backoff in
 * client-go, for DaemonSets). Kubernetes replaces the pods of StatefulSets at once, several times a second.
 */
import type { Clock } from '../../../daemon/clock.ts'
import { expiringMap } from '../../../daemon/limits/expiring-map.ts'

export interface FailedPods {
  /** In how many ms the failed pod of this key may be deleted; 0: now. */
  waitMs(key: string): number
  /** One is deleted now. */
  deleted(key: string): void
}

const firstMs = 1_000

/** A key without failures for twice `longestMs` begins again. */
export function failedPods(clock: Pick<Clock, 'monotonicMs'>, longestMs: number): FailedPods {
  const kept = expiringMap<{ readonly delayMs: number; readonly sinceMs: number }>(clock, 2 * longestMs)
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
