/** `'%d of %s'.format([1, 'x'])` (cel-go's ext/strings.go, version 1). */
import type { Meter } from '../values/meter.ts'
import { celDurationText, timestampText } from '../values/time-values.ts'
import {
  Bytes,
  CelFailure,
  type CelOutcome,
  Double,
  Duration,
  isInt,
  ListValue,
  MapValue,
  Timestamp,
  typeNameOf,
  Uint,
  type Value,
} from '../values/value.ts'
import { valueText } from './conversions.ts'
import { fail } from './definition.ts'

const clause = /%(?:(%)|(?:\.(\d+))?([a-zA-Z]))?/g
const longestText = 1024 * 1024
const deepest = 32
const mostPrecision = 100

/** Thrown by a clause, and caught here. */
class FormatError extends Error {}

export function formatted(text: string, args: readonly Value[], meter: Meter): CelOutcome {
  let next = 0
  try {
    const result = text.replace(clause, (_, percent?: string, precision?: string, verb?: string) => {
      if (percent !== undefined) return '%'
      if (verb === undefined) throw new FormatError('unexpected end of string')
      const arg = args[next]
      if (arg === undefined) throw new FormatError(`index ${next} out of range`)
      next++
      const digits = precision === undefined ? 6 : Number(precision)
      if (digits > mostPrecision) throw new FormatError(`precision ${digits} is too large`)
      return clauseText(verb, arg, digits, meter)
    })
    if (next < args.length) {
      return fail(`format: too many arguments supplied to string.format (expected ${next}, got ${args.length})`)
    }
    return result.length > longestText ? fail('the result of format() is too long') : result
  } catch (error) {
    if (error instanceof FormatError) return new CelFailure(`error during formatting: ${error.message}`)
    throw error
  }
}

function clauseText(verb: string, arg: Value, precision: number, meter: Meter): string {
  switch (verb) {
    case 's':
      return shown(arg, meter, 0, false)
    case 'd':
      return decimal(arg)
    case 'f':
      return floating(arg, (value) => value.toFixed(precision), 'fixed-point')
    case 'e':
      return floating(arg, (value) => scientific(value, precision), 'scientific')
    case 'b':
      if (typeof arg === 'boolean') return arg ? '1' : '0'
      return inBase(arg, 2, 'only integers and bools can be formatted as binary')
    case 'o':
      return inBase(arg, 8, 'octal clause can only be used on integers')
    case 'x':
    case 'X': {
      const hex = hexText(arg)
      return verb === 'X' ? hex.toUpperCase() : hex
    }
    default:
      throw new FormatError(`could not parse formatting clause: unrecognized formatting clause "${verb}"`)
  }
}

const raised = '⁰¹²³⁴⁵⁶⁷⁸⁹'

/** As Go's golang.org/x/text/message: `3.140000×10⁰⁰`. */
function scientific(value: number, precision: number): string {
  const [mantissa = '', exponent = ''] = value.toExponential(precision).split('e')
  const digits = exponent.replace(/[+-]/, '').padStart(2, '0')
  return `${mantissa}×10${exponent.startsWith('-') ? '⁻' : ''}${digits.replace(/\d/g, (digit) => raised.charAt(Number(digit)))}`
}

function decimal(arg: Value): string {
  if (isInt(arg)) return String(arg)
  if (arg instanceof Uint) return String(arg.value)
  throw new FormatError(`decimal clause can only be used on integers, was given ${typeNameOf(arg)}`)
}

function floating(arg: Value, print: (value: number) => string, what: string): string {
  const value =
    arg instanceof Double
      ? arg.value
      : typeof arg === 'string' && /^(?:NaN|-?Infinity)$/.test(arg)
        ? Number(arg)
        : undefined
  if (value === undefined)
    throw new FormatError(`${what} clause can only be used on doubles, was given ${typeNameOf(arg)}`)
  if (Number.isNaN(value)) return 'NaN'
  return Number.isFinite(value) ? print(value) : value > 0 ? '∞' : '-∞'
}

function inBase(arg: Value, base: number, why: string): string {
  if (isInt(arg)) return arg.toString(base)
  if (arg instanceof Uint) return arg.value.toString(base)
  throw new FormatError(`${why}, was given ${typeNameOf(arg)}`)
}

function hexText(arg: Value): string {
  if (typeof arg === 'string') return Buffer.from(arg).toString('hex')
  if (arg instanceof Bytes) return Buffer.from(arg.value).toString('hex')
  return inBase(arg, 16, 'only integers, byte buffers, and strings can be formatted as hex')
}

/** A value is printed in the time of so many steps, and so many characters in that of one more. */
const printingSteps = 16
const charactersPerStep = 16

/** `isInside`: in a list or map, where texts are quoted. */
function shown(arg: Value, meter: Meter, depth: number, isInside: boolean): string {
  meter.step(printingSteps + (typeof arg === 'string' ? arg.length / charactersPerStep : 0))
  if (depth > deepest) throw new FormatError('the value is nested too deeply')
  if (arg === null) return 'null'
  if (arg instanceof ListValue) {
    const items = Array.from({ length: arg.size }, (_, index) => shown(arg.at(index), meter, depth + 1, true))
    return `[${items.join(', ')}]`
  }
  if (arg instanceof MapValue) {
    const entries = arg.keys().map((key) => {
      const value = shown(arg.get(key) ?? null, meter, depth + 1, true)
      return `${shown(key, meter, depth + 1, true)}:${value}`
    })
    return `{${entries.sort().join(', ')}}`
  }
  const text = isInside ? innerText(arg) : valueText(arg)
  if (text !== undefined) return text
  throw new FormatError(
    `string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps, was given ${typeNameOf(arg)}`,
  )
}

/** In a list or map. undefined: it has no text. */
function innerText(arg: Value): string | undefined {
  if (typeof arg === 'string') return JSON.stringify(arg)
  if (arg instanceof Double) return floating(arg, (value) => value.toFixed(6), 'fixed-point')
  if (arg instanceof Timestamp) return `timestamp("${timestampText(arg)}")`
  if (arg instanceof Duration) return `duration("${celDurationText(arg)}")`
  const text = valueText(arg)
  return text !== undefined && arg instanceof Bytes ? `b${JSON.stringify(text)}` : text
}
