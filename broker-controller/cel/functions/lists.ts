/** Functions of lists and sets: Kubernetes' (apiserver/pkg/cel/library/lists.go) and cel-go's ext.Sets. */
import { equalValues, listHas, valueOrder } from '../values/equality.ts'
import type { Meter } from '../values/meter.ts'
import {
  Bytes,
  CelFailure,
  type CelOutcome,
  Deferred,
  Double,
  Duration,
  ListValue,
  MapValue,
  noSuchOverload,
  Uint,
  type Value,
} from '../values/value.ts'
import { type FunctionTable, fail, traversalFactor, valueSize } from './definition.ts'
import { listItems, operators } from './operators.ts'
import { searches } from './texts.ts'

const comparable = ['int', 'uint', 'double', 'bool', 'duration', 'timestamp', 'string', 'bytes']
const zeros: { readonly [type: string]: Value } = {
  ...{ int: 0, uint: new Uint(0n), double: new Double(0), duration: new Duration(0n) },
}

type ListCall = (list: ListValue, meter: Meter) => CelOutcome

const ofList =
  (call: ListCall) =>
  ([list]: readonly Value[], meter: Meter): CelOutcome => {
    if (!(list instanceof ListValue)) return noSuchOverload
    meter.step(list.size)
    return call(list, meter)
  }

function isSorted(list: ListValue): CelOutcome {
  for (let index = 1; index < list.size; index++) {
    const order = valueOrder(list.at(index - 1), list.at(index))
    if (order === undefined) return noSuchOverload
    if (order === 'unordered' || order > 0) return false
  }
  return true
}

const sumFrom = (zero: Value) =>
  ofList((list, meter) => {
    const add = operators['_+_']
    let total = zero
    for (const item of listItems(list)) {
      const next = add?.call([total, item], meter) ?? noSuchOverload
      if (next instanceof Deferred) return noSuchOverload
      if (next instanceof CelFailure) return next
      total = next
    }
    return total
  })

/** Where the type is not known before. */
const sum = ([list]: readonly Value[], meter: Meter): CelOutcome => {
  const first = list instanceof ListValue && list.size > 0 ? list.at(0) : 0
  const zero = Object.values(zeros).find((value) => value?.constructor === first?.constructor) ?? 0
  return sumFrom(zero)([list ?? null], meter)
}

/** The first item that none of the others is before, in this direction. */
const extreme = (name: string, sign: 1 | -1) =>
  ofList((list) => {
    if (list.size === 0) return fail(`${name} called on empty list`)
    let best = list.at(0)
    for (let index = 1; index < list.size; index++) {
      const order = valueOrder(list.at(index), best)
      if (order === undefined) return noSuchOverload
      if (order !== 'unordered' && order * sign > 0) best = list.at(index)
    }
    return best
  })

function placeIn(list: ListValue, item: Value, meter: Meter, isLast: boolean): number {
  for (let step = 0; step < list.size; step++) {
    const index = isLast ? list.size - 1 - step : step
    if (equalValues(list.at(index), item, meter)) return index
  }
  return -1
}

const place =
  (name: 'indexOf' | 'lastIndexOf') =>
  (args: readonly Value[], meter: Meter): CelOutcome => {
    const [list, item = null] = args
    return list instanceof ListValue ? placeIn(list, item, meter, name === 'lastIndexOf') : searches[name](args, meter)
  }

/** A traversal of the whole value (traversalCost). */
export function wholeCost([value]: readonly Value[]): number {
  return Math.ceil(costOfAll(value, 0))
}

const deepest = 4

function costOfAll(value: Value | undefined, depth: number): number {
  if (typeof value === 'string' || value instanceof Bytes) return valueSize(value) * traversalFactor
  if (depth > deepest) return 1
  if (value instanceof ListValue)
    return listItems(value).reduce<number>((total, item) => total + costOfAll(item, depth + 1), 0)
  return value instanceof MapValue ? value.size * 2 : 1
}

type SetCall = (left: ListValue, right: ListValue, meter: Meter) => boolean

const hasAll: SetCall = (left, right, meter) => listItems(right).every((item) => listHas(left, item, meter))

const ofSets = (call: SetCall) => ({
  overloads: ['(list<A>, list<A>): bool'],
  cost: ([left, right]: readonly Value[]) => 1 + valueSize(left) * valueSize(right),
  call: ([left, right]: readonly Value[], meter: Meter): CelOutcome =>
    left instanceof ListValue && right instanceof ListValue ? call(left, right, meter) : noSuchOverload,
})

export const lists: FunctionTable = {
  isSorted: {
    overloads: comparable.map((type) => `list<${type}>.(): bool`),
    cost: wholeCost,
    call: ofList(isSorted),
  },
  sum: {
    overloads: Object.keys(zeros).map((type) => `list<${type}>.(): ${type}`),
    cost: wholeCost,
    call: sum,
    callFor: (result) => (Object.hasOwn(zeros, result) ? sumFrom(zeros[result] ?? 0) : sum),
  },
  min: {
    overloads: comparable.map((type) => `list<${type}>.(): ${type}`),
    cost: wholeCost,
    call: extreme('min', -1),
  },
  max: {
    overloads: comparable.map((type) => `list<${type}>.(): ${type}`),
    cost: wholeCost,
    call: extreme('max', 1),
  },
  indexOf: {
    overloads: ['list<A>.(A): int', 'string.(string): int', 'string.(string, int): int'],
    cost: wholeCost,
    call: place('indexOf'),
  },
  lastIndexOf: {
    overloads: ['list<A>.(A): int', 'string.(string): int', 'string.(string, int): int'],
    cost: wholeCost,
    call: place('lastIndexOf'),
  },
  'sets.contains': ofSets(hasAll),
  'sets.equivalent': ofSets((left, right, meter) => hasAll(left, right, meter) && hasAll(right, left, meter)),
  'sets.intersects': ofSets((left, right, meter) => listItems(right).some((item) => listHas(left, item, meter))),
}
