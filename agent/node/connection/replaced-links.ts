/**
 * Does another machine use this node's certificate? MQTT 3.1.1 gives a client no reason when it is disconnected. A connection that
 * is closed again and again soon after it stood, by a controller that was not restarted in between, was replaced.
 */
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'

export interface ReplacedLinks {
  /** A connection that stood was lost; `epoch`: of the controller that it spoke with, undefined: none was received. */
  lost(link: { readonly lastedMs: number; readonly epoch: string | undefined }): void
}

/** Both wait up to 40 s between two attempts. */
const withinMs = 5 * 60_000
const shortMs = 60_000
const enough = 4
const logEveryMs = 3600_000

export function replacedLinks({ clock, log }: { readonly clock: Clock; readonly log: Log }): ReplacedLinks {
  let short: readonly { readonly atMs: number; readonly epoch: string }[] = []
  let loggedMs = Number.NEGATIVE_INFINITY
  return {
    lost({ lastedMs, epoch }) {
      const nowMs = clock.monotonicMs()
      if (lastedMs > shortMs || epoch === undefined) return
      const recent = short.filter((one) => one.epoch === epoch && nowMs - one.atMs < withinMs)
      short = [...recent, { atMs: nowMs, epoch }].slice(-enough)
      if (short.length < enough || nowMs - loggedMs < logEveryMs) return
      loggedMs = nowMs
      log.warn('The connection is closed again and again: another machine probably uses the certificate of this node', {
        closed: short.length,
        withinSeconds: Math.round((nowMs - (short[0]?.atMs ?? nowMs)) / 1000),
        remedy:
          "Look for the Event DuplicateIdentity with 'kubectl describe node'. Stop the other machine; if a card was copied, revoke the certificate on the controller and join again",
      })
    },
  }
}
