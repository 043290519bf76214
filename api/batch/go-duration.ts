/** Durations as Go writes them: `1h30m`, `1.5s`, `300ms`. */
import { clipped } from '../problem.ts'

const units: { readonly [unit: string]: number } = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
}
/** int64 nanoseconds. */
const longestMs = 2 ** 63 / 1e6

export type ReadDuration =
  | { readonly ok: true; readonly ms: number }
  /** In the words of time.ParseDuration. */
  | { readonly ok: false; readonly problem: string }

/** A duration as time.ParseDuration reads it. */
export function readDuration(text: string): ReadDuration {
  const refused = (because: string): ReadDuration => ({
    ok: false,
    problem: `time: ${because} duration ${JSON.stringify(clipped(text))}`,
  })
  const unsigned = text.replace(/^[+-]/, '')
  if (unsigned === '0') return { ok: true, ms: 0 }
  if (unsigned === '' || unsigned.length > 64) return refused('invalid')
  let ms = 0
  const part = /(\d+\.?\d*|\.\d+)?([^\d.]*)/y
  while (part.lastIndex < unsigned.length) {
    const [, number, unit = ''] = part.exec(unsigned) ?? []
    if (number === undefined) return refused('invalid')
    if (unit === '') return refused('missing unit in')
    const unitMs = Object.hasOwn(units, unit) ? units[unit] : undefined
    if (unitMs === undefined) return refused(`unknown unit ${JSON.stringify(unit)} in`)
    ms += Number(number) * unitMs
  }
  if (ms >= longestMs) return refused('invalid')
  return { ok: true, ms: text.startsWith('-') ? -ms : ms }
}

/** Milliseconds; undefined when it is not a duration. */
export function parseDurationMs(text: string): number | undefined {
  const read = readDuration(text)
  return read.ok ? read.ms : undefined
}
