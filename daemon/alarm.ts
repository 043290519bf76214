/**
 * A sleep that a notification can cut short: loops are woken by change and by a timer. Not by `AbortSignal.any`: on Node 20 each call
 * leaves some 60 bytes (measured) on a signal that lives as long as the program.
 */
import type { Clock } from './clock.ts'

export interface Alarm {
  /** Ends the sleep under way, or the next one before it begins. */
  ring(): void
  /** Resolves after `ms`, when the alarm rings, or when `signal` aborts; never rejects. */
  sleep(ms: number, signal: AbortSignal): Promise<void>
}

/** Why a sleep ended. It is never read: without a reason Node.js makes an error for each abort, with its stack. */
export const rung = 'rung'

export function alarm(clock: Clock): Alarm {
  let next = new AbortController()
  return {
    ring: () => next.abort(rung),
    async sleep(ms, signal) {
      const current = next
      const stop = () => current.abort(rung)
      if (signal.aborted) stop()
      signal.addEventListener('abort', stop, { once: true })
      await clock.sleep(ms, current.signal)
      signal.removeEventListener('abort', stop)
      if (current.signal.aborted) next = new AbortController()
    },
  }
}
