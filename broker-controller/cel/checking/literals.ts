/** Literals that a function cannot take: they are known before an expression runs (cel-go's cel/validator.go). */
import { PatternError } from '../../../api/patterns/pattern-syntax.ts'
import { knownPattern } from '../functions/patterns.ts'
import { type Expression, partsOf } from '../syntax/expression.ts'
import type { SourceProblem } from '../syntax/source-problem.ts'
import { nanosPerSecond, parseGoDuration, parseTimestamp, timestampOf } from '../values/time-values.ts'
import { isInt, type Value } from '../values/value.ts'
import type { Checked } from './checker.ts'
import { type CelType, Substitutions, typeText } from './types.ts'

export function literalProblems(checked: Checked): readonly SourceProblem[] {
  const found: SourceProblem[] = []
  const visit = (expression: Expression, mayMix: boolean): void => {
    if (expression.kind === 'call') {
      const literal = expression.args.at(-1)
      if (literal?.kind === 'constant' && !isRight(expression.name, literal.value)) {
        found.push({ at: literal.at, message: `invalid ${expression.name} argument` })
      }
    }
    if (!mayMix) found.push(...mixedItems(checked, expression))
    const isFormat = expression.kind === 'call' && expression.name === 'format'
    for (const part of partsOf(expression)) visit(part, mayMix || isFormat)
  }
  visit(checked.expression, false)
  return found
}

/** The items of a literal are of one type, but for what `format` is given. */
function mixedItems(checked: Checked, literal: Expression): readonly SourceProblem[] {
  if (literal.kind === 'list') {
    return mixed(
      literal.items.map((item, index) => ({
        item,
        type: unwrapped(checked.typeOf(item), literal.optional.has(index)),
      })),
    )
  }
  if (literal.kind !== 'map') return []
  const { entries } = literal
  return [
    ...mixed(entries.map(({ key }) => ({ item: key, type: checked.typeOf(key) }))),
    ...mixed(entries.map(({ value, optional }) => ({ item: value, type: unwrapped(checked.typeOf(value), optional) }))),
  ]
}

function unwrapped(type: CelType, isOptional: boolean): CelType {
  return isOptional ? (type.parameters[0] ?? type) : type
}

function mixed(items: readonly { readonly item: Expression; readonly type: CelType }[]): readonly SourceProblem[] {
  const [first, ...others] = items
  const wrong = first && others.find(({ type }) => !new Substitutions().assignable([first.type], [type]))
  if (first === undefined || wrong === undefined) return []
  const message = `expected type '${typeText(first.type)}' but found '${typeText(wrong.type)}'`
  return [{ at: wrong.item.at, message }]
}

function isRight(name: string, value: Value): boolean {
  if (name === 'timestamp' && isInt(value)) return timestampOf(BigInt(value) * nanosPerSecond) !== undefined
  if (typeof value !== 'string') return true
  if (name === 'duration') return parseGoDuration(value) !== undefined
  if (name === 'timestamp') return parseTimestamp(value) !== undefined
  if (name !== 'matches' && name !== 'find') return true
  try {
    knownPattern(value)
    return true
  } catch (error) {
    if (error instanceof PatternError) return false
    throw error
  }
}
