/** Operators, and what macros are made of. `&&`, `||` and `?:` are evaluated without being called. */
import { entriesByKey, equalValues, isNumber, listHas, type NumberValue, valueOrder } from '../values/equality.ts'
import type { Meter } from '../values/meter.ts'
import { durationOf, timestampOf } from '../values/time-values.ts'
import {
  ArrayList,
  Bytes,
  CelFailure,
  type CelOutcome,
  Double,
  Duration,
  EntryMap,
  intOf,
  isInt,
  ListValue,
  MapValue,
  none,
  noSuchOverload,
  Optional,
  Timestamp,
  Uint,
  uintOf,
  type Value,
} from '../values/value.ts'
import { type FunctionTable, fail, traversalFactor, valueSize } from './definition.ts'

const smallerTraversal = ([left, right]: readonly Value[]) =>
  Math.ceil(Math.min(valueSize(left), valueSize(right)) * traversalFactor)

const ordered = ['bool', 'string', 'bytes', 'timestamp', 'duration']
const numbers = ['int', 'uint', 'double']
const comparisons = [
  ...ordered.map((type) => `(${type}, ${type}): bool`),
  ...numbers.flatMap((left) => numbers.map((right) => `(${left}, ${right}): bool`)),
]

function comparison(holds: (order: number) => boolean) {
  return {
    overloads: comparisons,
    cost: smallerTraversal,
    call: ([left = null, right = null]: readonly Value[]): CelOutcome => {
      const order = valueOrder(left, right)
      if (order === 'unordered') return false
      return order === undefined ? noSuchOverload : holds(order)
    },
  }
}

const outOfRange = fail('integer overflow')
const unsignedOutOfRange = fail('unsigned integer overflow')

type Arithmetic = {
  /** For integers that JavaScript represents exactly. */
  readonly safe: (left: number, right: number) => number
  readonly exact: (left: bigint, right: bigint) => bigint
  /** For floating-point numbers; undefined: not defined for them. */
  readonly floating: ((left: number, right: number) => number) | undefined
  /** What is wrong with 0 as the right one of integers. */
  readonly byZero?: string
}

/** undefined: the operands are not numbers of one type. */
function calculated(left: Value, right: Value, arithmetic: Arithmetic): CelOutcome | undefined {
  if (isInt(left) && isInt(right)) return calculatedInt(left, right, arithmetic)
  const { exact, floating, byZero } = arithmetic
  if (left instanceof Uint && right instanceof Uint) {
    if (byZero !== undefined && right.value === 0n) return fail(byZero)
    return uintOf(exact(left.value, right.value)) ?? unsignedOutOfRange
  }
  if (floating === undefined || !(left instanceof Double) || !(right instanceof Double)) return undefined
  return new Double(floating(left.value, right.value))
}

function calculatedInt(left: number | bigint, right: number | bigint, { safe, exact, byZero }: Arithmetic): CelOutcome {
  if (byZero !== undefined && right === 0) return fail(byZero)
  if (typeof left === 'number' && typeof right === 'number') {
    const result = safe(left, right)
    // No integer is -0.
    if (Number.isSafeInteger(result)) return result === 0 ? 0 : result
  }
  return intOf(exact(BigInt(left), BigInt(right))) ?? outOfRange
}

const plus = (a: number, b: number) => a + b
const minus = (a: number, b: number) => a - b
const times = (a: number, b: number) => a * b
const addition: Arithmetic = { safe: plus, exact: (a, b) => a + b, floating: plus }
const subtraction: Arithmetic = { safe: minus, exact: (a, b) => a - b, floating: minus }
const multiplication: Arithmetic = { safe: times, exact: (a, b) => a * b, floating: times }
const division: Arithmetic = {
  safe: (a, b) => Math.trunc(a / b),
  exact: (a, b) => a / b,
  floating: (a, b) => a / b,
  byZero: 'division by zero',
}
const modulus: Arithmetic = {
  safe: (a, b) => a % b,
  exact: (a, b) => a % b,
  floating: undefined,
  byZero: 'modulus by zero',
}

const sameNumbers = numbers.map((type) => `(${type}, ${type}): ${type}`)
const wholeNumbers = sameNumbers.slice(0, 2)

function added([left = null, right = null]: readonly Value[], meter: Meter): CelOutcome {
  const number = calculated(left, right, addition)
  if (number !== undefined) return number
  if (typeof left === 'string' && typeof right === 'string') return left + right
  if (left instanceof Bytes && right instanceof Bytes) return new Bytes(Buffer.concat([left.value, right.value]))
  if (left instanceof ListValue && right instanceof ListValue) return joinedLists(left, right, meter)
  if (left instanceof Duration && right instanceof Duration) return durationOf(left.nanos + right.nanos) ?? outOfRange
  const [moment, length] = left instanceof Timestamp ? [left, right] : [right, left]
  if (!(moment instanceof Timestamp) || !(length instanceof Duration)) return noSuchOverload
  return timestampOf(moment.nanos + length.nanos) ?? fail('timestamp overflow')
}

function joinedLists(left: ListValue, right: ListValue, meter: Meter): ListValue {
  meter.step(left.size + right.size)
  const { identityOf } = left
  if (identityOf === undefined) return new ArrayList([...listItems(left), ...listItems(right)])
  // A set or a map has what is in both once, as the right one has it.
  const items = new Map([...listItems(left), ...listItems(right)].map((item) => [identityOf(item), item]))
  return new ArrayList([...items.values()])
}

/** All items of a list. */
export function listItems(list: ListValue): Value[] {
  return Array.from({ length: list.size }, (_, index) => list.at(index))
}

function subtracted([left = null, right = null]: readonly Value[]): CelOutcome {
  const number = calculated(left, right, subtraction)
  if (number !== undefined) return number
  if (left instanceof Duration && right instanceof Duration) return durationOf(left.nanos - right.nanos) ?? outOfRange
  if (!(left instanceof Timestamp)) return noSuchOverload
  if (right instanceof Timestamp) return durationOf(left.nanos - right.nanos) ?? outOfRange
  if (!(right instanceof Duration)) return noSuchOverload
  return timestampOf(left.nanos - right.nanos) ?? fail('timestamp overflow')
}

function negated([value = null]: readonly Value[]): CelOutcome {
  if (isInt(value)) return intOf(-BigInt(value)) ?? outOfRange
  return value instanceof Double ? new Double(-value.value) : noSuchOverload
}

/** A whole number as the index of a list; undefined: it is not one. */
function indexOf(value: NumberValue): number | undefined {
  const number = Number(typeof value === 'object' ? value.value : value)
  return Number.isInteger(number) ? number : undefined
}

/** What is at the index, or under the key; undefined: nothing. */
export function itemAt(container: Value, key: Value): CelOutcome | undefined {
  if (container instanceof MapValue) return container.get(key)
  if (!(container instanceof ListValue) || !isNumber(key)) return noSuchOverload
  const index = indexOf(key)
  if (index === undefined) return fail(`unsupported index value: ${keyAsText(key)}`)
  return index < 0 || index >= container.size ? undefined : container.at(index)
}

function indexed([container = null, key = null]: readonly Value[]): CelOutcome {
  if (container instanceof Optional) return optionallyIndexed([container, key])
  const found = itemAt(container, key)
  if (found !== undefined) return found
  return container instanceof MapValue ? noSuchKey(key) : fail(`index out of bounds: ${keyAsText(key)}`)
}

export function noSuchKey(key: Value): CelOutcome {
  return fail(`no such key: ${keyAsText(key)}`)
}

function keyAsText(key: Value): string {
  return String(typeof key === 'object' && key !== null && 'value' in key ? key.value : key)
}

function optionallyIndexed([container = null, key = null]: readonly Value[]): CelOutcome {
  if (container instanceof Optional) {
    return container.value === undefined ? none : optionallyIndexed([container.value, key])
  }
  const found = itemAt(container, key)
  if (found === undefined) return none
  return found instanceof CelFailure ? found : new Optional(found)
}

function contained([value = null, container = null]: readonly Value[], meter: Meter): CelOutcome {
  if (container instanceof ListValue) return listHas(container, value, meter)
  return container instanceof MapValue ? container.get(value) !== undefined : noSuchOverload
}

/** An entry that is copied takes as long as so many instructions. */
const copyingSteps = 4

function inserted([map = null, key = null, value]: readonly Value[], meter: Meter): CelOutcome {
  if (!(map instanceof MapValue)) return noSuchOverload
  if (value === undefined && !(key instanceof MapValue)) return noSuchOverload
  const more: (readonly [Value, Value])[] =
    key instanceof MapValue && value === undefined ? pairsOf(key) : [[key, value ?? null]]
  meter.step((map.size + more.length) * copyingSteps)
  const entries = entriesByKey([...pairsOf(map), ...more])
  if (entries !== undefined) return new EntryMap(entries)
  return fail(`insert failed: key ${keyAsText(more[0]?.[0] ?? null)} already exists`)
}

function pairsOf(map: MapValue): (readonly [Value, Value])[] {
  return map.keys().map((key) => [key, map.get(key) ?? null])
}

function equals([left = null, right = null]: readonly Value[], meter: Meter): boolean {
  return equalValues(left, right, meter)
}

export const operators: FunctionTable = {
  '!_': { overloads: ['(bool): bool'], call: ([value]) => (typeof value === 'boolean' ? !value : noSuchOverload) },
  '-_': { overloads: ['(int): int', '(double): double'], call: negated },
  '_==_': { overloads: ['(A, A): bool'], cost: smallerTraversal, call: equals },
  '_!=_': { overloads: ['(A, A): bool'], cost: smallerTraversal, call: (args, meter) => !equals(args, meter) },
  '_<_': comparison((order) => order < 0),
  '_<=_': comparison((order) => order <= 0),
  '_>_': comparison((order) => order > 0),
  '_>=_': comparison((order) => order >= 0),
  '_+_': {
    overloads: [
      ...sameNumbers,
      ...['(string, string): string', '(bytes, bytes): bytes', '(list<A>, list<A>): list<A>'],
      ...['(duration, duration): duration', '(timestamp, duration): timestamp', '(duration, timestamp): timestamp'],
    ],
    cost: ([left, right]) =>
      typeof left === 'string' || left instanceof Bytes
        ? Math.ceil((valueSize(left) + valueSize(right)) * traversalFactor)
        : 1,
    call: added,
  },
  '_-_': {
    overloads: [
      ...sameNumbers,
      ...['(duration, duration): duration', '(timestamp, duration): timestamp', '(timestamp, timestamp): duration'],
    ],
    call: subtracted,
  },
  '_*_': { overloads: sameNumbers, call: ([a = null, b = null]) => calculated(a, b, multiplication) ?? noSuchOverload },
  '_/_': { overloads: sameNumbers, call: ([a = null, b = null]) => calculated(a, b, division) ?? noSuchOverload },
  '_%_': { overloads: wholeNumbers, call: ([a = null, b = null]) => calculated(a, b, modulus) ?? noSuchOverload },
  '_[_]': {
    overloads: [
      ...['(list<A>, int): A', '(map<A, B>, A): B'],
      ...['(optional<list<A>>, int): optional<A>', '(optional<map<A, B>>, A): optional<B>'],
    ],
    call: indexed,
  },
  '_[?_]': {
    overloads: [
      ...['(list<A>, int): optional<A>', '(optional<list<A>>, int): optional<A>'],
      ...['(map<A, B>, A): optional<B>', '(optional<map<A, B>>, A): optional<B>'],
    ],
    call: optionallyIndexed,
  },
  '@in': {
    overloads: ['(A, list<A>): bool', '(A, map<A, B>): bool'],
    cost: ([, container]) => (container instanceof ListValue ? container.size : 1),
    call: contained,
  },
  '@mapInsert': { overloads: ['(map<A, B>, A, B): map<A, B>', '(map<A, B>, map<A, B>): map<A, B>'], call: inserted },
}

/** Operators that do without the values of some operands. */
export const lazyOperators: { readonly [name: string]: readonly string[] } = {
  '_&&_': ['(bool, bool): bool'],
  '_||_': ['(bool, bool): bool'],
  '_?_:_': ['(bool, A, A): A'],
  '@not_strictly_false': ['(bool): bool'],
}
