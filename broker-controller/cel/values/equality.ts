/** Which values are equal, and which of two is less. Numbers of different types are compared by what they stand for. */
import type { Meter } from './meter.ts'
import {
  Bytes,
  Double,
  Duration,
  isInt,
  ListValue,
  MapValue,
  mapKeyText,
  ObjectValue,
  OpaqueValue,
  Optional,
  Timestamp,
  TypeValue,
  Uint,
  type Value,
} from './value.ts'

/** Values of different types are not equal. Takes steps for what it compares. */
export function equalValues(left: Value, right: Value, meter: Meter): boolean {
  meter.step()
  if (typeof left === 'string' && typeof right === 'string') return equalTexts(left, right, meter)
  if (left === right) return true
  if (typeof left !== 'object' && typeof left === typeof right) return false
  if (isNumber(left) && isNumber(right)) return compareNumbers(left, right) === 0
  if (left instanceof ListValue) return right instanceof ListValue && equalLists(left, right, meter)
  if (left instanceof MapValue) return right instanceof MapValue && equalMaps(left, right, meter)
  if (left instanceof ObjectValue) return right instanceof ObjectValue && equalObjects(left, right, meter)
  if (left instanceof Optional) return right instanceof Optional && equalOptionals(left, right, meter)
  return equalScalars(left, right)
}

function equalOptionals(left: Optional, right: Optional, meter: Meter): boolean {
  if (left.value === undefined || right.value === undefined) return left.value === right.value
  return equalValues(left.value, right.value, meter)
}

function equalScalars(left: Value, right: Value): boolean {
  if (left instanceof Bytes) return right instanceof Bytes && compareBytes(left, right) === 0
  if (left instanceof Timestamp) return right instanceof Timestamp && left.nanos === right.nanos
  if (left instanceof Duration) return right instanceof Duration && left.nanos === right.nanos
  if (left instanceof TypeValue) return right instanceof TypeValue && left.name === right.name
  if (!(left instanceof OpaqueValue) || !(right instanceof OpaqueValue)) return false
  return left.typeName === right.typeName && left.equals(right)
}

/** Characters that are compared in the time of one step. */
const charactersPerStep = 128

function equalTexts(left: string, right: string, meter: Meter): boolean {
  if (left.length !== right.length) return false
  meter.step(left.length / charactersPerStep)
  return left === right
}

function equalLists(left: ListValue, right: ListValue, meter: Meter): boolean {
  if (left.size !== right.size) return false
  const identityOf = left.identityOf ?? right.identityOf
  if (identityOf !== undefined) {
    const byIdentity = new Map<string, Value>()
    for (let index = 0; index < right.size; index++) {
      meter.step()
      byIdentity.set(identityOf(right.at(index)), right.at(index))
    }
    return every(left, (item) => {
      const other = byIdentity.get(identityOf(item))
      return other !== undefined && equalValues(item, other, meter)
    })
  }
  return every(left, (item, index) => equalValues(item, right.at(index), meter))
}

function every(list: ListValue, holds: (item: Value, index: number) => boolean): boolean {
  for (let index = 0; index < list.size; index++) if (!holds(list.at(index), index)) return false
  return true
}

function equalMaps(left: MapValue, right: MapValue, meter: Meter): boolean {
  if (left.size !== right.size) return false
  return left.keys().every((key) => {
    const [one, other] = [left.get(key), right.get(key)]
    return one !== undefined && other !== undefined && equalValues(one, other, meter)
  })
}

function equalObjects(left: ObjectValue, right: ObjectValue, meter: Meter): boolean {
  const names = left.names()
  if (names.length !== right.names().length) return false
  return names.every((name) => {
    const [one, other] = [left.part(name), right.part(name)]
    return one !== undefined && other !== undefined && equalValues(one, other, meter)
  })
}

export type NumberValue = number | bigint | Uint | Double

export function isNumber(value: Value): value is NumberValue {
  return isInt(value) || value instanceof Uint || value instanceof Double
}

/** undefined: one of them is not a number (NaN). */
export function compareNumbers(left: NumberValue, right: NumberValue): number | undefined {
  // As cel-go: an integer is compared with a floating point number as one of these.
  const isFloating = left instanceof Double || right instanceof Double
  const [a, b] = [plain(left), plain(right)].map((value) => (isFloating ? Number(value) : value))
  if (a === undefined || b === undefined) return undefined
  if (a < b) return -1
  if (a > b) return 1
  // NaN is neither less nor more.
  return Number.isNaN(a) || Number.isNaN(b) ? undefined : 0
}

function plain(value: NumberValue): number | bigint {
  return typeof value === 'object' ? value.value : value
}

function compareBytes(left: Bytes, right: Bytes): number {
  const [a, b] = [left.value, right.value]
  const length = Math.min(a.length, b.length)
  for (let index = 0; index < length; index++) {
    const difference = (a[index] ?? 0) - (b[index] ?? 0)
    if (difference !== 0) return difference
  }
  return a.length - b.length
}

/** Negative, 0 or positive; undefined: values of these types have no order, or one of them is NaN. */
export function valueOrder(left: Value, right: Value): number | undefined | 'unordered' {
  if (isNumber(left) && isNumber(right)) return compareNumbers(left, right) ?? 'unordered'
  if (typeof left === 'string' && typeof right === 'string') return compareTexts(left, right)
  if (typeof left === 'boolean' && typeof right === 'boolean') return Number(left) - Number(right)
  if (left instanceof Timestamp && right instanceof Timestamp) return compareNumbers(left.nanos, right.nanos)
  if (left instanceof Duration && right instanceof Duration) return compareNumbers(left.nanos, right.nanos)
  if (left instanceof Bytes && right instanceof Bytes) return compareBytes(left, right)
  return undefined
}

/** In the order of UTF-8, which is that of code points and not that of JavaScript. */
function compareTexts(left: string, right: string): number {
  if (left === right) return 0
  const length = Math.min(left.length, right.length)
  let at = 0
  while (at < length && left.charCodeAt(at) === right.charCodeAt(at)) at++
  if (at === length) return left.length - right.length
  const [a, b] = [left.charCodeAt(at), right.charCodeAt(at)]
  const isSurrogate = (code: number) => code >= 0xd800 && code <= 0xdfff
  if (isSurrogate(a) !== isSurrogate(b)) return isSurrogate(a) ? 1 : -1
  return a - b
}

/** Whether a list has the value. */
export function listHas(list: ListValue, value: Value, meter: Meter): boolean {
  for (let index = 0; index < list.size; index++) if (equalValues(list.at(index), value, meter)) return true
  return false
}

/** Entries of a map; undefined: one of the keys cannot be a key, or is there twice. */
export function entriesByKey(
  entries: readonly (readonly [key: Value, value: Value])[],
): ReadonlyMap<string, readonly [Value, Value]> | undefined {
  const byKey = new Map<string, readonly [Value, Value]>()
  for (const entry of entries) {
    const text = mapKeyText(entry[0])
    if (text === undefined || byKey.has(text)) return undefined
    byKey.set(text, entry)
  }
  return byKey
}
