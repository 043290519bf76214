/** Expressions as trees. Macros are expanded: `all` is a comprehension. */
import type { Value } from '../values/value.ts'

/** `at`: the place in the source that a problem names. `depth`: of the tree below, itself included. */
type Node = { readonly at: number; readonly depth: number }

export type Constant = Node & { readonly kind: 'constant'; readonly value: Value }
export type Identifier = Node & { readonly kind: 'identifier'; readonly name: string }
/** `testsOnly`: whether the field is there, as the macro `has` asks. `optional`: `a.?b`. */
export type Select = Node & {
  readonly kind: 'select'
  readonly operand: Expression
  readonly field: string
  readonly testsOnly: boolean
  readonly optional: boolean
}
/** Operators are functions too, with the names that cel-go gives them: `_+_`. */
export type Call = Node & {
  readonly kind: 'call'
  readonly name: string
  readonly target: Expression | undefined
  readonly args: readonly Expression[]
}
/** `optional`: the indices of items that are left out where they have no value: `[?a]`. */
export type ListLiteral = Node & {
  readonly kind: 'list'
  readonly items: readonly Expression[]
  readonly optional: ReadonlySet<number>
}
export type MapEntry = { readonly key: Expression; readonly value: Expression; readonly optional: boolean }
export type MapLiteral = Node & { readonly kind: 'map'; readonly entries: readonly MapEntry[] }
/** For each item of the range, while the condition is not false, the accumulator becomes what the step gives. */
export type Comprehension = Node & {
  readonly kind: 'comprehension'
  readonly range: Expression
  readonly variable: string
  /** `variable` is the index or key then, and this the item or value. */
  readonly second: string | undefined
  readonly initial: Expression
  readonly condition: Expression
  readonly step: Expression
  readonly result: Expression
}
/** `result` with the name for what `value` gives. */
export type NamedValue = Node & {
  readonly kind: 'binding'
  readonly name: string
  readonly value: Expression
  readonly result: Expression
}

export type Expression = Constant | Identifier | Select | Call | ListLiteral | MapLiteral | Comprehension | NamedValue

/** The variable that a comprehension collects into: no expression can name it. */
export const accumulator = '@result'

type WithoutDepth<T> = T extends Node ? Omit<T, 'depth'> : never

export function expressionOf(node: WithoutDepth<Expression>): Expression {
  const depth = 1 + Math.max(0, ...partsOf(node).map((part) => part.depth))
  return { ...node, depth } as Expression
}

/** The expressions that it is made of. */
export function partsOf(node: WithoutDepth<Expression>): readonly Expression[] {
  switch (node.kind) {
    case 'constant':
    case 'identifier':
      return []
    case 'select':
      return [node.operand]
    case 'call':
      return node.target === undefined ? node.args : [node.target, ...node.args]
    case 'list':
      return node.items
    case 'map':
      return node.entries.flatMap(({ key, value }) => [key, value])
    case 'comprehension':
      return [node.range, node.initial, node.condition, node.step, node.result]
    case 'binding':
      return [node.value, node.result]
  }
}
