/** The wait before the next attempt to connect, and the events that end it early. */
import { withOwnSignal } from '../../../daemon/aborted.ts'
import { backoffMs } from '../../../daemon/backoff.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { cameUp, type NetworkState } from './network-state.ts'

const firstMs = 1_000
/** Until the controller has published its grace period: two fifths of Kubernetes' 50 s. */
const usualCeilingMs = 20_000
const ceilingLimitsMs = { least: 2_000, most: 10 * 60_000 } as const
const graceShare = 0.4
const pollMs = 1_000
const lookForMs = 60_000
/** Random wait after a link comes up: all machines behind a restarted switch see theirs at the same time. */
const linkUpJitterMs = 1_000

/**
 * The longest wait, for a controller that waits `graceMs` for a silent node before it calls it Unknown. Two fifths of it: the
 * rest is for an attempt that was under way when the controller came back (15 s) and for the connection itself.
 */
export function reconnectCeilingMs(graceMs: number | undefined): number {
  if (graceMs === undefined) return usualCeilingMs
  return Math.min(ceilingLimitsMs.most, Math.max(ceilingLimitsMs.least, graceMs * graceShare))
}

/** Wait after this many failures, with full jitter. */
export function reconnectWaitMs(failures: number, graceMs: number | undefined, random: () => number): number {
  return backoffMs(failures, { firstMs, maxMs: reconnectCeilingMs(graceMs) }, random)
}

export type NetworkWatchNeeds = {
  readonly clock: Clock
  readonly random: () => number
  readonly network: () => NetworkState
}

export interface NetworkWatch {
  /** Resolves with true a moment after a network came up since the last call, with false after `ms` or an abort; never rejects. */
  cameUpWithin(ms: number, signal: AbortSignal): Promise<boolean>
}

/**
 * Polls once a second, and only during a wait: a few small reads. `ip monitor` would be a process for the time of every outage,
 * and sysfs gives no inotify events.
 */
export function networkWatch({ clock, random, network }: NetworkWatchNeeds): NetworkWatch {
  let before: NetworkState | undefined
  return {
    async cameUpWithin(ms, signal) {
      const untilMs = clock.monotonicMs() + ms
      for (;;) {
        const now = network()
        const isUp = before !== undefined && cameUp(before, now)
        before = now
        if (isUp) {
          await clock.sleep(random() * linkUpJitterMs, signal)
          return !signal.aborted
        }
        const leftMs = untilMs - clock.monotonicMs()
        if (signal.aborted || leftMs <= 0) return false
        await clock.sleep(Math.min(pollMs, leftMs), signal)
      }
    },
  }
}

const networkCameUp = new Error('A network came up')

/**
 * What `attempt` gives; begun again each time a network comes up meanwhile: packets that were lost before it did are repeated by
 * the kernel at growing intervals only. Rejects as the attempt does.
 */
export async function againWhenNetworkComesUp<T>(
  network: NetworkWatch,
  attempt: (signal: AbortSignal) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  for (;;) {
    const done = await withOwnSignal(signal, async (own): Promise<{ readonly value: T } | undefined> => {
      const over = new AbortController()
      const watching = untilUp(network, over.signal).then((isUp) => isUp && own.abort(networkCameUp))
      try {
        return { value: await attempt(own.signal) }
      } catch (error) {
        if (own.signal.reason === networkCameUp) return undefined
        throw error
      } finally {
        over.abort()
        await watching
      }
    })
    if (done !== undefined) return done.value
  }
}

async function untilUp(network: NetworkWatch, signal: AbortSignal): Promise<boolean> {
  while (!signal.aborted) if (await network.cameUpWithin(lookForMs, signal)) return true
  return false
}
