/** Values that may not be there (cel-go's cel.OptionalTypes). `or` and `orValue` are strict here: what they are given has no effects. */

import { timestampText } from '../values/time-values.ts'
import {
  Bytes,
  type CelOutcome,
  Double,
  Duration,
  ListValue,
  MapValue,
  none,
  noSuchOverload,
  ObjectValue,
  Optional,
  Timestamp,
  Uint,
  type Value,
} from '../values/value.ts'
import { type FunctionTable, fail, valueSize } from './definition.ts'

const ofOptional =
  (call: (optional: Optional, other: Value) => CelOutcome) =>
  ([optional, other = null]: readonly Value[]): CelOutcome =>
    optional instanceof Optional ? call(optional, other) : noSuchOverload

function isZero(value: Value): boolean {
  if (value === null || value === false || value === 0 || value === '') return true
  if (value instanceof Uint) return value.value === 0n
  if (value instanceof Double) return value.value === 0
  if (value instanceof Duration) return value.nanos === 0n
  // As Go's time.Time.
  if (value instanceof Timestamp) return timestampText(value) === '0001-01-01T00:00:00Z'
  if (value instanceof ObjectValue) return value.names().length === 0
  const isSized = value instanceof Bytes || value instanceof ListValue || value instanceof MapValue
  return isSized && valueSize(value) === 0
}

export const optionals: FunctionTable = {
  'optional.of': { overloads: ['(A): optional<A>'], call: ([value]) => new Optional(value) },
  'optional.none': { overloads: ['(): optional<A>'], call: () => none },
  'optional.ofNonZeroValue': {
    overloads: ['(A): optional<A>'],
    call: ([value = null]) => (isZero(value) ? none : new Optional(value)),
  },
  hasValue: { overloads: ['optional<A>.(): bool'], call: ofOptional(({ value }) => value !== undefined) },
  value: {
    overloads: ['optional<A>.(): A'],
    call: ofOptional(({ value }) => (value === undefined ? fail('optional.none() dereference') : value)),
  },
  or: {
    overloads: ['optional<A>.(optional<A>): optional<A>'],
    call: ofOptional((optional, other) => (optional.value === undefined ? other : optional)),
  },
  orValue: {
    overloads: ['optional<A>.(A): A'],
    call: ofOptional(({ value }, other) => (value === undefined ? other : value)),
  },
}
