/** How often a failed pod of a DaemonSet is replaced on a node: the node may refuse each one (flowcontrol.Backoff in client-go). */

export interface FailedDaemons {
  /** In how many ms a failed pod may be deleted; 0: now. */
  waitMs(key: string, nowMs: number): number
  /** One is deleted now. */
  deleted(key: string, nowMs: number): void
}

const firstMs = 1_000
const longestMs = 15 * 60_000
/** A node without failures for so long begins again. */
const lifeMs = 2 * longestMs
const sweepMs = 60_000

export function failedDaemons(): FailedDaemons {
  const kept = new Map<string, { readonly delayMs: number; readonly sinceMs: number }>()
  let sweptMs = 0
  return {
    waitMs(key, nowMs) {
      const last = kept.get(key)
      return last === undefined ? 0 : Math.max(0, last.sinceMs + last.delayMs - nowMs)
    },
    deleted(key, nowMs) {
      if (nowMs - sweptMs >= sweepMs) {
        for (const [one, { sinceMs }] of kept) if (nowMs - sinceMs > lifeMs) kept.delete(one)
        sweptMs = nowMs
      }
      const last = kept.get(key)
      const isOver = last === undefined || nowMs - last.sinceMs > lifeMs
      kept.set(key, { delayMs: isOver ? firstMs : Math.min(2 * last.delayMs, longestMs), sinceMs: nowMs })
    },
  }
}
