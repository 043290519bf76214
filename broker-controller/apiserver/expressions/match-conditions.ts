/** The `matchConditions` of webhooks and policies (apiserver/pkg/admission/plugin/webhook/matchconditions/matcher.go). */
import type { MatchCondition } from '../../../api/admission/webhook.ts'
import type { AdmissionExpression, ExpressionProblem } from './admission-expression.ts'
import { type ExpressionRun, OutOfBudgetError } from './expression-run.ts'

/** `error`: none of them is false, and some have no value. */
export type ConditionsVerdict = { readonly matches: boolean } | { readonly error: string }

/** One that is false decides, whatever is wrong with the others. */
export async function conditionsVerdict(
  conditions: readonly MatchCondition[],
  compiled: (condition: MatchCondition) => AdmissionExpression | ExpressionProblem,
  run: ExpressionRun,
): Promise<ConditionsVerdict> {
  const errors = new Set<string>()
  // As Kubernetes: all are evaluated before one decides, so the budget covers all of them.
  let isFalse = false
  try {
    for (const condition of conditions) {
      const outcome = await run.evaluate(compiled(condition))
      if (typeof outcome === 'string') errors.add(outcome)
      else if (outcome.value === false) isFalse = true
    }
  } catch (error) {
    if (error instanceof OutOfBudgetError) return { error: error.message }
    throw error
  }
  if (isFalse) return { matches: false }
  const [first, ...others] = errors
  if (first === undefined) return { matches: true }
  return { error: others.length === 0 ? first : `[${[...errors].join(', ')}]` }
}
