/** How a function of CEL is defined. */
import type { Meter } from '../values/meter.ts'
import {
  Bytes,
  CelFailure,
  type CelOutcome,
  type Deferred,
  ListValue,
  MapValue,
  OpaqueValue,
  Optional,
  type Value,
} from '../values/value.ts'

export type FunctionDefinition = {
  /** What it takes and gives, as `checking/signatures.ts` reads it. */
  readonly overloads: readonly string[]
  /** All arguments have values; the target is the first. Values of other types than the overloads name may come where types are dyn. */
  readonly call: (args: readonly Value[], meter: Meter) => CelOutcome | Deferred
  /** The same where what it gives follows its type: the sum of no durations. undefined: it does not. */
  readonly callFor?: (result: string) => FunctionDefinition['call']
  /** In the units of Kubernetes (apiserver/pkg/cel/library/cost.go, cel-go's interpreter/runtimecost.go); undefined: 1. */
  readonly cost?: (args: readonly Value[]) => number
}

export type FunctionTable = { readonly [name: string]: FunctionDefinition }

/** A unit of cost for each ten characters. */
export const traversalFactor = 0.1
/** For each four characters of a pattern. */
export const patternFactor = 0.25

/** What costs follow (actualSize). */
export function valueSize(value: Value | undefined): number {
  if (typeof value === 'string') return value.length
  if (value instanceof ListValue || value instanceof MapValue) return value.size
  if (value instanceof Bytes) return value.value.length
  if (value instanceof Optional) return value.value === undefined ? 1 : valueSize(value.value)
  return value instanceof OpaqueValue ? value.costSize : 1
}

/** Cost of a function that reads its first argument `times` times. */
export const traversal =
  (times = 1) =>
  ([first]: readonly Value[]): number =>
    Math.ceil(valueSize(first) * times * traversalFactor)

/** Cost of matching the second argument, a pattern, with the first one. */
export function patternCost([text, pattern]: readonly Value[]): number {
  return Math.ceil((1 + valueSize(text)) * traversalFactor) * Math.ceil(valueSize(pattern) * patternFactor)
}

export function fail(message: string): CelFailure {
  return new CelFailure(message)
}
