/** Token buckets, one for each key, bounded in number. */
import type { Clock } from '../clock.ts'

/** A bucket holds at most `burst` tokens and gains `perSecond` of them. */
export type Rate = { readonly perSecond: number; readonly burst: number }

export interface TokenBuckets {
  /**
   * 0 when the tokens were there and are taken; else the milliseconds until they will be, and none is taken. More than
   * `burst` tokens can be taken only from a full bucket.
   */
  take(key: string, tokens?: number): number
  /** Takes tokens whether they are there or not: a cost known only afterwards. The debt is at most `burst`. */
  charge(key: string, tokens: number): void
  /** Takes tokens whether they are there or not; the milliseconds until the debt is paid, 0 when there is none. */
  reserve(key: string, tokens: number): number
  /** Gives tokens back. */
  refund(key: string, tokens: number): void
  /** Keys in memory now. */
  readonly size: number
}

type Bucket = { tokens: number; atMs: number }

/** Beyond `mostKeys` the full buckets are deleted, then those that were used least recently. */
export function tokenBuckets(rate: Rate, clock: Pick<Clock, 'monotonicMs'>, mostKeys = 20_000): TokenBuckets {
  const { perSecond, burst } = rate
  /** Least recently used first. */
  const buckets = new Map<string, Bucket>()

  const filled = (bucket: Bucket, nowMs: number): number =>
    Math.min(burst, bucket.tokens + ((nowMs - bucket.atMs) / 1000) * perSecond)

  const bucketOf = (key: string): Bucket => {
    const nowMs = clock.monotonicMs()
    const present = buckets.get(key)
    const bucket = present ?? { tokens: burst, atMs: nowMs }
    bucket.tokens = filled(bucket, nowMs)
    bucket.atMs = nowMs
    if (present !== undefined) buckets.delete(key)
    else if (buckets.size >= mostKeys) makeRoom(nowMs)
    buckets.set(key, bucket)
    return bucket
  }

  const makeRoom = (nowMs: number) => {
    for (const [key, bucket] of buckets) if (filled(bucket, nowMs) >= burst) buckets.delete(key)
    // A tenth at a time, so that each new key does not scan them all.
    const most = Math.floor(mostKeys * 0.9)
    for (const key of buckets.keys()) {
      if (buckets.size <= most) return
      buckets.delete(key)
    }
  }

  return {
    take(key, tokens = 1) {
      const bucket = bucketOf(key)
      const missing = Math.min(tokens, burst) - bucket.tokens
      if (missing > 0) return Math.ceil((missing / perSecond) * 1000)
      bucket.tokens -= tokens
      return 0
    },
    charge(key, tokens) {
      const bucket = bucketOf(key)
      bucket.tokens = Math.max(-burst, bucket.tokens - tokens)
    },
    reserve(key, tokens) {
      const bucket = bucketOf(key)
      bucket.tokens -= tokens
      return bucket.tokens >= 0 ? 0 : Math.ceil((-bucket.tokens / perSecond) * 1000)
    },
    refund(key, tokens) {
      const bucket = bucketOf(key)
      bucket.tokens = Math.min(burst, bucket.tokens + tokens)
    },
    get size() {
      return buckets.size
    },
  }
}
