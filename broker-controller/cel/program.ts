/** A checked expression as instructions of a machine with a stack: such a program can be stopped at any place and continued. */
import { type CalledFunction, type Checked, dottedName, isTypeName } from './checking/checker.ts'
import type { FunctionDefinition } from './functions/definition.ts'
import { definitionOf } from './functions/library.ts'
import {
  accumulator,
  type Call,
  type Comprehension,
  type Expression,
  type ListLiteral,
  type MapLiteral,
} from './syntax/expression.ts'
import { CelFailure, TypeValue, type Value } from './values/value.ts'

export type MachineInstruction =
  | { readonly op: 'constant'; readonly value: Value }
  /** A variable of the environment. */
  | { readonly op: 'variable'; readonly name: string }
  /** A variable of a macro. */
  | { readonly op: 'load'; readonly slot: number }
  | { readonly op: 'store'; readonly slot: number }
  | { readonly op: 'select' | 'has' | 'optionalSelect'; readonly field: string }
  | { readonly op: 'call'; readonly definition: FunctionDefinition; readonly arguments: number }
  | { readonly op: 'list'; readonly items: number; readonly optional: ReadonlySet<number> }
  /** `optional`: by entry. */
  | { readonly op: 'map'; readonly entries: number; readonly optional: readonly boolean[] }
  | Jump
  /** To `to`, where the value on the stack is this one: the other operand does not matter. */
  | (Target & { readonly op: 'decided'; readonly by: boolean })
  /** Combines the two operands of `&&` (by false) or `||` (by true). */
  | { readonly op: 'combine'; readonly by: boolean }
  /** Takes the condition: false continues at `to`; a failure is the result, and continues at `end`. */
  | (Target & { readonly op: 'branch'; end: number })
  /** Whether the value is not false: a failure is not. */
  | { readonly op: 'notFalse' }
  /** Takes the range. A failure is the result, and continues at `to`. */
  | (Target & { readonly op: 'begin' })
  /** Sets the variables to the next item; continues at `to` where there is none. */
  | (Target & { readonly op: 'next'; readonly slot: number; readonly second: number | undefined })
  /** Takes the condition of the loop; false continues at `to`. */
  | (Target & { readonly op: 'while' })
  /** Adds the value to the list in the slot: it is what `@result + [value]` gives. */
  | { readonly op: 'append'; readonly slot: number }
  | { readonly op: 'finish' }

type Target = { to: number }
type Jump = Target & { readonly op: 'jump' }

export type Program = { readonly code: readonly MachineInstruction[]; readonly slots: number }

/** The expression has no problems. */
export function programOf(checked: Checked): Program {
  const writer = new ProgramWriter(checked)
  writer.write(checked.expression)
  return { code: writer.code, slots: writer.slots }
}

class ProgramWriter {
  readonly code: MachineInstruction[] = []
  slots = 0
  readonly #checked: Checked
  readonly #scope: (readonly [name: string, slot: number])[] = []

  constructor(checked: Checked) {
    this.#checked = checked
  }

  write(expression: Expression): void {
    switch (expression.kind) {
      case 'constant':
        this.code.push({ op: 'constant', value: expression.value })
        return
      case 'identifier':
        this.#identifier(expression.name)
        return
      case 'select': {
        const { field, testsOnly, optional } = expression
        if (this.#isQualified(expression) || this.#isType(expression)) return
        this.write(expression.operand)
        this.code.push({ op: testsOnly ? 'has' : optional ? 'optionalSelect' : 'select', field })
        return
      }
      case 'call':
        this.#call(expression)
        return
      case 'list':
        this.#list(expression)
        return
      case 'map':
        this.#map(expression)
        return
      case 'comprehension':
        this.#comprehension(expression)
        return
      case 'binding': {
        this.write(expression.value)
        const slot = this.slots++
        this.code.push({ op: 'store', slot })
        this.#within([[expression.name, slot]], () => this.write(expression.result))
      }
    }
  }

  #within(names: readonly (readonly [string, number])[], act: () => void): void {
    this.#scope.push(...names)
    act()
    this.#scope.length -= names.length
  }

  #slotOf(name: string): number | undefined {
    return this.#scope.findLast(([one]) => one === name)?.[1]
  }

  #identifier(name: string): void {
    const slot = this.#slotOf(name)
    if (slot !== undefined) this.code.push({ op: 'load', slot })
    else if (this.#checked.variables.has(name)) this.code.push({ op: 'variable', name })
    else this.code.push({ op: 'constant', value: new TypeValue(name) })
  }

  /** `authorizer.requestResource` is a variable. */
  #isQualified(expression: Expression): boolean {
    const name = dottedName(expression)
    if (name === undefined || !this.#checked.variables.has(name)) return false
    if (this.#slotOf(name.slice(0, name.indexOf('.'))) !== undefined) return false
    this.code.push({ op: 'variable', name })
    return true
  }

  /** `google.protobuf.Duration` is the name of a type. */
  #isType(expression: Expression): boolean {
    const name = this.#checked.typeOf(expression).kind === 'type' ? dottedName(expression) : undefined
    if (name === undefined || !isTypeName(name)) return false
    this.code.push({ op: 'constant', value: new TypeValue(name) })
    return true
  }

  #call(call: Call): void {
    const called = this.#checked.functionOf(call)
    const [first, second, third] = call.args
    if (first !== undefined && second !== undefined) {
      const isLogical = called.name === '_&&_' || called.name === '_||_'
      if (isLogical) this.#logical(first, second, called.name === '_||_')
      else if (called.name === '_?_:_' && third !== undefined) this.#conditional(first, second, third)
      else if (!this.#appends(call)) this.#plainCall(called, call)
    } else if (called.name === '@not_strictly_false' && first !== undefined) {
      this.write(first)
      this.code.push({ op: 'notFalse' })
    } else this.#plainCall(called, call)
  }

  #plainCall({ name, target }: CalledFunction, call: Call): void {
    const all = target === undefined ? call.args : [target, ...call.args]
    for (const arg of all) this.write(arg)
    const definition = definitionOf(name) ?? { overloads: [], call: () => new CelFailure(`no such function: ${name}`) }
    const typed = definition.callFor?.(this.#checked.typeOf(call).name)
    this.code.push({
      op: 'call',
      definition: typed === undefined ? definition : { ...definition, call: typed },
      arguments: all.length,
    })
  }

  /** What a macro collects is not copied for each item. */
  #appends({ name, args: [list, item] }: Call): boolean {
    const isCollected = name === '_+_' && list?.kind === 'identifier' && list.name === accumulator
    const slot = isCollected ? this.#slotOf(accumulator) : undefined
    const [value] = item?.kind === 'list' && item.items.length === 1 && item.optional.size === 0 ? item.items : []
    if (slot === undefined || value === undefined) return false
    this.write(value)
    this.code.push({ op: 'append', slot })
    return true
  }

  #logical(left: Expression, right: Expression, by: boolean): void {
    this.write(left)
    const decided = { op: 'decided' as const, by, to: 0 }
    this.code.push(decided)
    this.write(right)
    this.code.push({ op: 'combine', by })
    decided.to = this.code.length
  }

  #conditional(condition: Expression, whenTrue: Expression, whenFalse: Expression): void {
    this.write(condition)
    const branch = { op: 'branch' as const, to: 0, end: 0 }
    this.code.push(branch)
    this.write(whenTrue)
    const jump: Jump = { op: 'jump', to: 0 }
    this.code.push(jump)
    branch.to = this.code.length
    this.write(whenFalse)
    branch.end = this.code.length
    jump.to = branch.end
  }

  #list({ items, optional }: ListLiteral): void {
    for (const item of items) this.write(item)
    this.code.push({ op: 'list', items: items.length, optional })
  }

  #map({ entries }: MapLiteral): void {
    for (const { key, value } of entries) {
      this.write(key)
      this.write(value)
    }
    this.code.push({ op: 'map', entries: entries.length, optional: entries.map(({ optional }) => optional) })
  }

  #comprehension(one: Comprehension): void {
    this.write(one.range)
    const begin = { op: 'begin' as const, to: 0 }
    this.code.push(begin)
    this.write(one.initial)
    const [collected, slot] = [this.slots++, this.slots++]
    const second = one.second === undefined ? undefined : this.slots++
    this.code.push({ op: 'store', slot: collected })
    const start = this.code.length
    const next = { op: 'next' as const, slot, second, to: 0 }
    const loop = { op: 'while' as const, to: 0 }
    const variables: (readonly [string, number])[] = [[one.variable, slot]]
    if (one.second !== undefined && second !== undefined) variables.push([one.second, second])
    this.#within([[accumulator, collected]], () => {
      this.code.push(next)
      this.#within(variables, () => {
        this.write(one.condition)
        this.code.push(loop)
        this.write(one.step)
        this.code.push({ op: 'store', slot: collected }, { op: 'jump', to: start })
      })
      next.to = this.code.length
      loop.to = this.code.length
      this.write(one.result)
    })
    this.code.push({ op: 'finish' })
    begin.to = this.code.length
  }
}
