/** Runs programs, in slices where they take long. */
import { type FunctionDefinition, fail } from './functions/definition.ts'
import { noSuchKey } from './functions/operators.ts'
import type { MachineInstruction, Program } from './program.ts'
import { entriesByKey } from './values/equality.ts'
import type { Meter } from './values/meter.ts'
import {
  ArrayList,
  CelFailure,
  type CelOutcome,
  Deferred,
  EntryMap,
  LazyObject,
  ListValue,
  MapValue,
  none,
  noSuchOverload,
  ObjectValue,
  Optional,
  type Value,
} from './values/value.ts'

/** Values of the variables that the expression may name. */
export type Variables = { readonly [name: string]: Value | undefined }

/** Costs of literals (cel-go's common/cost.go). */
const listCost = 10
const mapCost = 30

/** A list that a macro collects: only the machine has it while it grows. */
class GrowingList extends ListValue {
  readonly items: Value[] = []

  get size(): number {
    return this.items.length
  }

  at(index: number): Value {
    return this.items[index] ?? null
  }
}

/** What a comprehension goes through. */
type Range = { readonly items: ListValue | readonly Value[]; readonly values: MapValue | undefined; next: number }

export class Machine {
  readonly #program: Program
  readonly #variables: Variables
  readonly #meter: Meter
  readonly #stack: CelOutcome[] = []
  readonly #slots: CelOutcome[]
  readonly #ranges: Range[] = []
  #next = 0
  /** What the machine is to be resumed with. */
  #awaited: Deferred | undefined

  constructor(program: Program, variables: Variables, meter: Meter) {
    this.#program = program
    this.#variables = variables
    this.#meter = meter
    this.#slots = Array.from({ length: program.slots }, () => null)
  }

  /**
   * What the program gives; undefined: it is to be continued, for it has taken more than these steps. Deferred: it is to be resumed
   * with what that finds, and then continued. Throws CostExceededError.
   */
  run(steps: number): CelOutcome | Deferred | undefined {
    const { code } = this.#program
    const end = this.#meter.work + steps
    while (this.#next < code.length || this.#awaited !== undefined) {
      if (this.#awaited !== undefined) return this.#awaited
      if (this.#meter.work > end) return undefined
      const instruction = code[this.#next++]
      if (instruction === undefined) break
      this.#meter.step()
      this.#do(instruction)
    }
    return this.#stack.at(-1) ?? null
  }

  /** The outcome that the last `run` asked for. */
  resume(outcome: CelOutcome): void {
    this.#awaited = undefined
    this.#push(outcome)
  }

  #pop(): CelOutcome {
    return this.#stack.pop() ?? null
  }

  #push(value: CelOutcome | Deferred): void {
    if (value instanceof Deferred) this.#awaited = value
    else this.#stack.push(value)
  }

  #do(instruction: MachineInstruction): void {
    switch (instruction.op) {
      case 'constant':
        this.#push(instruction.value)
        return
      case 'variable':
        this.#meter.charge(1)
        this.#push(this.#variables[instruction.name] ?? null)
        return
      case 'load':
        this.#meter.charge(1)
        this.#push(this.#slots[instruction.slot] ?? null)
        return
      case 'store':
        this.#slots[instruction.slot] = this.#pop()
        return
      case 'select':
      case 'has':
      case 'optionalSelect':
        this.#push(this.#selected(instruction.op, this.#pop(), instruction.field))
        return
      case 'call':
        this.#push(this.#called(instruction.definition, this.#taken(instruction.arguments)))
        return
      case 'list':
        this.#meter.charge(listCost)
        this.#push(this.#list(this.#taken(instruction.items), instruction.optional))
        return
      case 'map':
        this.#meter.charge(mapCost)
        this.#push(mapOf(this.#taken(instruction.entries * 2), instruction.optional))
        return
      default:
        this.#control(instruction)
    }
  }

  #control(
    instruction: Exclude<
      MachineInstruction,
      { op: 'constant' | 'variable' | 'load' | 'store' | 'call' | 'list' | 'map' }
    >,
  ): void {
    switch (instruction.op) {
      case 'jump':
        this.#next = instruction.to
        return
      case 'decided':
        if (this.#stack.at(-1) === instruction.by) this.#next = instruction.to
        return
      case 'combine': {
        const right = this.#pop()
        this.#push(combined(this.#pop(), right, instruction.by))
        return
      }
      case 'branch':
        this.#branch(this.#pop(), instruction.to, instruction.end)
        return
      case 'notFalse':
        this.#meter.charge(1)
        this.#push(this.#pop() !== false)
        return
      case 'begin':
        this.#begin(this.#pop(), instruction.to)
        return
      case 'next':
        this.#nextItem(instruction)
        return
      case 'while':
        if (this.#pop() === false) this.#next = instruction.to
        return
      case 'append':
        this.#push(this.#appended(this.#slots[instruction.slot] ?? null, this.#pop()))
        return
      case 'finish':
        this.#ranges.pop()
    }
  }

  /** The last values of the stack, the first of them first. */
  #taken(count: number): CelOutcome[] {
    return count === 0 ? [] : this.#stack.splice(-count)
  }

  #branch(condition: CelOutcome, otherwise: number, end: number): void {
    if (condition === true) return
    if (condition === false) {
      this.#next = otherwise
      return
    }
    this.#push(condition instanceof CelFailure ? condition : noSuchOverload)
    this.#next = end
  }

  #selected(op: 'select' | 'has' | 'optionalSelect', operand: CelOutcome, field: string): CelOutcome | Deferred {
    if (op !== 'has') this.#meter.charge(1)
    if (operand instanceof CelFailure) return operand
    const container = operand instanceof Optional ? operand.value : operand
    const found = container === undefined ? undefined : fieldOf(container, field)
    if (found instanceof CelFailure) return found
    if (op === 'has') return found !== undefined
    if (found instanceof Deferred) return op === 'select' ? found : optionally(found)
    if (op === 'optionalSelect' || operand instanceof Optional) return found === undefined ? none : new Optional(found)
    return found === undefined ? noSuchKey(field) : found
  }

  #called({ call, cost }: FunctionDefinition, args: readonly CelOutcome[]): CelOutcome | Deferred {
    const values: Value[] = []
    for (const arg of args) {
      if (arg instanceof CelFailure) return arg
      values.push(arg)
    }
    this.#meter.charge(cost === undefined ? 1 : cost(values))
    return call(values, this.#meter)
  }

  #list(items: readonly CelOutcome[], optional: ReadonlySet<number>): CelOutcome {
    const values: Value[] = []
    for (const [index, item] of items.entries()) {
      if (item instanceof CelFailure) return item
      if (!optional.has(index)) values.push(item)
      else if (!(item instanceof Optional)) return noSuchOverload
      else if (item.value !== undefined) values.push(item.value)
    }
    return new ArrayList(values)
  }

  #begin(range: CelOutcome, end: number): void {
    if (range instanceof ListValue) this.#ranges.push({ items: range, values: undefined, next: 0 })
    else if (range instanceof MapValue) this.#ranges.push({ items: range.keys(), values: range, next: 0 })
    else {
      this.#push(range instanceof CelFailure ? range : noSuchOverload)
      this.#next = end
    }
  }

  #nextItem({ slot, second, to }: Extract<MachineInstruction, { op: 'next' }>): void {
    const range = this.#ranges.at(-1)
    const size = range === undefined ? 0 : range.items instanceof ListValue ? range.items.size : range.items.length
    if (range === undefined || range.next >= size) {
      this.#next = to
      return
    }
    const index = range.next++
    const item = range.items instanceof ListValue ? range.items.at(index) : (range.items[index] ?? null)
    if (second === undefined) {
      this.#slots[slot] = item
      return
    }
    const { values } = range
    this.#slots[slot] = values === undefined ? index : item
    this.#slots[second] = values === undefined ? item : (values.get(item) ?? null)
  }

  #appended(before: CelOutcome, value: CelOutcome): CelOutcome {
    // As for the variable, the literal and the operator.
    this.#meter.charge(1 + listCost + 1)
    if (before instanceof CelFailure) return before
    if (value instanceof CelFailure) return value
    const list = before instanceof GrowingList ? before : new GrowingList()
    list.items.push(value)
    return list
  }
}

/** undefined: it is not there. */
function fieldOf(container: Value, field: string): CelOutcome | Deferred | undefined {
  if (container instanceof LazyObject) return container.deferred(field)
  if (container instanceof ObjectValue) return container.field(field)
  return container instanceof MapValue ? container.get(field) : fail('no such overload')
}

function optionally({ find }: Deferred): Deferred {
  return new Deferred(async () => {
    const outcome = await find()
    return outcome instanceof CelFailure ? outcome : new Optional(outcome)
  })
}

/** `by`: the value that decides. A failure of one operand does not matter where the other one decides. */
function combined(left: CelOutcome, right: CelOutcome, by: boolean): CelOutcome {
  if (left === by || right === by) return by
  if (left instanceof CelFailure) return left
  if (right instanceof CelFailure) return right
  return typeof left === 'boolean' && typeof right === 'boolean' ? right : noSuchOverload
}

function mapOf(parts: readonly CelOutcome[], optional: readonly boolean[]): CelOutcome {
  const entries: (readonly [Value, Value])[] = []
  for (const [index, isOptional] of optional.entries()) {
    const [key = null, value = null] = [parts[index * 2], parts[index * 2 + 1]]
    if (key instanceof CelFailure) return key
    if (value instanceof CelFailure) return value
    if (!isOptional) entries.push([key, value])
    else if (!(value instanceof Optional)) return noSuchOverload
    else if (value.value !== undefined) entries.push([key, value.value])
  }
  const byKey = entriesByKey(entries)
  return byKey === undefined ? fail('Failed with repeated key') : new EntryMap(byKey)
}
