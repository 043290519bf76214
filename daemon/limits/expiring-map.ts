/** Values that are forgotten after a while: for what is remembered of requests and Events of others. */
import type { Clock } from '../clock.ts'

export interface ExpiringMap<V> {
  /** Undefined once its time is over. */
  get(key: string): V | undefined
  /** Its time starts again. */
  set(key: string, value: V): void
  delete(key: string): void
}

/** `lifeMs`: how long a value is kept after it was set. At most `most` values: then the oldest go first. */
export function expiringMap<V>(clock: Pick<Clock, 'monotonicMs'>, lifeMs: number, most = 10_000): ExpiringMap<V> {
  const kept = new Map<string, { readonly value: V; readonly untilMs: number }>()
  return {
    get(key) {
      const found = kept.get(key)
      if (found === undefined) return undefined
      if (found.untilMs > clock.monotonicMs()) return found.value
      kept.delete(key)
      return undefined
    },
    delete: (key) => void kept.delete(key),
    set(key, value) {
      const nowMs = clock.monotonicMs()
      kept.delete(key)
      kept.set(key, { value, untilMs: nowMs + lifeMs })
      // Insertion order is the order of expiry.
      for (const [oldest, { untilMs }] of kept) {
        if (kept.size <= most && untilMs > nowMs) return
        kept.delete(oldest)
      }
    },
  }
}
