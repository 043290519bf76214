/** Literals that a function cannot take: they are known before an expression runs (cel-go's cel/validator.go). */
import { PatternError } from '../../../api/patterns/pattern-syntax.ts'
import { knownPattern } from '../functions/patterns.ts'
import { type Expression, partsOf } from '../syntax/expression.ts'
import type { SourceProblem } from '../syntax/source-problem.ts'
import { parseGoDuration, parseTimestamp } from '../values/time-values.ts'
import type { Value } from '../values/value.ts'
import type { Checked } from './checker.ts'

export function literalProblems(checked: Checked): readonly SourceProblem[] {
  const found: SourceProblem[] = []
  const visit = (expression: Expression): void => {
    if (expression.kind === 'call') {
      const literal = expression.args.at(-1)
      if (literal?.kind === 'constant' && !isRight(expression.name, literal.value)) {
        found.push({ at: literal.at, message: `invalid ${expression.name} argument` })
      }
    }
    for (const part of partsOf(expression)) visit(part)
  }
  visit(checked.expression)
  return found
}

function isRight(name: string, value: Value): boolean {
  if (typeof value !== 'string') return true
  if (name === 'duration') return parseGoDuration(value) !== undefined
  if (name === 'timestamp') return parseTimestamp(value) !== undefined
  if (name !== 'matches') return true
  try {
    knownPattern(value)
    return true
  } catch (error) {
    if (error instanceof PatternError) return false
    throw error
  }
}
