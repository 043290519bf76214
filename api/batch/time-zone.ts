/** Time zones, from the data that Node.js brings along. */

export type ZoneFields = {
  readonly year: number
  /** 1 to 12. */
  readonly month: number
  readonly day: number
  readonly hour: number
  readonly minute: number
  readonly second: number
  /** 0 is Sunday. */
  readonly weekday: number
}

export type TimeZone = {
  readonly name: string
  /** What clocks of the zone show. */
  fieldsAt(ms: number): ZoneFields
  /**
   * When they show it. Fields may be out of their range: the 32nd of a month is a day of the next. What the zone skips is
   * taken with the offset of one side of the gap, as Go's time.Date does.
   */
  instantOf(year: number, month: number, day: number, hour: number, minute?: number, second?: number): number
  /** RFC 3339 with the zone's offset, in whole seconds. */
  format(ms: number): string
}

export const utc: TimeZone = zoneOf('UTC', () => 0)

/** Kept: a format costs 50 kB and most fleets use one zone. */
const known = new Map<string, TimeZone | undefined>()
const mostKnown = 64

/** By its name in the IANA database; undefined when there is none of this name. */
export function timeZone(name: string): TimeZone | undefined {
  if (name === 'UTC') return utc
  if (known.has(name)) return known.get(name)
  const zone = readZone(name)
  if (known.size >= mostKnown) known.clear()
  known.set(name, zone)
  return zone
}

/** That of the machine, or of the variable TZ: schedules without a zone are in it. */
export function localTimeZone(): TimeZone {
  return timeZone(new Intl.DateTimeFormat().resolvedOptions().timeZone) ?? utc
}

/**
 * Names are compared by case, as they are files for Kubernetes, where Intl takes `europe/berlin` too: each part of a name
 * begins with a capital letter. Intl takes offsets as `+01:00`, which are not names.
 */
const named = /^[A-Z][A-Za-z0-9_+-]*(?:\/[A-Z][A-Za-z0-9_+-]*)*$/

function readZone(name: string): TimeZone | undefined {
  if (!named.test(name)) return undefined
  try {
    const format = new Intl.DateTimeFormat('en-US', {
      timeZone: name,
      calendar: 'gregory',
      numberingSystem: 'latn',
      hourCycle: 'h23',
      era: 'short',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    })
    return zoneOf(name, (ms) => offsetIn(format, ms))
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

function offsetIn(format: Intl.DateTimeFormat, ms: number): number {
  const parts = new Map(format.formatToParts(ms).map(({ type, value }) => [type, value]))
  const number = (type: Intl.DateTimeFormatPartTypes) => Number(parts.get(type))
  const year = parts.get('era') === 'BC' ? 1 - number('year') : number('year')
  const shown = utcMs(year, number('month'), number('day'), number('hour'), number('minute'), number('second'))
  return shown - Math.floor(ms / 1000) * 1000
}

function zoneOf(name: string, offsetAt: (ms: number) => number): TimeZone {
  // Offsets change at full quarters of an hour: within one, the last answer holds.
  const quarterMs = 15 * 60_000
  let last = { quarter: Number.NaN, offset: 0 }
  const offset = (ms: number) => {
    const quarter = Math.floor(ms / quarterMs)
    if (quarter !== last.quarter) last = { quarter, offset: offsetAt(quarter * quarterMs) }
    return last.offset
  }
  return {
    name,
    fieldsAt(ms) {
      const shown = new Date(ms + offset(ms))
      return {
        year: shown.getUTCFullYear(),
        month: shown.getUTCMonth() + 1,
        day: shown.getUTCDate(),
        hour: shown.getUTCHours(),
        minute: shown.getUTCMinutes(),
        second: shown.getUTCSeconds(),
        weekday: shown.getUTCDay(),
      }
    },
    instantOf(year, month, day, hour, minute = 0, second = 0) {
      const shown = utcMs(year, month, day, hour, minute, second)
      return shown - offset(shown - offset(shown))
    },
    format(ms) {
      const shift = Math.round(offset(ms) / 60_000)
      const text = new Date(Math.floor(ms / 1000) * 1000 + shift * 60_000).toISOString().slice(0, 19)
      if (shift === 0) return `${text}Z`
      const two = (number: number) => String(number).padStart(2, '0')
      const size = Math.abs(shift)
      return `${text}${shift < 0 ? '-' : '+'}${two(Math.floor(size / 60))}:${two(size % 60)}`
    },
  }
}

function utcMs(year: number, month: number, day: number, hour: number, minute: number, second: number): number {
  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day)
  date.setUTCHours(hour, minute, second, 0)
  return date.getTime()
}
