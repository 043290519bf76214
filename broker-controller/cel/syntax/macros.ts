/**
 * Macros: calls that are other expressions (cel-go's parser/macro.go, and ext/comprehensions.go for those with two variables). A call that
 * no macro matches is a call.
 */
import { accumulator, type Comprehension, type Expression, expressionOf } from './expression.ts'
import { SourceError } from './source-problem.ts'

/** undefined: it is not a macro. Throws SourceError. */
export function expandedMacro(
  at: number,
  name: string,
  target: Expression | undefined,
  args: readonly Expression[],
): Expression | undefined {
  if (target === undefined) return name === 'has' && args.length === 1 ? hasField(at, args) : undefined
  const make = macros.get(`${name}/${args.length}`)
  return make?.({ at, target, args })
}

type Given = { readonly at: number; readonly target: Expression; readonly args: readonly Expression[] }
type Macro = (given: Given) => Expression

function hasField(at: number, [field]: readonly Expression[]): Expression {
  if (field?.kind !== 'select' || field.testsOnly || field.optional) {
    throw new SourceError(field?.at ?? at, 'invalid argument to has() macro')
  }
  return expressionOf({ ...field, at, testsOnly: true })
}

const constant = (at: number, value: boolean | number) => expressionOf({ kind: 'constant', at, value })
const collected = (at: number) => expressionOf({ kind: 'identifier', at, name: accumulator })
const call = (at: number, name: string, ...args: readonly Expression[]) =>
  expressionOf({ kind: 'call', at, name, target: undefined, args })
const listOf = (at: number, ...items: readonly Expression[]) =>
  expressionOf({ kind: 'list', at, items, optional: new Set() })

function variableOf(given: Expression | undefined, at: number): string {
  if (given?.kind === 'identifier') return given.name
  throw new SourceError(given?.at ?? at, 'argument must be a simple name')
}

type Loop = Pick<Comprehension, 'initial' | 'condition' | 'step'> & { readonly result?: Expression }
/** What is done with each item: `args` are those behind the variables. */
type Body = (at: number, args: readonly Expression[]) => Loop

function comprehension(body: Body, variables: 1 | 2): Macro {
  return ({ at, target, args }) => {
    const names = args.slice(0, variables).map((arg) => variableOf(arg, at))
    const [variable = '', second] = names
    if (variable === second) throw new SourceError(args[1]?.at ?? at, `duplicate variable name: ${variable}`)
    const { result = collected(at), ...loop } = body(at, args.slice(variables))
    return expressionOf({ kind: 'comprehension', at, range: target, variable, second, ...loop, result })
  }
}

const nothing = (at: number) => constant(at, false)

const all: Body = (at, [test = nothing(at)]) => ({
  initial: constant(at, true),
  condition: call(at, '@not_strictly_false', collected(at)),
  step: call(at, '_&&_', collected(at), test),
})

const exists: Body = (at, [test = nothing(at)]) => ({
  initial: constant(at, false),
  condition: call(at, '@not_strictly_false', call(at, '!_', collected(at))),
  step: call(at, '_||_', collected(at), test),
})

const existsOne: Body = (at, [test = nothing(at)]) => ({
  initial: constant(at, 0),
  condition: constant(at, true),
  step: call(at, '_?_:_', test, call(at, '_+_', collected(at), constant(at, 1)), collected(at)),
  result: call(at, '_==_', collected(at), constant(at, 1)),
})

/** With one argument, what each item becomes; with two, the first is which of them. */
const mapped: Body = (at, args) => {
  const [test, change = nothing(at)] = args.length === 1 ? [undefined, ...args] : args
  const added = call(at, '_+_', collected(at), listOf(at, change))
  return {
    initial: listOf(at),
    condition: constant(at, true),
    step: test === undefined ? added : call(at, '_?_:_', test, added, collected(at)),
  }
}

const inserted =
  (isEntry: boolean): Body =>
  (at, args) => {
    const [test, change = nothing(at)] = args.length === 2 ? [undefined, args[1]] : args.slice(1)
    const key = args[0] ?? nothing(at)
    const added = isEntry
      ? call(at, '@mapInsert', collected(at), change)
      : call(at, '@mapInsert', collected(at), key, change)
    return {
      initial: expressionOf({ kind: 'map', at, entries: [] }),
      condition: constant(at, true),
      step: test === undefined ? added : call(at, '_?_:_', test, added, collected(at)),
    }
  }

const filter: Macro = ({ at, target, args }) => {
  const [item = nothing(at), test = nothing(at)] = args
  return comprehension(() => mapped(at, [test, item]), 1)({ at, target, args: [item] })
}

/** `transformMap` keeps the key, which is the first variable. */
const transformMap =
  (isEntry: boolean): Macro =>
  (given) => {
    const [key = nothing(given.at)] = given.args
    return comprehension((at, args) => inserted(isEntry)(at, [key, ...args]), 2)(given)
  }

const optMap =
  (isFlat: boolean): Macro =>
  ({ at, target, args }) => {
    const [name, change = nothing(at)] = args
    // A name of its own for the target: it is evaluated once.
    const given = expressionOf({ kind: 'identifier', at, name: '@target' })
    const member = (method: string) => expressionOf({ kind: 'call', at, name: method, target: given, args: [] })
    const made = expressionOf({
      kind: 'binding',
      at,
      name: variableOf(name, at),
      value: member('value'),
      result: change,
    })
    const whole = isFlat ? made : call(at, 'optional.of', made)
    const result = call(at, '_?_:_', member('hasValue'), whole, call(at, 'optional.none'))
    return expressionOf({ kind: 'binding', at, name: '@target', value: target, result })
  }

/** By name and number of arguments. */
const macros: ReadonlyMap<string, Macro> = new Map<string, Macro>([
  ['all/2', comprehension(all, 1)],
  ['exists/2', comprehension(exists, 1)],
  ['exists_one/2', comprehension(existsOne, 1)],
  ['existsOne/2', comprehension(existsOne, 1)],
  ['map/2', comprehension(mapped, 1)],
  ['map/3', comprehension(mapped, 1)],
  ['filter/2', filter],
  ['all/3', comprehension(all, 2)],
  ['exists/3', comprehension(exists, 2)],
  ['exists_one/3', comprehension(existsOne, 2)],
  ['existsOne/3', comprehension(existsOne, 2)],
  ['transformList/3', comprehension(mapped, 2)],
  ['transformList/4', comprehension(mapped, 2)],
  ['transformMap/3', transformMap(false)],
  ['transformMap/4', transformMap(false)],
  ['transformMapEntry/3', transformMap(true)],
  ['transformMapEntry/4', transformMap(true)],
  ['optMap/2', optMap(false)],
  ['optFlatMap/2', optMap(true)],
])
