/** The types of an expression and of its parts, and which functions its calls mean (cel-go's checker/checker.go). */
import {
  accumulator,
  type Call,
  type Comprehension,
  type Expression,
  type Identifier,
  type ListLiteral,
  type MapLiteral,
  type Select,
} from '../syntax/expression.ts'
import type { SourceProblem } from '../syntax/source-problem.ts'
import { Bytes, Double, isInt, Uint, type Value } from '../values/value.ts'
import type { Overload } from './signatures.ts'
import {
  boolType,
  bytesType,
  type CelType,
  doubleType,
  durationType,
  dynType,
  errorType,
  intType,
  isDyn,
  listType,
  mapType,
  mostGeneral,
  nullType,
  opaqueType,
  optionalType,
  Substitutions,
  sameType,
  stringType,
  timestampType,
  typeText,
  typeType,
  uintType,
} from './types.ts'

/** What an expression may name. */
export type CelEnvironment = {
  readonly variables: ReadonlyMap<string, CelType>
  readonly functions: ReadonlyMap<string, readonly Overload[]>
}

export type Checked = {
  readonly expression: Expression
  readonly type: CelType
  readonly typeOf: (part: Expression) => CelType
  /** The function that a call means; its name is that of the call, or that of the target with it: `ip.isCanonical`. */
  readonly functionOf: (call: Call) => CalledFunction
  readonly variables: ReadonlySet<string>
}

export type CalledFunction = {
  readonly name: string
  readonly target: Expression | undefined
  readonly overloads: readonly Overload[]
}

/** Problems of the expression, or its types. */
export function checkExpression(
  expression: Expression,
  environment: CelEnvironment,
): { readonly problems: readonly SourceProblem[] } | Checked {
  const checker = new Checker(environment)
  const type = checker.check(expression)
  if (checker.problems.length > 0) return { problems: checker.problems }
  return {
    expression,
    type: checker.resolved(type),
    typeOf: (part) => checker.resolved(checker.types.get(part) ?? dynType),
    functionOf: (call) => checker.functions.get(call) ?? { name: call.name, target: call.target, overloads: [] },
    variables: checker.used,
  }
}

/** The names of types are values too: `type(self) == string`. */
const typeNames: ReadonlyMap<string, CelType> = new Map([
  ...[boolType, intType, uintType, doubleType, stringType, bytesType].map((type) => [type.name, type] as const),
  ['list', listType(dynType)],
  ['map', mapType(dynType, dynType)],
  ['null_type', nullType],
  ['type', typeType(dynType)],
  ['optional_type', optionalType(dynType)],
  ['google.protobuf.Timestamp', timestampType],
  ['google.protobuf.Duration', durationType],
  ...[
    ...['net.IP', 'net.CIDR', 'kubernetes.URL', 'kubernetes.Quantity', 'kubernetes.NamedFormat'],
    ...['Authorizer', 'PathCheck', 'GroupCheck', 'ResourceCheck', 'Decision'].map(
      (name) => `kubernetes.authorization.${name}`,
    ),
  ].map((name) => [name, opaqueType(name)] as const),
])

/** `a.b.c` of selections; undefined: it is something else. */
export function dottedName(expression: Expression | undefined): string | undefined {
  if (expression?.kind === 'identifier') return expression.name
  if (expression?.kind !== 'select' || expression.testsOnly || expression.optional) return undefined
  const operand = dottedName(expression.operand)
  return operand === undefined ? undefined : `${operand}.${expression.field}`
}

/** Whether the name is that of a type. */
export function isTypeName(name: string): boolean {
  return typeNames.has(name)
}

class Checker {
  readonly problems: SourceProblem[] = []
  readonly types = new Map<Expression, CelType>()
  readonly functions = new Map<Call, CalledFunction>()
  readonly used = new Set<string>()
  readonly #environment: CelEnvironment
  readonly #known = new Substitutions()
  readonly #scopes: (readonly [name: string, type: CelType])[] = []

  constructor(environment: CelEnvironment) {
    this.#environment = environment
  }

  resolved(type: CelType): CelType {
    return this.#known.resolved(type, true)
  }

  check(expression: Expression): CelType {
    const type = this.#typeOf(expression)
    this.types.set(expression, type)
    return type
  }

  #typeOf(expression: Expression): CelType {
    switch (expression.kind) {
      case 'constant':
        return typeOfConstant(expression.value)
      case 'identifier':
        return this.#identifier(expression)
      case 'select':
        return this.#select(expression)
      case 'call':
        return this.#call(expression)
      case 'list':
        return this.#list(expression)
      case 'map':
        return this.#map(expression)
      case 'comprehension':
        return this.#comprehension(expression)
      case 'binding': {
        const value = this.check(expression.value)
        return this.#within([[expression.name, value]], () => this.check(expression.result))
      }
    }
  }

  #problem(at: number, message: string): CelType {
    this.problems.push({ at, message })
    return errorType
  }

  #within<T>(scope: readonly (readonly [string, CelType])[], act: () => T): T {
    this.#scopes.push(...scope)
    const result = act()
    this.#scopes.length -= scope.length
    return result
  }

  #variable(name: string): CelType | undefined {
    const local = this.#scopes.findLast(([one]) => one === name)?.[1]
    if (local !== undefined) return local
    const declared = this.#environment.variables.get(name)
    if (declared !== undefined) this.used.add(name)
    return declared
  }

  /** A variable with dots in its name: `authorizer.requestResource`. */
  #qualified(name: string): CelType | undefined {
    const [root] = name.split('.', 1)
    return this.#scopes.some(([one]) => one === root) ? undefined : this.#variable(name)
  }

  #identifier({ at, name }: Identifier): CelType {
    const type = this.#variable(name)
    if (type !== undefined) return type
    const named = typeNames.get(name)
    return named === undefined
      ? this.#problem(at, `undeclared reference to '${name}' (in container '')`)
      : typeType(named)
  }

  #select(select: Select): CelType {
    const { at, field, testsOnly, optional } = select
    const name = dottedName(select)
    const qualified = name === undefined ? undefined : this.#qualified(name)
    if (qualified !== undefined) return qualified
    const named = name === undefined ? undefined : typeNames.get(name)
    if (named !== undefined && this.#variable(name?.split('.', 1)[0] ?? '') === undefined) return typeType(named)
    const given = this.#known.resolved(this.check(select.operand))
    const operand = given.kind === 'optional' ? (given.parameters[0] ?? dynType) : given
    const type = this.#fieldType(at, operand, field)
    if (testsOnly) return boolType
    return optional || given.kind === 'optional' ? optionalType(type) : type
  }

  #fieldType(at: number, operand: CelType, field: string): CelType {
    switch (operand.kind) {
      case 'dyn':
      case 'error':
        return dynType
      case 'map':
        return operand.parameters[1] ?? dynType
      case 'parameter':
        this.#known.assignable([dynType], [operand])
        return dynType
      case 'object':
        return operand.fields?.get(field) ?? this.#problem(at, `undefined field '${field}'`)
      default:
        return this.#problem(at, `type '${typeText(operand)}' does not support field selection`)
    }
  }

  #call(call: Call): CelType {
    const { functions } = this.#environment
    const { args, name, target, at } = call
    const prefix = dottedName(target)
    const isQualified = prefix !== undefined && functions.has(`${prefix}.${name}`)
    const called = isQualified ? { name: `${prefix}.${name}`, target: undefined } : { name, target }
    const candidates = functions.get(called.name)
    const given = [...(called.target === undefined ? [] : [called.target]), ...args].map((one) => this.check(one))
    if (candidates === undefined) return this.#problem(at, `undeclared reference to '${name}' (in container '')`)
    const isMember = called.target !== undefined
    const { overloads, result } = this.#resolve(candidates, given, isMember)
    this.functions.set(call, { ...called, overloads })
    if (result !== undefined) return result
    const [first = '', ...others] = given.map((type) => typeText(this.resolved(type)))
    const types = isMember ? `${first}.(${others.join(', ')})` : `(${[first, ...others].join(', ')})`
    return this.#problem(at, `found no matching overload for '${called.name}' applied to '${types}'`)
  }

  #resolve(candidates: readonly Overload[], given: readonly CelType[], isMember: boolean) {
    const overloads: Overload[] = []
    let result: CelType | undefined
    for (const overload of candidates) {
      if (overload.isMember !== isMember) continue
      const names = new Map([...overload.generic].map((name) => [name, this.#known.fresh()]))
      const wanted = overload.parameters.map((type) => renamed(type, names))
      if (!this.#known.assignable(given, wanted)) continue
      overloads.push(overload)
      const own = this.#known.resolved(renamed(overload.result, names))
      if (result === undefined) result = own
      else if (!isDyn(result) && !sameType(own, result)) result = dynType
    }
    return { overloads, result }
  }

  #list({ items, optional }: ListLiteral): CelType {
    let joined: CelType | undefined
    for (const [index, item] of items.entries()) {
      const type = this.check(item)
      joined = this.#joined(joined, optional.has(index) ? this.#unwrapped(item, type) : type)
    }
    return listType(joined ?? this.#known.fresh())
  }

  #map({ entries }: MapLiteral): CelType {
    let [keys, values]: [CelType | undefined, CelType | undefined] = [undefined, undefined]
    for (const { key, value, optional } of entries) {
      keys = this.#joined(keys, this.check(key))
      const type = this.check(value)
      values = this.#joined(values, optional ? this.#unwrapped(value, type) : type)
    }
    return mapType(keys ?? this.#known.fresh(), values ?? this.#known.fresh())
  }

  #unwrapped({ at }: Expression, type: CelType): CelType {
    const given = this.#known.resolved(type)
    if (given.kind === 'optional') return given.parameters[0] ?? dynType
    if (isDyn(given)) return dynType
    return this.#problem(at, `expected type 'optional_type(${typeText(given)})' but found '${typeText(given)}'`)
  }

  #joined(before: CelType | undefined, type: CelType): CelType {
    if (before === undefined) return type
    return this.#known.assignable([before], [type]) ? mostGeneral(before, type) : dynType
  }

  #comprehension(one: Comprehension): CelType {
    const range = this.#known.resolved(this.check(one.range))
    const [index, item] = this.#itemTypes(one.range, range)
    const collected = this.check(one.initial)
    const variables: (readonly [string, CelType])[] =
      one.second === undefined
        ? [[one.variable, range.kind === 'map' ? index : item]]
        : [
            [one.variable, index],
            [one.second, item],
          ]
    this.#within([[accumulator, collected]], () => {
      this.#within(variables, () => {
        this.#expect(one.condition, boolType)
        this.#expect(one.step, collected)
      })
    })
    return this.#within([[accumulator, collected]], () => this.#known.resolved(this.check(one.result)))
  }

  /** Types of an index or key, and of an item or value. */
  #itemTypes({ at }: Expression, range: CelType): readonly [CelType, CelType] {
    const [first = dynType, second = dynType] = range.parameters
    switch (range.kind) {
      case 'list':
        return [intType, first]
      case 'map':
        return [first, second]
      case 'dyn':
      case 'error':
        return [dynType, dynType]
      case 'parameter':
        this.#known.assignable([dynType], [range])
        return [dynType, dynType]
      default: {
        const wanted = 'must be list, map, or dynamic'
        const wrong = this.#problem(
          at,
          `expression of type '${typeText(range)}' cannot be range of a comprehension (${wanted})`,
        )
        return [wrong, wrong]
      }
    }
  }

  #expect(part: Expression, wanted: CelType): void {
    const type = this.check(part)
    if (this.#known.assignable([type], [wanted])) return
    const [expected, found] = [wanted, type].map((one) => typeText(this.resolved(one)))
    this.#problem(part.at, `expected type '${expected}' but found '${found}'`)
  }
}

function renamed(type: CelType, names: ReadonlyMap<string, CelType>): CelType {
  if (names.size === 0) return type
  if (type.kind === 'parameter') return names.get(type.name) ?? type
  if (type.parameters.length === 0) return type
  return { ...type, parameters: type.parameters.map((one) => renamed(one, names)) }
}

function typeOfConstant(value: Value): CelType {
  if (value === null) return nullType
  if (typeof value === 'boolean') return boolType
  if (typeof value === 'string') return stringType
  if (isInt(value)) return intType
  if (value instanceof Uint) return uintType
  if (value instanceof Double) return doubleType
  return value instanceof Bytes ? bytesType : dynType
}
