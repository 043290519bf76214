/** Answers of other servers, kept for as long as they allow. */
import type { UpstreamAnswer } from './upstream-answer.ts'

export interface AnswerCache {
  /** Undefined if there is none, or it has become too old. */
  get(key: string, nowMs: number): { readonly answer: UpstreamAnswer; readonly ageSeconds: number } | undefined
  /** An answer that may not be kept, or is large, is not. */
  set(key: string, answer: UpstreamAnswer, nowMs: number): void
}

/** Whatever pods look up, the cache has 1 MiB of answers and a thousand entries at the most. */
export const cacheLimits = { entries: 1_000, bytes: 1024 * 1024, largest: 4 * 1024 }

type Kept = { readonly answer: UpstreamAnswer; readonly atMs: number }

export function answerCache(limits: typeof cacheLimits = cacheLimits): AnswerCache {
  /** The one that was used longest ago is the first. */
  const kept = new Map<string, Kept>()
  let bytes = 0

  const remove = (key: string) => {
    bytes -= kept.get(key)?.answer.bytes.length ?? 0
    kept.delete(key)
  }

  return {
    get(key, nowMs) {
      const found = kept.get(key)
      if (found === undefined) return undefined
      const ageSeconds = Math.floor((nowMs - found.atMs) / 1000)
      kept.delete(key)
      kept.set(key, found)
      if (ageSeconds < found.answer.ttl) return { answer: found.answer, ageSeconds }
      remove(key)
      return undefined
    },
    set(key, answer, nowMs) {
      remove(key)
      if (answer.ttl === 0 || answer.isTruncated || answer.bytes.length > limits.largest) return
      kept.set(key, { answer, atMs: nowMs })
      bytes += answer.bytes.length
      for (const oldest of kept.keys()) {
        if (kept.size <= limits.entries && bytes <= limits.bytes) break
        remove(oldest)
      }
    },
  }
}
