/** What is wrong with expressions that are being written. */
import { forbidden, invalid, mostProblems, type Problem } from '../../../api/problem.ts'
import type { AdmissionExpression, ExpressionProblem } from './admission-expression.ts'

/** Characters of all expressions of one object, which take less than a second to compile. */
const mostCharacters = 200_000

export type WrittenExpression = { readonly field: string; readonly source: string }
export type NamedExpression = readonly [field: string, expression: AdmissionExpression | ExpressionProblem]

/** Expressions that are too long together are not compiled. */
export function lengthProblems(field: string, written: readonly { readonly source: string }[]): readonly Problem[] {
  const characters = written.reduce((sum, { source }) => sum + source.length, 0)
  if (characters <= mostCharacters) return []
  return [forbidden(field, `the expressions have more than ${mostCharacters} characters together`)]
}

/** In pieces, each of them an expression. At most `mostProblems`. */
export function* compilationProblems(expressions: Iterable<NamedExpression>): Generator<undefined, readonly Problem[]> {
  const found: Problem[] = []
  for (const [field, expression] of expressions) {
    if ('problem' in expression) found.push(invalid(field, expression.source, expression.problem))
    if (found.length >= mostProblems) break
    yield
  }
  return found
}
