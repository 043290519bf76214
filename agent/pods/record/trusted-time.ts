/**
 * Elapsed time since a date, where the monotonic clock cannot be used. The clock may have been wrong then or may be wrong now.
 */
import type { Clock } from '../../../daemon/clock.ts'

export interface TrustedTime {
  /** The date, in milliseconds since 1970; undefined while it is unknown. */
  nowMs(): number | undefined
  /** The uptime of the machine: the upper bound for the age of anything that runs. */
  uptimeMs(): number
}

/** For a clock that is correct. */
export function systemTime(clock: Clock): TrustedTime {
  return { nowMs: clock.wallMs, uptimeMs: () => Number.POSITIVE_INFINITY }
}

/** Undefined while the date is unknown. Never negative, because dates may be wrong. */
export function elapsedMs(time: string, { nowMs, uptimeMs }: TrustedTime, runs: boolean): number | undefined {
  const now = nowMs()
  if (now === undefined) return undefined
  const agoMs = Math.max(0, now - Date.parse(time)) || 0
  return runs ? Math.min(agoMs, uptimeMs()) : agoMs
}
