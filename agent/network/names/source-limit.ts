/** How many questions of one client are read. */
import type { Clock } from '../../../daemon/clock.ts'

export interface SourceLimit {
  /** False: the client asks too fast, and its question is dropped. */
  take(source: string): boolean
  /**
   * Charges an answer with this many records: a large one counts as several questions, also against later ones if none
   * is left.
   */
  charge(source: string, records: number): void
}

/** A second of them takes a Pi 4 a tenth of that; a client that starts asks a few dozen. */
export const questionLimits = { perSecond: 1_000, atOnce: 2_000 }
/** More than pods of one node. */
const mostSources = 1_024

/** Records that count as one question: the names of a thousand endpoints take 20 times as long as those of a few. */
const recordsOfQuestion = 32

/** A bucket for each source, filled with time. The source that was idle longest loses its one, which is full then. */
export function sourceLimit(clock: Clock, limits: typeof questionLimits = questionLimits): SourceLimit {
  const buckets = new Map<string, { left: number; atMs: number }>()
  return {
    take(source) {
      const nowMs = clock.monotonicMs()
      const bucket = buckets.get(source) ?? { left: limits.atOnce, atMs: nowMs }
      const left = Math.min(limits.atOnce, bucket.left + ((nowMs - bucket.atMs) * limits.perSecond) / 1000)
      buckets.delete(source)
      buckets.set(source, { left: left >= 1 ? left - 1 : left, atMs: nowMs })
      const [oldest] = buckets.keys()
      if (buckets.size > mostSources && oldest !== undefined) buckets.delete(oldest)
      return left >= 1
    },
    charge(source, records) {
      const bucket = buckets.get(source)
      const more = Math.ceil(records / recordsOfQuestion) - 1
      if (bucket !== undefined && more > 0) bucket.left -= more
    },
  }
}
