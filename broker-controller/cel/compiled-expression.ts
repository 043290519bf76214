/** Expressions of CEL: compiled once against what they may name, evaluated often. */
import { type CelEnvironment, type Checked, checkExpression } from './checking/checker.ts'
import { literalProblems } from './checking/literals.ts'
import { declaredFunctions } from './functions/library.ts'
import { Machine, type Variables } from './machine.ts'
import { type Program, programOf } from './program.ts'
import { parseExpression } from './syntax/parser.ts'
import { problemsText, SourceError } from './syntax/source-problem.ts'
import type { Meter } from './values/meter.ts'

export type Compiled = { readonly checked: Checked; readonly program: Program }

/** The expression, or what is wrong with it as cel-go prints it. */
export function compileExpression(source: string, variables: CelEnvironment['variables']): Compiled | string {
  const checked = checkedExpression(source, variables)
  return typeof checked === 'string' ? checked : { checked, program: programOf(checked) }
}

/** The same for one that is not to be evaluated. */
export function checkedExpression(source: string, variables: CelEnvironment['variables']): Checked | string {
  try {
    const checked = checkExpression(parseExpression(source), { variables, functions: declaredFunctions() })
    const problems = 'problems' in checked ? checked.problems : literalProblems(checked)
    return problems.length > 0 || 'problems' in checked ? problemsText(source, problems) : checked
  } catch (error) {
    if (error instanceof SourceError) return problemsText(source, [error.problem])
    throw error
  }
}

/** An evaluation that takes more than its meter has throws CostExceededError from `run`. */
export function evaluation({ program }: Compiled, variables: Variables, meter: Meter): Machine {
  return new Machine(program, variables, meter)
}
