/** Time, handed in. Two clocks that are never mixed: the wall stamps objects, the monotonic one measures how long. */
import { uptime } from 'node:os'

export interface Clock {
  /** Milliseconds since some moment; never jumps, whatever happens to the date. Stands still while the machine is suspended. */
  monotonicMs(): number
  /** The date as the machine believes it, in milliseconds since 1970. */
  wallMs(): number
  /** Resolves after `ms`, or at once when `signal` aborts. Never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
  /** Jitter of waits, from 0 to less than 1, so that a simulated clock decides all of a wait. Default: Math.random. */
  readonly random?: () => number
}

/** Limit of Node's timers: one set for longer fires at once. */
export const longestTimerMs = 2 ** 31 - 1

export const systemClock: Clock = {
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
  async sleep(ms, signal) {
    let leftMs = ms
    for (; leftMs > longestTimerMs && !signal?.aborted; leftMs -= longestTimerMs) await timer(longestTimerMs, signal)
    await timer(leftMs, signal)
  },
}

/** Milliseconds since the kernel started, those in which the machine was suspended among them. */
export const sinceBootMs = (): number => uptime() * 1000

function timer(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve()
    const done = () => {
      clearTimeout(started)
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const started = setTimeout(done, ms)
    signal?.addEventListener('abort', done, { once: true })
  })
}

/** An instant as objects carry it: RFC 3339, whole seconds, UTC. */
export function rfc3339(wallMs: number): string {
  return `${new Date(wallMs).toISOString().slice(0, 19)}Z`
}

/** What others wrote, as objects carry it; undefined when it is not an instant. */
export function wholeSeconds(instant: string | undefined): string | undefined {
  const ms = instant === undefined ? Number.NaN : Date.parse(instant)
  return Number.isNaN(ms) ? undefined : rfc3339(ms)
}

/** For `sort`: the earlier instant first, of those that are written alike. Not by `localeCompare`, which loads 3 MB of collation tables. */
export function compareInstants(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** An instant as Leases and Events carry it: exactly six fraction digits, or typed clients refuse it. */
export function rfc3339Micro(wallMs: number): string {
  return new Date(wallMs).toISOString().replace('Z', '000Z')
}
