/**
 * What a policy decides about a write with one object of parameters
 * (apiserver/pkg/admission/plugin/policy/validating/validator.go).
 */
import type { AdmissionPolicySpec, PolicyValidation } from '../../../api/admission/validating-admission-policy.ts'
import type { Variables } from '../../cel/machine.ts'
import { CelFailure, typeNameOf, type Value } from '../../cel/values/value.ts'
import {
  conditionBudget,
  ExpressionRun,
  OutOfBudgetError,
  policyBudget,
  type RequestWork,
} from '../expressions/expression-run.ts'
import { conditionsVerdict } from '../expressions/match-conditions.ts'
import type { CompiledPolicy } from './compiled-policy.ts'

/** Why the write is denied. */
export type PolicyDenial = {
  readonly message: string
  /** undefined: Invalid. */
  readonly reason?: string
  /** Index of the validation. */
  readonly index: number
}

export type PolicyJudgement = {
  readonly denials: readonly PolicyDenial[]
  /** Values for the audit log, by key. */
  readonly annotations: readonly (readonly [key: string, value: string])[]
  /** Failures of audit annotations: they deny the write, whatever the actions of the binding are. */
  readonly failures: readonly string[]
}

export type JudgementInput = {
  readonly spec: AdmissionPolicySpec
  readonly compiled: CompiledPolicy
  /** Those of conditions have no namespaceObject, those of messages and annotations no authorizer. */
  readonly variables: { readonly conditions: Variables; readonly validations: Variables; readonly texts: Variables }
  readonly work: RequestWork
}

const nothing: PolicyJudgement = { denials: [], annotations: [], failures: [] }

/** Where the policy could not be evaluated. */
export function failedJudgement({ failurePolicy }: AdmissionPolicySpec, message: string): PolicyJudgement {
  return failurePolicy === 'Ignore' ? nothing : { ...nothing, denials: [{ message, index: 0 }] }
}

export async function policyJudgement(input: JudgementInput): Promise<PolicyJudgement> {
  const { spec, compiled } = input
  const fails = spec.failurePolicy !== 'Ignore'
  const denied = (message: string) => failedJudgement(spec, message)
  const { matchConditions = [] } = spec
  if (matchConditions.length > 0) {
    const places = new Map(matchConditions.map((condition, index) => [condition, compiled.conditions[index]]))
    const none = { source: '', problem: 'it is not compiled' }
    const run = runOf(input, 'conditions', conditionBudget)
    const verdict = await conditionsVerdict(matchConditions, (condition) => places.get(condition) ?? none, run)
    if ('error' in verdict) return denied(verdict.error)
    if (!verdict.matches) return nothing
  }
  try {
    const denials = await judgedValidations(input, fails)
    return { denials, ...(await judgedAnnotations(input, fails)) }
  } catch (error) {
    if (error instanceof OutOfBudgetError) return denied(error.message)
    throw error
  }
}

function runOf(
  { compiled, variables, work }: JudgementInput,
  which: keyof JudgementInput['variables'],
  budget: number,
) {
  return new ExpressionRun({ variables: variables[which], composed: compiled.variables, budget, work })
}

async function judgedValidations(input: JudgementInput, fails: boolean): Promise<readonly PolicyDenial[]> {
  const { spec, compiled } = input
  const outcomes: (string | { readonly value: unknown })[] = []
  const run = runOf(input, 'validations', policyBudget)
  for (const { condition } of compiled.validations) outcomes.push(await run.evaluate(condition))
  const texts = await messages(input, run.budget)
  // As Kubernetes: a message that fails counts also for a validation that holds.
  const failure = typeof texts === 'string' ? `failed messageExpression: ${texts}` : undefined
  const denials: PolicyDenial[] = []
  for (const [index, validation] of (spec.validations ?? []).entries()) {
    const outcome = outcomes[index]
    const failed = typeof outcome === 'string' ? outcome : failure
    if (failed !== undefined) {
      if (fails) denials.push({ message: failed, index })
    } else if (typeof outcome !== 'string' && outcome?.value !== true) {
      denials.push(denial(validation, texts[index] ?? '', index))
    }
  }
  return denials
}

function denial(validation: PolicyValidation, text: string, index: number): PolicyDenial {
  const { reason } = validation
  return { message: denialText(validation, text), index, ...(reason && { reason }) }
}

/** celconfig.MaxEvaluatedMessageExpressionSizeBytes. */
const longestMessage = 5 * 1024

/** What the expressions of messages give, '' where that is not a message; a text: why there are none. */
async function messages(input: JudgementInput, budget: number): Promise<readonly string[] | string> {
  const { validations } = input.compiled
  if (validations.every(({ message }) => message === undefined)) return []
  const run = runOf(input, 'texts', budget)
  const texts: string[] = []
  try {
    for (const { message } of validations) {
      const outcome = message === undefined ? '' : await run.evaluate(message)
      const value = typeof outcome === 'string' ? '' : outcome.value
      const text = typeof value === 'string' ? value.trim() : ''
      texts.push(text.length > longestMessage || text.includes('\n') ? '' : text)
    }
    return texts
  } catch (error) {
    if (error instanceof OutOfBudgetError) return error.message
    throw error
  }
}

function denialText({ message = '', expression }: PolicyValidation, evaluated: string): string {
  return evaluated || message.trim() || `failed expression: ${expression.trim()}`
}

async function judgedAnnotations(input: JudgementInput, fails: boolean) {
  const annotations: (readonly [string, string])[] = []
  const failures: string[] = []
  const run = runOf(input, 'texts', policyBudget)
  for (const [index, { key, valueExpression }] of (input.spec.auditAnnotations ?? []).entries()) {
    const expression = input.compiled.annotations[index]
    if (expression === undefined) continue
    const outcome = await run.evaluate(expression)
    if (typeof outcome === 'string') {
      if (fails) failures.push(outcome)
      continue
    }
    const { value } = outcome
    const text = trimmed(value)
    if (text !== '') annotations.push([key, text])
    if (typeof value !== 'string' && value !== null) failures.push(unsupportedType(valueExpression, value))
  }
  return { annotations, failures }
}

function typeOf(value: Value | CelFailure): string {
  return value instanceof CelFailure ? 'error' : typeNameOf(value)
}

function unsupportedType(expression: string, value: Parameters<typeof typeOf>[0]): string {
  return (
    `valueExpression '${expression}' resulted in unsupported return type: ${typeOf(value)}. ` +
    'Return type must be either string or null.'
  )
}

function trimmed(value: unknown): string {
  return typeof value === 'string' ? value.trim() : ''
}
