/** The time after which a client that reads nothing is disconnected. Shorter while slow readers hold much memory together. */

import type { Clock } from '../../../daemon/clock.ts'
import type { MetricsRegistry } from '../../../daemon/metrics-registry.ts'
import { gauge, one } from '../../../daemon/prometheus-text.ts'

export type SlowReaderLimits = {
  /** A reader that takes nothing for so long is gone or frozen. A watch that is ended is begun again by its client. */
  readonly stalledMs: number
  /** Over this many bytes for all streams together, streams are ended that took nothing for `crowdedMs`. */
  readonly mostBytes: number
  readonly crowdedMs: number
}

export const defaultSlowReaderLimits: SlowReaderLimits = {
  stalledMs: 30_000,
  mostBytes: 32 * 1024 * 1024,
  crowdedMs: 1_000,
}

/** What can be written to and takes it later; an answer of HTTP. */
export type Drain = {
  readonly writableLength: number
  once(event: 'drain', listener: () => void): unknown
  off(event: 'drain', listener: () => void): unknown
  destroy(): unknown
}

/** Without a reason each slice of an answer would make an exception with its stack. */
const noLongerWaiting = new Error('The reader is no longer waited for')

export interface SlowReaders {
  /** Resolves when the reader has taken what was written, or `signal` aborts; destroys it when it is too slow. */
  drained(outgoing: Drain, signal: AbortSignal): Promise<void>
}

/** Registers its metrics: once for a registry. */
export function slowReaders(clock: Clock, registry: MetricsRegistry, limits = defaultSlowReaderLimits): SlowReaders {
  const { stalledMs, mostBytes, crowdedMs } = limits
  let waitingBytes = 0
  const ended = registry.counter({
    name: 'bramble_api_slow_readers_ended_total',
    help: 'Answers and watches that were ended because their reader took nothing.',
  })
  registry.add(() => [
    gauge('bramble_api_unread_bytes', 'Bytes of answers and watches that wait for their readers.', one(waitingBytes)),
  ])
  return {
    async drained(outgoing, signal) {
      const over = new AbortController()
      const done = () => over.abort(noLongerWaiting)
      const bytes = outgoing.writableLength
      waitingBytes += bytes
      outgoing.once('drain', done)
      signal.addEventListener('abort', done, { once: true })
      if (signal.aborted) done()
      let waitedMs = 0
      while (!over.signal.aborted && waitedMs < stalledMs && !(waitedMs > 0 && waitingBytes > mostBytes)) {
        await clock.sleep(Math.min(crowdedMs, stalledMs - waitedMs), over.signal)
        waitedMs += crowdedMs
      }
      waitingBytes -= bytes
      outgoing.off('drain', done)
      signal.removeEventListener('abort', done)
      if (over.signal.aborted) return
      ended.inc()
      outgoing.destroy()
    },
  }
}
