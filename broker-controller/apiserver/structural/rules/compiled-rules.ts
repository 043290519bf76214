/** The rules of one schema, compiled (apiextensions-apiserver/pkg/apiserver/schema/cel/compilation.go). */
import type { JSONSchemaProps, ValidationRule } from '../../../../api/structural/json-schema-props.ts'
import { type CelType, optionalType } from '../../../cel/checking/types.ts'
import { type Compiled, compileExpression } from '../../../cel/compiled-expression.ts'
import { estimatedCost } from '../../../cel/cost-estimate.ts'
import { schemaOfItems } from '../pruning.ts'
import { type Declared, sizeAtPath } from './declared-type.ts'
import { readFieldPath } from './field-path.ts'

export type CompiledExpression = Pick<Compiled, 'program'> & {
  /** Highest cost of one evaluation. */
  readonly cost: number
}

export type CompiledRule = {
  readonly rule: ValidationRule
  /** What is wrong with it; undefined: nothing. */
  readonly problem?: string
  readonly condition?: CompiledExpression
  /** It compares with the earlier value. */
  readonly usesOldSelf: boolean
  readonly messageProblem?: string
  readonly message?: CompiledExpression
  /** Path from the value to the field that the problem is about; '': the value itself. */
  readonly fieldPath: string
}

export function compiledRule(rule: ValidationRule, declared: Declared): CompiledRule {
  const { optionalOldSelf = false, messageExpression = '', fieldPath = '' } = rule
  const variables = new Map<string, CelType>([
    ['self', declared.type],
    ['oldSelf', optionalOldSelf ? optionalType(declared.type) : declared.type],
  ])
  const path = fieldPath === '' ? '' : (readFieldPath(fieldPath, declared.schema) ?? '')
  const condition = compiled(rule.rule, variables, declared, 'bool')
  if (typeof condition === 'string') return { rule, problem: condition, usesOldSelf: false, fieldPath: path }
  const message = messageExpression === '' ? undefined : compiled(messageExpression, variables, declared, 'string')
  return {
    rule,
    condition,
    usesOldSelf: condition.variables.has('oldSelf'),
    ...(typeof message === 'string' ? { messageProblem: `messageExpression ${message}` } : message && { message }),
    fieldPath: path,
  }
}

const wanted = { bool: 'cel expression must evaluate to a bool', string: 'must evaluate to a string' } as const

function compiled(
  source: string,
  variables: ReadonlyMap<string, CelType>,
  declared: Declared,
  result: keyof typeof wanted,
): (CompiledExpression & { readonly variables: ReadonlySet<string> }) | string {
  const made = compileExpression(source, variables)
  if (typeof made === 'string') return `compilation failed: ${made}`
  if (made.checked.type.kind !== result) return wanted[result]
  const { max } = estimatedCost(made.checked, (path) => sizeAtPath(declared, path))
  return { program: made.program, cost: max, variables: made.checked.variables }
}

const known = new WeakMap<JSONSchemaProps, boolean>()

/** Whether the schema, or one in it, has rules. */
export function hasRules(schema: JSONSchemaProps): boolean {
  const before = known.get(schema)
  if (before !== undefined) return before
  const { additionalProperties, properties = {}, 'x-kubernetes-validations': rules = [] } = schema
  const items = schemaOfItems(schema)
  const result =
    rules.length > 0 ||
    (items !== undefined && hasRules(items)) ||
    (typeof additionalProperties === 'object' && hasRules(additionalProperties)) ||
    Object.values(properties).some(hasRules)
  known.set(schema, result)
  return result
}
