/** Logs an outage: its start, each reason that needs action once, and its end. Not every attempt. */
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import { certificateDates } from '../certificate/certificate-dates.ts'
import { connectionFailure } from './connection-failure.ts'

export interface LinkOutages {
  /** A try to connect failed. */
  failed(error: unknown): void
  /** A connection that stood has ended. */
  lost(error: Error, lastedMs: number): void
  /** The connection stands. */
  over(): void
}

type Outage = { readonly sinceMs: number; readonly logged: Set<string>; tries: number }

export type LinkOutageNeeds = {
  /** URL of the server that is tried. */
  readonly url: () => string
  /** The node's own certificate, PEM. */
  readonly certificate: () => string
  /** Wall clock time that the certificate's dates are compared with. */
  readonly nowMs: () => number
  readonly clock: Clock
  readonly log: Log
}

export function linkOutages({ url: server, certificate, nowMs, clock, log }: LinkOutageNeeds): LinkOutages {
  let outage: Outage | undefined
  const present = (): Outage => {
    outage ??= { sinceMs: clock.monotonicMs(), logged: new Set(), tries: 0 }
    return outage
  }
  return {
    failed(cause) {
      const error = cause instanceof Error ? cause : new Error(String(cause))
      const now = present()
      const url = server()
      now.tries++
      const { kind, remedy } = connectionFailure(error, certificateDates(certificate()), nowMs())
      if (now.logged.has(kind)) return log.debug('Cannot connect to the control plane', { url, error })
      now.logged.add(kind)
      log.warn('Cannot connect to the control plane, trying until it works', { url, error, remedy })
    },
    lost(error, lastedMs) {
      present().logged.add('network') // Further failures of the network are expected after a loss.
      log.warn('Connection to the control plane lost, trying until it is back', {
        url: server(),
        error,
        lastedSeconds: Math.round(lastedMs / 1000),
      })
    },
    over() {
      const tries = outage?.tries ?? 0
      const outSeconds = outage === undefined ? 0 : Math.round((clock.monotonicMs() - outage.sinceMs) / 1000)
      log.info('Connected to the control plane', {
        url: server(),
        ...(tries === 0 ? {} : { failedTries: tries, outSeconds }),
      })
      outage = undefined
    },
  }
}
