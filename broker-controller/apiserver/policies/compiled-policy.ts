/** The expressions of a policy, compiled (compilePolicy in apiserver/pkg/admission/plugin/policy/validating/plugin.go). */
import type { AdmissionPolicySpec } from '../../../api/admission/validating-admission-policy.ts'
import { type CelType, dynType } from '../../cel/checking/types.ts'
import {
  type AdmissionExpression,
  admissionExpression,
  type ExpressionProblem,
  type WantedResult,
} from '../expressions/admission-expression.ts'
import { composedType, type DeclaredVariables } from '../expressions/admission-variables.ts'
import type { NamedExpression } from '../expressions/expression-problems.ts'
import type { ComposedVariables } from '../expressions/expression-run.ts'

type Expression = AdmissionExpression | ExpressionProblem

/** Each list in the order of the policy. */
export type CompiledPolicy = {
  readonly variables: ComposedVariables
  readonly conditions: readonly Expression[]
  readonly validations: readonly CompiledValidation[]
  readonly annotations: readonly Expression[]
}

export type CompiledValidation = { readonly condition: Expression; readonly message: Expression | undefined }

/** In pieces, each of them an expression: its field, and what it is compiled to. */
export function* compilePolicy(spec: AdmissionPolicySpec): Generator<NamedExpression, CompiledPolicy> {
  const { matchConditions = [], variables = [], validations = [], auditAnnotations = [] } = spec
  const composed = new Map<string, CelType>()
  const declared: DeclaredVariables = { hasParams: spec.paramKind !== undefined, hasAuthorizer: true, composed }
  function* compiled(field: string, source: string, wanted: WantedResult, own = declared) {
    const expression = admissionExpression(source, own, wanted)
    yield [field, expression] as const
    return expression
  }
  const known = new Map<string, Expression>()
  for (const [index, { name, expression }] of variables.entries()) {
    const made: Expression = yield* compiled(`spec.variables[${index}].expression`, expression, 'any')
    known.set(name, made)
    composed.set(name, 'problem' in made ? dynType : composedType(made.type))
  }
  const conditions: Expression[] = []
  for (const [index, { expression }] of matchConditions.entries()) {
    conditions.push(yield* compiled(`spec.matchConditions[${index}].expression`, expression, 'bool'))
  }
  const judging: CompiledValidation[] = []
  const ofMessages = { ...declared, hasAuthorizer: false }
  for (const [index, { expression, messageExpression = '' }] of validations.entries()) {
    const field = `spec.validations[${index}]`
    const condition: Expression = yield* compiled(`${field}.expression`, expression, 'bool')
    const message: Expression | undefined =
      messageExpression === ''
        ? undefined
        : yield* compiled(`${field}.messageExpression`, messageExpression, 'string', ofMessages)
    judging.push({ condition, message })
  }
  const annotations: Expression[] = []
  for (const [index, { valueExpression }] of auditAnnotations.entries()) {
    annotations.push(yield* compiled(`spec.auditAnnotations[${index}].valueExpression`, valueExpression.trim(), 'text'))
  }
  return { variables: known, conditions, validations: judging, annotations }
}

/** Characters of all expressions. */
export function expressionsOf(spec: AdmissionPolicySpec): readonly { readonly source: string }[] {
  const { matchConditions = [], variables = [], validations = [], auditAnnotations = [] } = spec
  return [
    ...[...matchConditions, ...variables].map(({ expression }) => ({ source: expression })),
    ...validations.map(({ expression, messageExpression = '' }) => ({ source: `${expression}${messageExpression}` })),
    ...auditAnnotations.map(({ valueExpression }) => ({ source: valueExpression })),
  ]
}
