/** `1m30s` ⇄ milliseconds, as Kubernetes writes spans of time in configuration. */
import { parseDurationMs } from '../api/batch/go-duration.ts'

/** Milliseconds; undefined when the text is not a span of time, or has a sign. `0` needs no unit. */
export function parseDuration(text: string): number | undefined {
  return /^[+-]/.test(text) ? undefined : parseDurationMs(text)
}

/** As Go writes it, and with it Kubernetes in JSON: `1h0m0s`, `5m0s`, `1.5s`, `100ms`. */
export function goDuration(ms: number): string {
  if (ms === 0) return '0s'
  if (Math.abs(ms) < 1_000) return `${ms}ms`
  const [whole, sign] = [Math.abs(ms), ms < 0 ? '-' : '']
  const [hours, minutes] = [Math.floor(whole / 3_600_000), Math.floor(whole / 60_000) % 60]
  const seconds = `${(whole % 60_000) / 1_000}s`
  if (hours > 0) return `${sign}${hours}h${minutes}m${seconds}`
  return minutes > 0 ? `${sign}${minutes}m${seconds}` : `${sign}${seconds}`
}

/** For people, in its two largest units: `23h59m`, `3d4h`, `12s`. */
export function formatDuration(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  const counts = [
    `${Math.floor(seconds / 86_400)}d`,
    `${Math.floor(seconds / 3600) % 24}h`,
    `${Math.floor(seconds / 60) % 60}m`,
    `${seconds % 60}s`,
  ]
  const first = counts.findIndex((count) => !count.startsWith('0'))
  const shown = counts.slice(first, first + 2).filter((count) => !count.startsWith('0'))
  return shown.join('') || '0s'
}
