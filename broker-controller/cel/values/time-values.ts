/** Timestamps and durations as text and back, as Go's time package has them. */
import { Duration, Timestamp } from './value.ts'

const units: { readonly [unit: string]: bigint } = {
  ...{ ns: 1n, us: 1_000n, µs: 1_000n, μs: 1_000n, ms: 1_000_000n, s: 1_000_000_000n },
  ...{ m: 60_000_000_000n, h: 3_600_000_000_000n },
}
export const nanosPerSecond = 1_000_000_000n
/** The longest duration: 64 bits of nanoseconds. */
const mostNanos = 2n ** 63n - 1n
const longestText = 128

/** `1h30m`; undefined: invalid. */
export function parseGoDuration(text: string): Duration | undefined {
  // First: the pattern needs quadratic time.
  if (text.length > longestText) return undefined
  const [, sign, amounts] = /^([+-]?)((?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+|0)$/.exec(text) ?? []
  if (amounts === undefined) return undefined
  let nanos = 0n
  for (const [, whole = '', fraction = '', unit = ''] of amounts.matchAll(/(\d*)\.?(\d*)(ns|us|µs|μs|ms|s|m|h)/g)) {
    const scale = units[unit] ?? 0n
    nanos += BigInt(whole || '0') * scale + (BigInt(fraction || '0') * scale) / 10n ** BigInt(fraction.length)
  }
  return durationOf(sign === '-' ? -nanos : nanos)
}

/** undefined: it is too long. */
export function durationOf(nanos: bigint): Duration | undefined {
  return nanos > mostNanos || nanos < -mostNanos - 1n ? undefined : new Duration(nanos)
}

/** In seconds: `5400s`. */
export function celDurationText({ nanos }: Duration): string {
  const magnitude = nanos < 0n ? -nanos : nanos
  const fraction = String(magnitude % nanosPerSecond)
    .padStart(9, '0')
    .replace(/0+$/, '')
  return `${nanos < 0n ? '-' : ''}${magnitude / nanosPerSecond}${fraction === '' ? '' : `.${fraction}`}s`
}

const leastSecond = -62_135_596_800n // 0001-01-01T00:00:00Z
const mostSecond = 253_402_300_799n // 9999-12-31T23:59:59Z

/** undefined: it is outside of the years 1 to 9999. */
export function timestampOf(nanos: bigint, offset = 0): Timestamp | undefined {
  const { seconds } = celSeconds(nanos)
  return seconds < leastSecond || seconds > mostSecond ? undefined : new Timestamp(nanos, offset)
}

/** Whole seconds, rounded down, and the rest. */
export function celSeconds(nanos: bigint): { readonly seconds: bigint; readonly rest: bigint } {
  const rest = ((nanos % nanosPerSecond) + nanosPerSecond) % nanosPerSecond
  return { seconds: (nanos - rest) / nanosPerSecond, rest }
}

const rfc3339 = /^(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:[.,](\d+))?(?:[Zz]|([+-])(\d{2}):(\d{2}))$/

/** RFC 3339; undefined: invalid. */
export function parseTimestamp(text: string): Timestamp | undefined {
  const match = text.length > longestText ? null : rfc3339.exec(text)
  if (match === null) return undefined
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match.slice(1, 7).map(Number)
  const [fraction = '', sign, offsetHours = '0', offsetMinutes = '0'] = match.slice(7)
  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day)
  const isDate = date.getUTCMonth() === month - 1 && date.getUTCDate() === day
  if (!isDate || hour > 23 || minute > 59 || second > 59 || Number(offsetHours) > 23 || Number(offsetMinutes) > 59)
    return undefined
  const offset = (Number(offsetHours) * 60 + Number(offsetMinutes)) * (sign === '-' ? -1 : 1)
  const seconds = BigInt(date.getTime() / 1000 + hour * 3600 + minute * 60 + second - offset * 60)
  return timestampOf(seconds * nanosPerSecond + BigInt(fraction.slice(0, 9).padEnd(9, '0')), offset)
}

export function timestampText({ nanos, offset }: Timestamp): string {
  const { seconds, rest } = celSeconds(nanos)
  const fraction = String(rest).padStart(9, '0').replace(/0+$/, '')
  const [whole = ''] = new Date(Number(seconds) * 1000 + offset * 60_000).toISOString().split('.')
  return `${whole}${fraction === '' ? '' : `.${fraction}`}${zoneText(offset)}`
}

function zoneText(offset: number): string {
  if (offset === 0) return 'Z'
  const [hours, minutes] = [Math.floor(Math.abs(offset) / 60), Math.abs(offset) % 60]
  const [hourText, minuteText] = [hours, minutes].map((part) => String(part).padStart(2, '0'))
  return `${offset < 0 ? '-' : '+'}${hourText}:${minuteText}`
}

/** The time of a zone as a date of UTC: `UTC`, `+02:00`, `Europe/Vienna`. undefined: there is no such zone. */
export function dateInZone({ nanos }: Timestamp, zone: string): Date | undefined {
  const ms = Number(celSeconds(nanos).seconds) * 1000
  if (zone === '' || zone === 'UTC' || zone === 'Z') return new Date(ms)
  const [, sign = '+', hours, minutes = '0'] = /^([+-]?)(\d{1,2}):(\d{2})$/.exec(zone) ?? []
  if (hours !== undefined) {
    const offset = (Number(hours) * 60 + Number(minutes)) * 60_000
    return new Date(sign === '-' ? ms - offset : ms + offset)
  }
  return namedZoneDate(ms, zone)
}

function namedZoneDate(ms: number, zone: string): Date | undefined {
  if (!/^[A-Za-z][A-Za-z0-9_+/-]{0,63}$/.test(zone)) return undefined
  try {
    const numeric = { year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric' } as const
    const format = new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      hourCycle: 'h23',
      era: 'short',
      ...numeric,
      second: 'numeric',
    })
    const parts = new Map(format.formatToParts(ms).map(({ type, value }) => [type, value]))
    const part = (name: Intl.DateTimeFormatPartTypes) => Number(parts.get(name))
    const date = new Date(0)
    date.setUTCFullYear(part('year'), part('month') - 1, part('day'))
    date.setUTCHours(part('hour'), part('minute'), part('second'))
    return date
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}
