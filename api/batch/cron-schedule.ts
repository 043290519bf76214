/**
 * Schedules of CronJobs, in the dialect of robfig/cron v3 that Kubernetes uses: five fields, names of months and days, `?`,
 * steps, `@daily`, `@every 1h30m`. No library of npm has its sentences and its rules for days, steps and clock changes.
 */
import { readDuration } from './go-duration.ts'
import { type TimeZone, timeZone } from './time-zone.ts'

export type Schedule = {
  /** The first moment after `afterMs`, in whole seconds; undefined when there is none within five years. */
  next(afterMs: number): number | undefined
  /** The last moment of those that follow `afterMs` one by one that is not after `untilMs`; undefined when there is none. */
  last(afterMs: number, untilMs: number): number | undefined
}

export type ParsedSchedule =
  | { readonly ok: true; readonly schedule: Schedule }
  | { readonly ok: false; readonly problem: string }

type Field = { readonly values: ReadonlySet<number>; readonly star: boolean }
type Fields = {
  readonly minute: Field
  readonly hour: Field
  readonly dayOfMonth: Field
  readonly month: Field
  readonly dayOfWeek: Field
}
type Bounds = { readonly min: number; readonly max: number; readonly names?: readonly string[] }

const secondMs = 1000
const minuteMs = 60 * secondMs
const hourMs = 60 * minuteMs
const yearsAhead = 5

const minutes: Bounds = { min: 0, max: 59 }
const hours: Bounds = { min: 0, max: 23 }
const daysOfMonth: Bounds = { min: 1, max: 31 }
const months: Bounds = {
  min: 1,
  max: 12,
  names: ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'],
}
const daysOfWeek: Bounds = { min: 0, max: 6, names: ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] }

/** As five fields. */
const descriptors: { readonly [name: string]: string } = {
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *',
}

/** `localZone` is the time zone of a schedule that names none. */
export function parseSchedule(text: string, localZone: TimeZone): ParsedSchedule {
  if (text === '') return refused('empty spec string')
  const prefix = /^(?:CRON_)?TZ=([^ ]*)( |$)/.exec(text)
  const name = prefix?.[1]
  const zone = name === undefined ? localZone : timeZone(name === '' ? 'UTC' : name)
  if (zone === undefined) return refused(`provided bad location ${name}: unknown time zone ${name}`)
  const spec = prefix === null ? text : text.slice(prefix[0].length).trim()
  if (spec.startsWith('@')) return parseDescriptor(spec, zone)
  const parts = spec.split(/\s+/).filter((part) => part !== '')
  if (parts.length !== 5) {
    return refused(`expected exactly 5 fields, found ${parts.length}: [${parts.join(' ')}]`)
  }
  try {
    return { ok: true, schedule: calendarSchedule(fieldsOf(parts), zone) }
  } catch (error) {
    if (error instanceof RangeError) return refused(error.message)
    throw error
  }
}

function refused(problem: string): ParsedSchedule {
  return { ok: false, problem }
}

function parseDescriptor(text: string, zone: TimeZone): ParsedSchedule {
  const known = Object.hasOwn(descriptors, text) ? descriptors[text] : undefined
  if (known !== undefined) return { ok: true, schedule: calendarSchedule(fieldsOf(known.split(' ')), zone) }
  const every = '@every '
  if (!text.startsWith(every)) return refused(`unrecognized descriptor: ${text}`)
  const length = text.slice(every.length)
  const read = readDuration(length)
  if (!read.ok) return refused(`failed to parse duration ${text}: ${read.problem}`)
  return { ok: true, schedule: constantDelay(Math.max(secondMs, Math.floor(read.ms / secondMs) * secondMs)) }
}

function constantDelay(stepMs: number): Schedule {
  const start = (ms: number) => Math.floor(ms / secondMs) * secondMs
  return {
    next: (afterMs) => start(afterMs) + stepMs,
    last(afterMs, untilMs) {
      const steps = Math.floor((untilMs - start(afterMs)) / stepMs)
      return steps < 1 ? undefined : start(afterMs) + steps * stepMs
    },
  }
}

/** Throws RangeError with the sentence about the first field that cannot be read. */
function fieldsOf(parts: readonly string[]): Fields {
  const [minute = '', hour = '', dayOfMonth = '', month = '', dayOfWeek = ''] = parts
  return {
    minute: fieldOf(minute, minutes),
    hour: fieldOf(hour, hours),
    dayOfMonth: fieldOf(dayOfMonth, daysOfMonth),
    month: fieldOf(month, months),
    dayOfWeek: fieldOf(dayOfWeek, daysOfWeek),
  }
}

function fieldOf(text: string, bounds: Bounds): Field {
  const ranges = text
    .split(',')
    .filter((part) => part !== '')
    .map((part) => rangeOf(part, bounds))
  return { values: new Set(ranges.flatMap(({ values }) => values)), star: ranges.some(({ star }) => star) }
}

/** `*`, `5`, `1-5`, each with a step after `/`. `5/10` begins with 5 and continues to the end. */
function rangeOf(text: string, bounds: Bounds): { readonly values: readonly number[]; readonly star: boolean } {
  const [range = '', step, ...more] = text.split('/')
  const [low = '', high, ...others] = range.split('-')
  const isStar = low === '*' || low === '?'
  if (!isStar && others.length > 0) throw new RangeError(`too many hyphens: ${text}`)
  const [start, stop] = isStar ? [bounds.min, bounds.max] : namedRange(low, high, bounds)
  if (more.length > 0) throw new RangeError(`too many slashes: ${text}`)
  const every = step === undefined ? 1 : numberOf(step)
  const end = step !== undefined && high === undefined ? bounds.max : stop
  if (start < bounds.min) throw new RangeError(`beginning of range (${start}) below minimum (${bounds.min}): ${text}`)
  if (end > bounds.max) throw new RangeError(`end of range (${end}) above maximum (${bounds.max}): ${text}`)
  if (start > end) throw new RangeError(`beginning of range (${start}) beyond end of range (${end}): ${text}`)
  if (every === 0) throw new RangeError(`step of range should be a positive number: ${text}`)
  const values = Array.from({ length: Math.floor((end - start) / every) + 1 }, (_, index) => start + index * every)
  return { values, star: isStar && every === 1 }
}

function namedRange(low: string, high: string | undefined, bounds: Bounds): readonly [number, number] {
  const start = numberOrName(low, bounds)
  return [start, high === undefined ? start : numberOrName(high, bounds)]
}

function numberOrName(text: string, { min, names = [] }: Bounds): number {
  const place = names.indexOf(text.toLowerCase())
  return place === -1 ? numberOf(text) : min + place
}

function numberOf(text: string): number {
  if (!/^[+-]?\d+$/.test(text)) {
    throw new RangeError(
      `failed to parse int from ${text}: strconv.Atoi: parsing ${JSON.stringify(text)}: invalid syntax`,
    )
  }
  const value = Number(text)
  if (!Number.isSafeInteger(value)) {
    throw new RangeError(
      `failed to parse int from ${text}: strconv.Atoi: parsing ${JSON.stringify(text)}: value out of range`,
    )
  }
  if (value < 0) throw new RangeError(`negative number (${value}) not allowed: ${text}`)
  return value
}

function calendarSchedule(fields: Fields, zone: TimeZone): Schedule {
  const steps = fieldSteps(fields, zone)
  const next = (afterMs: number) => (canOccur(fields) ? nextMoment(steps, zone, afterMs) : undefined)
  return {
    next,
    /** By halves: years of minutes cost some thirty steps. */
    last(afterMs, untilMs) {
      let found = next(afterMs)
      if (found === undefined || found > untilMs) return undefined
      for (let end = untilMs; end - found >= secondMs; ) {
        const middle: number = found + Math.floor((end - found) / 2)
        const later = next(middle)
        if (later !== undefined && later <= untilMs) found = later
        else end = middle
      }
      return found
    },
  }
}

const mostDays = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

/** False for fields that name nothing (`,`), and for days that no month has: looking for those would take long. */
function canOccur({ minute, hour, dayOfMonth, month, dayOfWeek }: Fields): boolean {
  if (minute.values.size === 0 || hour.values.size === 0) return false
  const hasDay = [...month.values].some((one) => [...dayOfMonth.values].some((day) => day <= (mostDays[one - 1] ?? 0)))
  const hasWeekday = month.values.size > 0 && dayOfWeek.values.size > 0
  return dayOfMonth.star || dayOfWeek.star ? hasDay && hasWeekday : hasDay || hasWeekday
}

/** One field of the schedule, and how the moment moves until it matches. */
type FieldStep = {
  readonly matches: (at: number) => boolean
  /** The first moment with the present value of the field. */
  readonly floor: (at: number) => number
  readonly next: (at: number) => number
  /** `next` arrived at the first value of the field: the larger fields are matched again. */
  readonly wraps: (at: number) => boolean
}

/** From the month down to the second, which is always 0. */
function fieldSteps(fields: Fields, zone: TimeZone): readonly FieldStep[] {
  const { fieldsAt } = zone
  const startOf = (unit: 'month' | 'day' | 'hour') => (at: number) => {
    const { year, month, day, hour } = fieldsAt(at)
    return zone.instantOf(year, month, unit === 'month' ? 1 : day, unit === 'hour' ? hour : 0)
  }
  return [
    {
      matches: (at) => fields.month.values.has(fieldsAt(at).month),
      floor: startOf('month'),
      next(at) {
        const { year, month, day, hour, minute, second } = fieldsAt(at)
        return zone.instantOf(year, month + 1, day, hour, minute, second)
      },
      wraps: (at) => fieldsAt(at).month === 1,
    },
    {
      matches: (at) => matchesDay(fields, zone, at),
      floor: startOf('day'),
      next: (at) => nextDay(zone, at),
      wraps: (at) => fieldsAt(at).day === 1,
    },
    {
      matches: (at) => fields.hour.values.has(fieldsAt(at).hour),
      floor: startOf('hour'),
      next: (at) => at + hourMs,
      wraps: (at) => fieldsAt(at).hour === 0,
    },
    {
      matches: (at) => fields.minute.values.has(fieldsAt(at).minute),
      floor: (at) => Math.floor(at / minuteMs) * minuteMs,
      next: (at) => at + minuteMs,
      wraps: (at) => fieldsAt(at).minute === 0,
    },
    {
      matches: (at) => fieldsAt(at).second === 0,
      floor: (at) => at,
      next: (at) => at + (60 - fieldsAt(at).second) * secondMs,
      wraps: () => true,
    },
  ]
}

/**
 * The rules of SpecSchedule.Next (robfig/cron v3, spec.go): fields are matched from the month down, and a change of the
 * offset within a day moves the hours that follow. A time that the zone skips is not made up for.
 */
function nextMoment(steps: readonly FieldStep[], zone: TimeZone, afterMs: number): number | undefined {
  let at = (Math.floor(afterMs / secondMs) + 1) * secondMs
  const lastYear = zone.fieldsAt(at).year + yearsAhead
  /** The smaller fields begin again once, at the first change. */
  let isReset = false
  for (let index = 0; ; ) {
    const step = steps[index]
    if (step === undefined) return at
    if (step.matches(at)) {
      index++
      continue
    }
    at = step.next(isReset ? at : step.floor(at))
    isReset = true
    if (!step.wraps(at)) continue
    if (zone.fieldsAt(at).year > lastYear) return undefined
    index = 0
  }
}

/** Midnight of the next day, or about it where the zone has no midnight on that day. */
function nextDay(zone: TimeZone, at: number): number {
  const { year, month, day, hour, minute, second } = zone.fieldsAt(at)
  const next = zone.instantOf(year, month, day + 1, hour, minute, second)
  const arrived = zone.fieldsAt(next).hour
  if (arrived === 0) return next
  return arrived > 12 ? next + (24 - arrived) * hourMs : next - arrived * hourMs
}

/** Where both days are limited, either is enough (crontab(5)). */
function matchesDay({ dayOfMonth, dayOfWeek }: Fields, zone: TimeZone, at: number): boolean {
  const { day, weekday } = zone.fieldsAt(at)
  const [inMonth, inWeek] = [dayOfMonth.values.has(day), dayOfWeek.values.has(weekday)]
  return dayOfMonth.star || dayOfWeek.star ? inMonth && inWeek : inMonth || inWeek
}
