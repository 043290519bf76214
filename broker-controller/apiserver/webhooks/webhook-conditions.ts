/** Whether the `matchConditions` of a webhook choose a write (ShouldCallHook in webhook/generic/webhook.go). */
import type { Webhook } from '../../../api/admission/webhook.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { type AccessNeeds, accessQuestions } from '../expressions/access-questions.ts'
import {
  type AdmissionExpression,
  admissionExpression,
  type ExpressionProblem,
} from '../expressions/admission-expression.ts'
import { conditionVariables } from '../expressions/admission-variables.ts'
import { compiledCache } from '../expressions/compiled-cache.ts'
import {
  type AdmissionAccess,
  admissionVariables,
  conditionBudget,
  ExpressionRun,
  requestWork,
} from '../expressions/expression-run.ts'
import { conditionsVerdict } from '../expressions/match-conditions.ts'
import { forbid } from '../handlers/resource-request.ts'
import type { ReviewedWrite } from '../handlers/webhook-gate.ts'
import { requestFacts } from './admission-review.ts'
import type { ReviewedForm } from './webhook-form.ts'

export type ConditionNeeds = AccessNeeds & { readonly clock: Pick<Clock, 'monotonicMs'> }

/** Throws Forbidden where conditions fail, and the policy of the webhook is not to ignore that. */
export type MatchesConditions = (webhook: Webhook, form: () => Promise<ReviewedForm>) => Promise<boolean>

export function webhookConditions({ access, kinds, clock }: ConditionNeeds) {
  const cache = compiledCache<AdmissionExpression | ExpressionProblem>()
  const compiled = (expression: string) =>
    cache.get(expression, expression.length, () => admissionExpression(expression, conditionVariables, 'bool'))
  return {
    /** For the webhooks of one write. */
    of(write: ReviewedWrite): MatchesConditions {
      const work = requestWork(clock, write.startedMs)
      const asked = accessOf(write, { access, kinds })
      return async ({ matchConditions = [], failurePolicy }, form) => {
        if (matchConditions.length === 0) return true
        const { variables } = expressionInput(write, await form(), asked)
        const run = new ExpressionRun({ variables, budget: conditionBudget, work })
        const verdict = await conditionsVerdict(matchConditions, ({ expression }) => compiled(expression), run)
        if ('matches' in verdict) return verdict.matches
        if (failurePolicy === 'Ignore') return false
        throw forbid(write.route.resource, write.name, verdict.error)
      }
    },
  }
}

/** What the expressions about the write ask about access, and of whom. */
export function accessOf({ identity, route, name }: ReviewedWrite, needs: AccessNeeds): AdmissionAccess {
  const { resource, subresource, namespace } = route
  const asked = { group: resource.group, resource: resource.name, subresource, namespace, name, fieldSelector: '' }
  return { ask: accessQuestions(identity, needs), resource: asked }
}

/** The variables of expressions about the write in this form. */
export function expressionInput(write: ReviewedWrite, form: ReviewedForm, access: AdmissionAccess) {
  const { object, old } = form
  const values = { object, oldObject: old, request: requestFacts(write, form) }
  return { values, variables: admissionVariables(values, access) }
}
