/**
 * What an expression costs at worst, before it runs (cel-go's checker/cost.go, apiserver/pkg/cel/library/cost.go): by the sizes that the
 * schema allows. A definition that Kubernetes accepts must be accepted here.
 */
import type { Checked } from './checking/checker.ts'
import type { CelType } from './checking/types.ts'
import { patternFactor, traversalFactor, valueSize } from './functions/definition.ts'
import { accumulator, type Call, type Comprehension, type Expression, type Select } from './syntax/expression.ts'

/** Least and most. */
export type Estimate = { readonly min: number; readonly max: number }

/** Where a value comes from: `['self', 'spec', '@items']`. */
export type ValuePath = readonly string[]

const most = 2 ** 64
const unknown: Estimate = { min: 0, max: most }
const exactly = (value: number): Estimate => ({ min: value, max: value })
const zero = exactly(0)
const one = exactly(1)

const capped = (value: number) => Math.min(value, most)
const plus = (a: Estimate, b: Estimate): Estimate => ({ min: capped(a.min + b.min), max: capped(a.max + b.max) })
const times = (a: Estimate, b: Estimate): Estimate => ({ min: capped(a.min * b.min), max: capped(a.max * b.max) })
const scaled = ({ min, max }: Estimate, factor: number): Estimate => ({
  min: capped(Math.ceil(min * factor)),
  max: capped(Math.ceil(max * factor)),
})
const union = (a: Estimate, b: Estimate): Estimate => ({ min: Math.min(a.min, b.min), max: Math.max(a.max, b.max) })
const sumOf = (costs: readonly Estimate[]) => costs.reduce(plus, zero)

/** `sizeAt`: the largest size of a value of the schema; undefined: it has none. */
export function estimatedCost(checked: Checked, sizeAt: (path: ValuePath) => number | undefined): Estimate {
  return new Estimator(checked, sizeAt).cost(checked.expression)
}

type Entry = { readonly key: Estimate; readonly value: Estimate }
type Local = { readonly name: string; readonly path: ValuePath; readonly size?: Estimate; readonly entry?: Entry }

const literalCosts = { list: exactly(10), map: exactly(30) }

class Estimator {
  readonly #checked: Checked
  readonly #sizeAt: (path: ValuePath) => number | undefined
  readonly #locals: Local[] = []
  readonly #paths = new Map<Expression, ValuePath>()
  readonly #sizes = new Map<Expression, Estimate>()
  readonly #entries = new Map<Expression, Entry>()

  constructor(checked: Checked, sizeAt: (path: ValuePath) => number | undefined) {
    this.#checked = checked
    this.#sizeAt = sizeAt
  }

  cost(expression: Expression): Estimate {
    switch (expression.kind) {
      case 'constant':
        return zero
      case 'identifier':
        this.#paths.set(expression, this.#local(expression.name)?.path ?? [expression.name])
        return one
      case 'select':
        return this.#select(expression)
      case 'call':
        return this.#call(expression)
      case 'list':
        return this.#literal(expression, [], expression.items)
      case 'map':
        return this.#literal(
          expression,
          expression.entries.map(({ key }) => key),
          expression.entries.map(({ value }) => value),
        )
      case 'comprehension':
        return this.#comprehension(expression)
      case 'binding':
        return this.#binding(expression)
    }
  }

  #local(name: string): Local | undefined {
    return this.#locals.findLast((local) => local.name === name)
  }

  #within<T>(locals: readonly Local[], act: () => T): T {
    this.#locals.push(...locals)
    const result = act()
    this.#locals.length -= locals.length
    return result
  }

  #select(select: Select): Estimate {
    const operand = this.cost(select.operand)
    if (select.testsOnly) return operand
    this.#paths.set(select, [...this.#path(select.operand), select.field])
    const { kind } = this.#checked.typeOf(select.operand)
    return kind === 'map' || kind === 'object' || kind === 'parameter' ? plus(operand, one) : operand
  }

  #literal(literal: Expression & { kind: 'list' | 'map' }, keys: readonly Expression[], values: readonly Expression[]) {
    const costs = [...keys, ...values].map((part) => this.cost(part))
    const sizeOfAll = (parts: readonly Expression[]) =>
      parts.length === 0 ? zero : parts.map((part) => this.#size(part)).reduce(union)
    const key = literal.kind === 'list' ? one : sizeOfAll(keys)
    this.#entries.set(literal, { key, value: sizeOfAll(values) })
    return plus(sumOf(costs), literalCosts[literal.kind])
  }

  #binding({ name, value, result }: Expression & { kind: 'binding' }): Estimate {
    const cost = this.cost(value)
    return this.#within([this.#localOf(name, value)], () => plus(cost, this.cost(result)))
  }

  #localOf(name: string, value: Expression): Local {
    const [size, entry] = [this.#known(value), this.#entry(value)]
    return { name, path: this.#path(value), ...(size && { size }), ...(entry && { entry }) }
  }

  #comprehension(loop: Comprehension): Estimate {
    const before = plus(this.cost(loop.range), this.cost(loop.initial))
    return this.#within([this.#localOf(accumulator, loop.initial)], () => {
      const each = this.#within(this.#variables(loop), () => plus(this.cost(loop.condition), this.cost(loop.step)))
      const after = this.cost(loop.result)
      const count = this.#size(loop.range)
      if (loop.initial.kind === 'list' || loop.initial.kind === 'map') {
        this.#sizes.set(loop, count)
        const entry = this.#entry(loop.step)
        if (entry !== undefined) this.#entries.set(loop, entry)
      } else if (loop.initial.kind === 'constant') this.#sizes.set(loop, one)
      return plus(plus(before, after), times(count, each))
    })
  }

  #variables({ range, variable, second }: Comprehension): readonly Local[] {
    const [path, entry] = [this.#path(range), this.#entry(range)]
    const isList = this.#checked.typeOf(range).kind === 'list'
    const key: Local = {
      name: variable,
      path: [...path, isList ? '@indices' : '@keys'],
      ...(entry && { size: entry.key }),
    }
    const value: Local = {
      name: variable,
      path: [...path, isList ? '@items' : '@values'],
      ...(entry && { size: entry.value }),
    }
    return second === undefined ? [isList ? value : key] : [key, { ...value, name: second }]
  }

  #path(expression: Expression): ValuePath {
    const local = expression.kind === 'identifier' ? this.#local(expression.name) : undefined
    return local?.path ?? this.#paths.get(expression) ?? []
  }

  #entry(expression: Expression): Entry | undefined {
    const known = this.#entries.get(expression)
    return known ?? (expression.kind === 'identifier' ? this.#local(expression.name)?.entry : undefined)
  }

  /** undefined: nothing is known of it. */
  #known(expression: Expression): Estimate | undefined {
    const computed = this.#sizes.get(expression)
    if (computed !== undefined) return computed
    const literal = literalSize(expression)
    if (literal !== undefined) return exactly(literal)
    const path = this.#path(expression)
    // What a macro collects is of no schema.
    const size = path.length === 0 || path[0] === accumulator ? undefined : this.#sizeAt(path)
    if (size !== undefined) return { min: 0, max: size }
    if (isScalar(this.#checked.typeOf(expression))) return one
    return expression.kind === 'identifier' ? this.#local(expression.name)?.size : undefined
  }

  #size(expression: Expression): Estimate {
    return this.#known(expression) ?? unknown
  }

  /** Size of the items of a list. */
  #itemSize(list: Expression): Estimate {
    const entry = this.#entry(list)
    if (entry !== undefined) return entry.value
    const [item] = this.#checked.typeOf(list).parameters
    if (item !== undefined && isScalar(item)) return one
    const path = this.#path(list)
    const size = path.length === 0 || path[0] === accumulator ? undefined : this.#sizeAt([...path, '@items'])
    return size === undefined ? unknown : { min: 0, max: size }
  }

  #call(call: Call): Estimate {
    const { name, target } = this.#checked.functionOf(call)
    const args = target === undefined ? call.args : [target, ...call.args]
    const costs = args.map((arg) => this.cost(arg))
    const [first, second, third] = args
    if ((name === '_&&_' || name === '_||_') && costs.length === 2) {
      return { min: costs[0]?.min ?? 0, max: sumOf(costs).max }
    }
    if (name === '_?_:_' && second !== undefined && third !== undefined) {
      this.#chosen(call, second, third)
      return plus(costs[0] ?? zero, union(costs[1] ?? zero, costs[2] ?? zero))
    }
    if (name === '_[_]' && first !== undefined) this.#indexed(call, first)
    const { cost, size } = this.#called(name, call, args)
    if (size !== undefined) this.#sizes.set(call, size)
    return plus(sumOf(costs), cost)
  }

  /** The value of one of the two. */
  #chosen(call: Call, one: Expression, other: Expression): void {
    this.#sizes.set(call, union(this.#size(one), this.#size(other)))
    this.#entriesOfBoth(call, one, other)
  }

  #entriesOfBoth(call: Call, one: Expression, other: Expression): void {
    const [a, b] = [this.#entry(one), this.#entry(other)]
    if (a !== undefined && b !== undefined) {
      this.#entries.set(call, { key: union(a.key, b.key), value: union(a.value, b.value) })
    }
  }

  #indexed(call: Call, container: Expression): void {
    const isList = this.#checked.typeOf(container).kind === 'list'
    this.#paths.set(call, [...this.#path(container), isList ? '@items' : '@values'])
    const entry = this.#entry(container)
    if (entry !== undefined) this.#sizes.set(call, entry.value)
  }

  /** Cost of the call without its arguments, and size of its result. */
  #called(name: string, call: Call, args: readonly Expression[]): Costs {
    const [first, second] = args
    if (first === undefined) return { cost: one }
    const size = this.#size(first)
    const other = second === undefined ? zero : this.#size(second)
    const { kind } = this.#checked.typeOf(first)
    switch (name) {
      case '_==_':
      case '_!=_':
      case '_<_':
      case '_<=_':
      case '_>_':
      case '_>=_':
        return { cost: this.#compared(name, first, size, other) }
      case '_+_':
        return this.#added(call, args, size, other)
      case '@in':
        return { cost: second !== undefined && this.#checked.typeOf(second).kind === 'list' ? other : one }
      case 'dyn': {
        const entry = this.#entry(first)
        if (entry !== undefined) this.#entries.set(call, entry)
        return { cost: one, size }
      }
      case 'isSorted':
      case 'sum':
      case 'max':
      case 'min':
      case 'indexOf':
      case 'lastIndexOf':
        return { cost: kind === 'string' ? scaled(size, traversalFactor) : this.#traversed(first, size) }
      case 'join': {
        const separators = { min: Math.max(0, size.min - 1), max: Math.max(0, size.max - 1) }
        const whole = plus(times(size, this.#itemSize(first)), times(other, separators))
        return { cost: scaled(whole, traversalFactor), size: whole }
      }
      case 'sets.contains':
      case 'sets.intersects':
        return { cost: plus(times(size, other), one) }
      case 'sets.equivalent':
        return { cost: plus(scaled(times(size, other), 2), one) }
      default:
        return textCosts(name, { kind, size, other, args: args.map((arg) => this.#size(arg)) }, args) ?? { cost: one }
    }
  }

  #compared(name: string, first: Expression, size: Estimate, other: Estimate): Estimate {
    const { kind, name: type } = this.#checked.typeOf(first)
    if (kind === 'opaque' && (type.startsWith('net.') || type === 'kubernetes.Quantity')) return one
    if (name !== '_==_' && name !== '_!=_' && kind !== 'string' && kind !== 'bytes') return one
    const max = Math.min(size.max, other.max)
    return scaled({ min: max > 0 ? 1 : 0, max }, traversalFactor)
  }

  #added(call: Call, [first, second]: readonly Expression[], size: Estimate, other: Estimate): Costs {
    const { kind } = first === undefined ? { kind: 'dyn' } : this.#checked.typeOf(first)
    const sum = plus(size, other)
    if (kind === 'string' || kind === 'bytes') return { cost: scaled(sum, traversalFactor), size: sum }
    if (kind !== 'list') return { cost: one }
    if (first !== undefined && second !== undefined) this.#entriesOfBoth(call, first, second)
    return { cost: one, size: sum }
  }

  #traversed(list: Expression, size: Estimate): Estimate {
    const kind = this.#checked.typeOf(list).parameters[0]?.kind
    const isText = kind === 'string' || kind === 'bytes'
    return times(size, isText ? plus(one, scaled(this.#itemSize(list), traversalFactor)) : one)
  }
}

type Costs = { readonly cost: Estimate; readonly size?: Estimate }
type Sizes = {
  readonly kind: CelType['kind']
  readonly size: Estimate
  readonly other: Estimate
  readonly args: readonly Estimate[]
}

/** Cost of a string function, and size of its result; undefined: it costs 1. */
function textCosts(name: string, { kind, size, other, args }: Sizes, given: readonly Expression[]): Costs | undefined {
  const traversed = scaled(size, traversalFactor)
  switch (name) {
    case 'startsWith':
    case 'endsWith':
      return { cost: scaled(other, traversalFactor) }
    case 'contains':
      return { cost: times(traversed, scaled(other, traversalFactor)) }
    case 'matches':
    case 'find':
    case 'findAll': {
      const cost = times(scaled(plus(size, one), traversalFactor), scaled(other, patternFactor))
      return name === 'matches' ? { cost } : { cost, size: { min: 0, max: size.max } }
    }
    case 'url':
    case 'lowerAscii':
    case 'upperAscii':
    case 'substring':
    case 'trim':
      return { cost: traversed, size }
    case 'replace':
      return { cost: scaled(size, 2 * traversalFactor), size: replacedSize(size, other, args[2] ?? zero) }
    case 'split':
      return { cost: scaled(size, 2 * traversalFactor), size: { min: 0, max: mostParts(size, given[2]) } }
    case 'bytes':
      return kind === 'string' ? { cost: traversed, size: { min: size.min, max: capped(size.max * 4) } } : undefined
    case 'string':
      return stringCosts(kind, size)
    case 'strings.quote':
      return { cost: traversed, size: { min: size.min + 2, max: capped(size.max * 2 + 2) } }
    case 'format':
    case 'isIP':
    case 'cidr':
    case 'isCIDR':
    case 'quantity':
    case 'isQuantity':
      return { cost: traversed }
    case 'ip':
      return kind === 'string' ? { cost: traversed } : undefined
    case 'ip.isCanonical':
      return { cost: scaled(size, 2 * traversalFactor) }
    case 'containsIP':
      return { cost: plus(exactly(4), addressCost(other)) }
    case 'containsCIDR':
      return { cost: plus(exactly(7), addressCost(other)) }
    case 'validate':
      return { cost: scaled(scaled(other, traversalFactor), longestFormat * patternFactor) }
    default:
      return undefined
  }
}

/** The largest number of parts of a string that is split, with or without a limit. */
function mostParts(size: Estimate, limit: Expression | undefined): number {
  const most = limit?.kind === 'constant' ? Number(limit.value) : -1
  return most < 0 ? size.max : most
}

/** Cost of a conversion to a string, and its size. */
function stringCosts(kind: CelType['kind'], size: Estimate): Costs {
  if (kind === 'bytes') return { cost: scaled(size, traversalFactor), size: { min: size.min / 4, max: size.max } }
  return { cost: one, size: kind === 'string' ? size : { min: 0, max: longestScalar } }
}

/** Cost of an address that is looked for in a range: a text is parsed first. */
function addressCost(address: Estimate): Estimate {
  return address.max > 16 ? scaled(address, traversalFactor) : one
}

/** Characters of a number, a time or an address. Kubernetes takes the text of a number for as long as any: it refuses more. */
const longestScalar = 64

/** Characters of the pattern of a named format (apiserver/pkg/cel/limits.go). */
const longestFormat = 128

/** Size of a string in which each occurrence of a part is replaced. */
function replacedSize(size: Estimate, part: Estimate, other: Estimate): Estimate {
  const isLonger = part.min === 0 || other.max > part.min
  const count = part.min === 0 ? size.max + 1 : isLonger ? Math.ceil(size.max / part.min) : 0
  return { min: 0, max: capped(count * other.max + (part.min === 0 || !isLonger ? size.max : 0)) }
}

function literalSize(expression: Expression): number | undefined {
  if (expression.kind === 'constant') return valueSize(expression.value)
  if (expression.kind === 'list') return expression.items.length
  return expression.kind === 'map' ? expression.entries.length : undefined
}

function isScalar({ kind, parameters }: CelType): boolean {
  if (kind === 'optional') return parameters[0] !== undefined && isScalar(parameters[0])
  return ['bool', 'double', 'duration', 'int', 'timestamp', 'uint'].includes(kind)
}
