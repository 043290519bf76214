/** How many Events an object gets: a burst, then few (EventSourceObjectSpamFilter, client-go tools/record/events_cache.go). */

/** True when an Event of the object may be recorded at `nowMs`, of the monotonic clock. */
export type EventLimit = {
  allows(uid: string, nowMs: number): boolean
  forget(uid: string): void
}

const burst = 25
const refillMs = 5 * 60_000

export function eventLimit(): EventLimit {
  const tokens = new Map<string, { readonly left: number; readonly atMs: number }>()
  return {
    allows(uid, nowMs) {
      const { left, atMs } = tokens.get(uid) ?? { left: burst, atMs: nowMs }
      const filled = Math.min(burst, left + (nowMs - atMs) / refillMs)
      const isAllowed = filled >= 1
      tokens.set(uid, { left: isAllowed ? filled - 1 : filled, atMs: nowMs })
      return isAllowed
    },
    forget: (uid) => void tokens.delete(uid),
  }
}
