/** Sizes, types, and conversions between types. */
import { countedCharacters } from '../values/characters.ts'
import { isNumber } from '../values/equality.ts'
import type { Meter } from '../values/meter.ts'
import {
  celDurationText,
  celSeconds,
  dateInZone,
  durationOf,
  nanosPerSecond,
  parseGoDuration,
  parseTimestamp,
  timestampOf,
  timestampText,
} from '../values/time-values.ts'
import {
  Bytes,
  CelFailure,
  type CelOutcome,
  Double,
  Duration,
  intOf,
  isInt,
  ListValue,
  MapValue,
  noSuchOverload,
  OpaqueValue,
  Timestamp,
  TypeValue,
  typeNameOf,
  Uint,
  uintOf,
  type Value,
} from '../values/value.ts'
import { type FunctionDefinition, type FunctionTable, fail, traversal } from './definition.ts'

function sized([value]: readonly Value[], meter: Meter): CelOutcome {
  if (typeof value === 'string') return countedCharacters(value, meter).length
  if (value instanceof ListValue || value instanceof MapValue) return value.size
  return value instanceof Bytes ? value.value.length : noSuchOverload
}

const outOfRange = fail('integer overflow')

function wholeOf(value: number): bigint | undefined {
  return Number.isFinite(value) ? BigInt(Math.trunc(value)) : undefined
}

function toInt([value = null]: readonly Value[]): CelOutcome {
  if (isInt(value)) return value
  if (value instanceof Uint) return intOf(value.value) ?? outOfRange
  if (value instanceof Double) return intOfDouble(value)
  if (value instanceof Timestamp) return intOf(celSeconds(value.nanos).seconds) ?? outOfRange
  if (value instanceof Duration) return intOf(value.nanos) ?? outOfRange
  if (typeof value !== 'string') return noSuchOverload
  const whole = /^[+-]?\d{1,32}$/.test(value) ? intOf(BigInt(value.replace('+', ''))) : undefined
  return whole ?? fail(`type conversion error from 'string' to 'int'`)
}

function intOfDouble({ value }: Double): CelOutcome {
  const whole = wholeOf(value)
  // As cel-go: the doubles nearest to the ends of the range are outside of it.
  const isInside = value > -(2 ** 63) && value < 2 ** 63
  return whole === undefined || !isInside ? outOfRange : (intOf(whole) ?? outOfRange)
}

function toUint([value = null]: readonly Value[]): CelOutcome {
  const overflow = fail('unsigned integer overflow')
  if (value instanceof Uint) return value
  if (isInt(value)) return uintOf(BigInt(value)) ?? overflow
  if (value instanceof Double) {
    const whole = wholeOf(value.value)
    return whole === undefined || value.value < 0 || value.value >= 2 ** 64 ? overflow : (uintOf(whole) ?? overflow)
  }
  if (typeof value !== 'string') return noSuchOverload
  const whole = /^\d{1,32}$/.test(value) ? uintOf(BigInt(value)) : undefined
  return whole ?? fail(`type conversion error from 'string' to 'uint'`)
}

function toDouble([value = null]: readonly Value[]): CelOutcome {
  if (isNumber(value)) return new Double(Number(typeof value === 'object' ? value.value : value))
  if (typeof value !== 'string') return noSuchOverload
  const special: ReadonlyMap<string, number> = new Map([
    ['NaN', Number.NaN],
    ['Infinity', Number.POSITIVE_INFINITY],
    ['-Infinity', Number.NEGATIVE_INFINITY],
  ])
  const known = special.get(value)
  if (known !== undefined) return new Double(known)
  const isNumeric = value.length < 400 && /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/.test(value)
  return isNumeric ? new Double(Number(value)) : fail(`type conversion error from 'string' to 'double'`)
}

/** As Go's strconv.FormatFloat with format `g` and the fewest digits: `1e+06`, `0.5`. */
export function doubleText(value: number): string {
  if (Number.isNaN(value)) return 'NaN'
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf'
  if (value === 0) return Object.is(value, -0) ? '-0' : '0'
  const [mantissa = '', exponent = '0'] = value.toExponential().split('e')
  const power = Number(exponent)
  if (power >= -4 && power < 6) return plainDigits(mantissa, power)
  const sign = power < 0 ? '-' : '+'
  return `${mantissa}e${sign}${String(Math.abs(power)).padStart(2, '0')}`
}

/** `1.25` and 1: `12.5`. */
function plainDigits(mantissa: string, power: number): string {
  const sign = mantissa.startsWith('-') ? '-' : ''
  const digits = mantissa.replace(/[-.]/g, '')
  if (power < 0) return `${sign}0.${'0'.repeat(-power - 1)}${digits}`
  const whole = digits.slice(0, power + 1).padEnd(power + 1, '0')
  const fraction = digits.slice(power + 1)
  return `${sign}${whole}${fraction === '' ? '' : `.${fraction}`}`
}

/** undefined: it has none. */
export function valueText(value: Value): string | undefined {
  if (typeof value === 'string') return value
  if (typeof value === 'boolean' || isInt(value)) return String(value)
  if (value instanceof Uint) return String(value.value)
  if (value instanceof Double) return doubleText(value.value)
  if (value instanceof Timestamp) return timestampText(value)
  if (value instanceof Duration) return celDurationText(value)
  if (value instanceof TypeValue) return value.name
  if (value instanceof OpaqueValue && 'text' in value && typeof value.text === 'string') return value.text
  if (!(value instanceof Bytes)) return undefined
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(value.value)
  } catch {
    return undefined
  }
}

function toText([value = null]: readonly Value[]): CelOutcome {
  const text = valueText(value)
  if (text !== undefined) return text
  return value instanceof Bytes ? fail('invalid UTF-8 in bytes, cannot convert to string') : noSuchOverload
}

const truths: ReadonlyMap<string, boolean> = new Map([
  ...['1', 't', 'T', 'TRUE', 'true', 'True'].map((word) => [word, true] as const),
  ...['0', 'f', 'F', 'FALSE', 'false', 'False'].map((word) => [word, false] as const),
])

function toBool([value = null]: readonly Value[]): CelOutcome {
  if (typeof value === 'boolean') return value
  if (typeof value !== 'string') return noSuchOverload
  return truths.get(value) ?? fail(`type conversion error from 'string' to 'bool'`)
}

function toTimestamp([value = null]: readonly Value[]): CelOutcome {
  if (value instanceof Timestamp) return value
  if (isInt(value)) return timestampOf(BigInt(value) * nanosPerSecond) ?? fail('timestamp overflow')
  if (typeof value !== 'string') return noSuchOverload
  return parseTimestamp(value) ?? fail(`type conversion error from 'string' to 'google.protobuf.Timestamp'`)
}

function toDuration([value = null]: readonly Value[]): CelOutcome {
  if (value instanceof Duration) return value
  if (isInt(value)) return durationOf(BigInt(value)) ?? outOfRange
  if (typeof value !== 'string') return noSuchOverload
  return parseGoDuration(value) ?? fail(`type conversion error from 'string' to 'google.protobuf.Duration'`)
}

function toBytes([value]: readonly Value[]): CelOutcome {
  if (typeof value === 'string') return new Bytes(new TextEncoder().encode(value))
  return value instanceof Bytes ? value : noSuchOverload
}

/** A part of the date and time of a timestamp in a zone, UTC where none is named. */
function timePart(
  part: (date: Date, nanos: bigint) => number,
  ofDuration?: (nanos: bigint) => bigint,
): FunctionDefinition {
  return {
    overloads: [
      ...['timestamp.(): int', 'timestamp.(string): int'],
      ...(ofDuration === undefined ? [] : ['duration.(): int']),
    ],
    call: ([value, zone = '']) => {
      if (value instanceof Duration && ofDuration !== undefined) return intOf(ofDuration(value.nanos)) ?? outOfRange
      if (!(value instanceof Timestamp) || typeof zone !== 'string') return noSuchOverload
      const date = dateInZone(value, zone)
      return date === undefined ? new CelFailure(`unknown time zone ${zone}`) : part(date, value.nanos)
    },
  }
}

const dayMs = 86_400_000

function dayOfYear(date: Date): number {
  return Math.floor((date.getTime() - Date.UTC(date.getUTCFullYear(), 0, 1)) / dayMs)
}

export const conversions: FunctionTable = {
  size: {
    overloads: ['string', 'bytes', 'list<A>', 'map<A, B>'].flatMap((type) => [`(${type}): int`, `${type}.(): int`]),
    call: sized,
  },
  type: { overloads: ['(A): type<A>'], call: ([value = null]) => new TypeValue(typeNameOf(value)) },
  dyn: { overloads: ['(A): dyn'], call: ([value = null]) => value },
  int: {
    overloads: ['int', 'uint', 'double', 'string', 'timestamp', 'duration'].map((type) => `(${type}): int`),
    call: toInt,
  },
  uint: { overloads: ['uint', 'int', 'double', 'string'].map((type) => `(${type}): uint`), call: toUint },
  double: { overloads: ['double', 'int', 'uint', 'string'].map((type) => `(${type}): double`), call: toDouble },
  string: {
    overloads: [
      ...['string', 'bool', 'int', 'uint', 'double', 'bytes', 'timestamp', 'duration', 'net.IP', 'net.CIDR'].map(
        (type) => `(${type}): string`,
      ),
    ],
    cost: (args) => (args[0] instanceof Bytes ? traversal()(args) : 1),
    call: toText,
  },
  bool: { overloads: ['(bool): bool', '(string): bool'], call: toBool },
  bytes: {
    overloads: ['(bytes): bytes', '(string): bytes'],
    cost: (args) => (typeof args[0] === 'string' ? traversal()(args) : 1),
    call: toBytes,
  },
  timestamp: {
    overloads: ['(string): timestamp', '(timestamp): timestamp', '(int): timestamp'],
    call: toTimestamp,
  },
  duration: { overloads: ['(string): duration', '(duration): duration', '(int): duration'], call: toDuration },
  getFullYear: timePart((date) => date.getUTCFullYear()),
  getMonth: timePart((date) => date.getUTCMonth()),
  getDate: timePart((date) => date.getUTCDate()),
  getDayOfMonth: timePart((date) => date.getUTCDate() - 1),
  getDayOfWeek: timePart((date) => date.getUTCDay()),
  getDayOfYear: timePart(dayOfYear),
  getHours: timePart(
    (date) => date.getUTCHours(),
    (nanos) => nanos / (3600n * nanosPerSecond),
  ),
  getMinutes: timePart(
    (date) => date.getUTCMinutes(),
    (nanos) => nanos / (60n * nanosPerSecond),
  ),
  getSeconds: timePart(
    (date) => date.getUTCSeconds(),
    (nanos) => nanos / nanosPerSecond,
  ),
  getMilliseconds: timePart(
    (_, nanos) => Number(celSeconds(nanos).rest / 1_000_000n),
    (nanos) => nanos / 1_000_000n,
  ),
}
