/** How long ago was that? By dates, where no clock of ours ran: they may have been wrong then, or be wrong now. */
import type { Clock } from '../../../daemon/clock.ts'

export interface TrustedTime {
  /** The date, in milliseconds since 1970; undefined while it is unknown. */
  nowMs(): number | undefined
  /** How long the machine is up: nothing that runs is older. */
  uptimeMs(): number
}

/** Of a clock that is right. */
export function systemTime(clock: Clock): TrustedTime {
  return { nowMs: clock.wallMs, uptimeMs: () => Number.POSITIVE_INFINITY }
}

/** Undefined while the date is not known. Never below 0: dates may lie. */
export function elapsedMs(time: string, { nowMs, uptimeMs }: TrustedTime, runs: boolean): number | undefined {
  const now = nowMs()
  if (now === undefined) return undefined
  const agoMs = Math.max(0, now - Date.parse(time)) || 0
  return runs ? Math.min(agoMs, uptimeMs()) : agoMs
}
