/**
 * Notices a link whose other end is gone, without a byte on the wire: after each heartbeat the kernel is asked whether what was
 * sent is acknowledged. MQTT pings cost 9 kB in ten minutes for the same. See docs/mqtt.md.
 */

import { withOwnSignal } from '../../../daemon/aborted.ts'
import { alarm } from '../../../daemon/alarm.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { NetworkWatch } from './reconnect-wait.ts'

/** What became of the bytes that were written to a connection. */
export type SentData = {
  /** Not acknowledged by the other machine. */
  readonly waitingBytes: number
  /** Grows while the other machine acknowledges something. */
  readonly deliveredBytes: number
}

export type LinkGuardNeeds = {
  readonly clock: Clock
  readonly network: NetworkWatch
  /** undefined: the kernel does not list the connection. Must not reject. */
  readonly sentData: () => Promise<SentData | undefined>
  /** The machine still has the address from which it connected. Must not reject. */
  readonly hasAddress: () => Promise<boolean>
}

export interface LinkGuard {
  /** A heartbeat is due: checks soon whether all that was sent is acknowledged. */
  check(): void
  /** Resolves with the reason once the link is dead, with undefined when `signal` aborts. */
  run(signal: AbortSignal): Promise<Error | undefined>
}

/** Several round trips of a bad radio link. */
const checkAfterMs = 2_000
/** With the period of the heartbeat well below the 50 s after which the controller calls a silent node Unknown. */
const deadAfterMs = 20_000
const pollMs = 1_000
/** DHCP may replace the address of a link that stays up: nothing that the other machine sends arrives any more. */
const addressMs = 5_000
const idleMs = 3600_000

export function linkGuard({ clock, network, sentData, hasAddress }: LinkGuardNeeds): LinkGuard {
  const heartbeat = alarm(clock)

  const isDelivered = (data: SentData | undefined) => data === undefined || data.waitingBytes === 0

  /** undefined: all that was sent is acknowledged. */
  const waiting = async (): Promise<SentData | undefined> => {
    const data = await sentData()
    return isDelivered(data) ? undefined : data
  }

  /** The kernel waits longer before each retransmission, and does not retransmit because a cable is back. */
  const isStuckAt = async (delivered: number, signal: AbortSignal): Promise<boolean> => {
    await clock.sleep(checkAfterMs, signal)
    const data = await waiting()
    return data !== undefined && data.deliveredBytes <= delivered && !signal.aborted
  }

  const stalled = async (signal: AbortSignal): Promise<Error | undefined> => {
    const sinceMs = clock.monotonicMs() - checkAfterMs
    let progress: Progress | undefined
    while (!signal.aborted) {
      const data = await waiting()
      if (data === undefined) return undefined
      progress ??= { sinceMs, deliveredBytes: data.deliveredBytes }
      progress = progressAfter(progress, data, clock.monotonicMs())
      if (clock.monotonicMs() - progress.sinceMs >= deadAfterMs) {
        return new Error(`The controller's machine has acknowledged nothing for ${deadAfterMs / 1000} s`)
      }
      if ((await network.cameUpWithin(pollMs, signal)) && (await isStuckAt(progress.deliveredBytes, signal))) {
        return new Error('A network came up, and what was sent before is still not acknowledged')
      }
    }
    return undefined
  }

  const silent = async (signal: AbortSignal): Promise<Error | undefined> => {
    while (!signal.aborted) {
      await heartbeat.sleep(idleMs, signal)
      await clock.sleep(checkAfterMs, signal)
      if (isDelivered(await sentData())) continue
      // The watch compares with its last reading, which may be as old as the connection.
      await network.cameUpWithin(0, signal)
      const dead = await stalled(signal)
      if (dead !== undefined) return dead
    }
    return undefined
  }

  const moved = async (signal: AbortSignal): Promise<Error | undefined> => {
    while (await hasAddress()) {
      if (signal.aborted) return undefined
      await clock.sleep(addressMs, signal)
    }
    return new Error('This machine has lost the address from which it connected')
  }

  return {
    check: () => heartbeat.ring(),
    run: (signal) =>
      withOwnSignal(signal, async (own) => {
        try {
          return await Promise.race([silent(own.signal), moved(own.signal)])
        } finally {
          own.abort()
        }
      }),
  }
}

/** Bytes that were acknowledged, and since when they are no more than that. */
type Progress = { readonly sinceMs: number; readonly deliveredBytes: number }

function progressAfter(before: Progress, { deliveredBytes }: SentData, nowMs: number): Progress {
  const isMoving = deliveredBytes > before.deliveredBytes
  return isMoving ? { sinceMs: nowMs, deliveredBytes } : before
}
