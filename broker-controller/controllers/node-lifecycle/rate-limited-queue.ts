/** The queue of a zone: first in, first out, never faster than the rate of the zone. */

export interface RateLimitedQueue {
  readonly size: number
  readonly rate: number
  has(name: string): boolean
  /** At the end; one that waits already keeps its place. */
  add(name: string): void
  remove(name: string): void
  /** Names a second; 0 stops. A new rate starts with its one token in hand unless the old one's was spent. */
  setRate(rate: number, nowMs: number): void
  /** The first name, still in the queue, at the price of a token; undefined when the queue is empty or it is too early. */
  take(nowMs: number): string | undefined
  /** When `take` will next give a name, unless something changes; undefined: not before it does. */
  nextMs(nowMs: number): number | undefined
}

/** A token bucket of one: after a quiet time one node goes at once, the next after a full interval. */
export function rateLimitedQueue(firstRate: number, nowMs: number): RateLimitedQueue {
  const names = new Set<string>()
  let rate = firstRate
  let tokenAtMs = nowMs

  const intervalMs = () => 1000 / rate
  const hasToken = (now: number) => rate > 0 && now >= tokenAtMs

  return {
    get size() {
      return names.size
    },
    get rate() {
      return rate
    },
    has: (name) => names.has(name),
    add: (name) => void names.add(name),
    remove: (name) => void names.delete(name),
    setRate(next, now) {
      if (next === rate) return
      const full = hasToken(now)
      rate = next
      tokenAtMs = full || next <= 0 ? now : now + intervalMs()
    },
    take(now) {
      const [first] = names
      if (first === undefined || !hasToken(now)) return undefined
      tokenAtMs = now + intervalMs()
      return first
    },
    nextMs: (now) => (names.size === 0 || rate <= 0 ? undefined : Math.max(now, tokenAtMs)),
  }
}
