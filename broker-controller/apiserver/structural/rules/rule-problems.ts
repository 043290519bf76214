/**
 * What is wrong with the rules of a definition: they do not compile, or may cost too much (ValidateCustomResourceDefinitionOpenAPISchema
 * in apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go). In pieces: a definition may have hundreds of rules.
 */
import { clipped, forbidden, invalid, mostProblems, type Problem } from '../../../../api/problem.ts'
import type { JSONSchemaProps, ValidationRule } from '../../../../api/structural/json-schema-props.ts'
import { tooLong } from '../../../../api/validation/metadata-validation.ts'
import { schemaOfItems } from '../pruning.ts'
import { type CompiledRule, compiledRule, hasRules } from './compiled-rules.ts'
import { type Declared, declaredType, largestRequest } from './declared-type.ts'
import { readFieldPath } from './field-path.ts'
import { valueRuleProblems } from './object-rules.ts'
import { ruleNodeOf } from './rule-nodes.ts'

/** Estimates of Kubernetes (StaticEstimatedCostLimit, StaticEstimatedCRDCostLimit). */
const mostRuleCost = 10_000_000
const mostDefinitionCost = 100_000_000
const mostNamed = 4

/** At most `mostProblems`. The schema, at the path `at`, has no other problems. */
export function* ruleProblems(at: string, schema: JSONSchemaProps): Generator<undefined, readonly Problem[]> {
  if (!hasRules(schema)) return []
  const walk: Walk = { found: [], costs: [], characters: 0 }
  yield* visit(walk, at, schema, { count: 1, declared: undefined, isResource: true, uncorrelated: undefined })
  const found = [...walk.found, ...totalProblems(at, walk.costs)]
  if (found.length === 0) yield* judgeDefaults(found, at, schema)
  return found.slice(0, mostProblems)
}

/** A default is a value that an object may have. */
function* judgeDefaults(found: Problem[], at: string, schema: JSONSchemaProps): Generator<undefined, void> {
  if (found.length >= mostProblems || !hasRules(schema)) return
  if (schema.default !== undefined) {
    const node = ruleNodeOf(schema, undefined, schema['x-kubernetes-embedded-resource'] === true)
    if (node !== undefined) found.push(...(yield* valueRuleProblems(node, schema.default, `${at}.default`)))
  }
  const place: Place = { count: undefined, declared: undefined, isResource: false, uncorrelated: undefined }
  for (const [path, inner] of innerPlaces(at, schema, place)) yield* judgeDefaults(found, `${at}${path}`, inner)
}

type Walk = {
  readonly found: Problem[]
  readonly costs: { readonly at: string; readonly cost: number }[]
  /** Characters of the expressions so far. */
  characters: number
}

type Place = {
  /** How many values of the schema an object may have; undefined: only the size of a request bounds them. */
  readonly count: number | undefined
  /** Types of the schema; undefined: no schema around it has rules. */
  readonly declared: Declared | undefined
  readonly isResource: boolean
  /** The path of the list around it whose items have no earlier ones. */
  readonly uncorrelated: string | undefined
}

function* visit(walk: Walk, at: string, schema: JSONSchemaProps, place: Place): Generator<undefined, void> {
  if (walk.found.length >= mostProblems) return
  const rules = schema['x-kubernetes-validations'] ?? []
  const declared = place.declared ?? (rules.length === 0 ? undefined : declaredType(schema, place.isResource))
  if (declared === undefined) walk.found.push(...rules.map((_, index) => forbidden(ruleField(at, index), untyped)))
  else if (!(yield* visitRules(walk, at, schema, declared, place))) return
  for (const [path, inner, own] of innerPlaces(at, schema, { ...place, declared })) {
    if (hasRules(inner)) yield* visit(walk, `${at}${path}`, inner, own)
  }
}

const untyped = 'the schema has a type that rules cannot name: x-kubernetes-preserve-unknown-fields without a type'

function ruleField(at: string, index: number): string {
  return `${at}.x-kubernetes-validations[${index}]`
}

/** False: there are too many characters to go on. */
function* visitRules(
  walk: Walk,
  at: string,
  schema: JSONSchemaProps,
  declared: Declared,
  place: Place,
): Generator<undefined, boolean> {
  for (const [index, rule] of (schema['x-kubernetes-validations'] ?? []).entries()) {
    const field = ruleField(at, index)
    walk.characters += rule.rule.length + (rule.messageExpression?.length ?? 0)
    if (walk.characters > mostCharacters) {
      walk.found.push(forbidden(field, `the rules of the schema have more than ${mostCharacters} characters together`))
      return false
    }
    const lengths = lengthProblems(field, rule)
    if (lengths.length > 0) walk.found.push(...lengths)
    else walk.found.push(...problemsOf(walk, field, compiledRule(rule, declared), schema, declared, place))
    yield
  }
  return true
}

type Inner = readonly [path: string, schema: JSONSchemaProps, place: Place]

function innerPlaces(at: string, schema: JSONSchemaProps, { count, declared, uncorrelated }: Place): readonly Inner[] {
  const { properties = {}, additionalProperties, maxItems, maxProperties } = schema
  const listType = schema['x-kubernetes-list-type']
  const items = schemaOfItems(schema)
  const within = (most: number | undefined) => (count === undefined || most === undefined ? undefined : count * most)
  const isResource = (one: JSONSchemaProps) => one['x-kubernetes-embedded-resource'] === true
  const found: Inner[] = []
  for (const [name, one] of Object.entries(properties)) {
    const own = { declared: declared?.fields?.get(name), isResource: isResource(one), uncorrelated }
    found.push([`.properties[${name}]`, one, { count, ...own }])
  }
  if (typeof additionalProperties === 'object') {
    const own = { declared: declared?.element, isResource: isResource(additionalProperties), uncorrelated }
    found.push(['.additionalProperties', additionalProperties, { count: within(maxProperties), ...own }])
  }
  if (items !== undefined) {
    const list = uncorrelated ?? (listType === 'map' ? undefined : at)
    const own = { declared: declared?.element, isResource: isResource(items), uncorrelated: list }
    found.push(['.items', items, { count: within(maxItems), ...own }])
  }
  return found
}

function problemsOf(
  walk: Walk,
  at: string,
  made: CompiledRule,
  schema: JSONSchemaProps,
  { least }: Declared,
  { count, uncorrelated }: Place,
): readonly Problem[] {
  const { rule, condition, message, problem, messageProblem, usesOldSelf } = made
  const repeated = (condition?.cost ?? 0) * (count ?? Math.floor(largestRequest / (least + 1)))
  walk.costs.push({ at: `${at}.rule`, cost: repeated }, { at: `${at}.messageExpression`, cost: message?.cost ?? 0 })
  return [
    ...costProblems(`${at}.rule`, 'estimated rule cost', repeated),
    ...(problem === undefined ? [] : [invalid(`${at}.rule`, rule.rule, problem)]),
    ...(messageProblem === undefined
      ? []
      : [invalid(`${at}.messageExpression`, rule.messageExpression, messageProblem)]),
    ...costProblems(`${at}.messageExpression`, 'estimated messageExpression cost', message?.cost ?? 0),
    ...(usesOldSelf && uncorrelated !== undefined
      ? [
          invalid(
            `${at}.rule`,
            rule.rule,
            `oldSelf cannot be used on the uncorrelatable portion of the schema within ${uncorrelated}`,
          ),
        ]
      : []),
    ...(!usesOldSelf && problem === undefined && rule.optionalOldSelf !== undefined
      ? [invalid(`${at}.optionalOldSelf`, rule.optionalOldSelf, 'may not be set if oldSelf is not used in rule')]
      : []),
    ...(rule.fieldPath && readFieldPath(rule.fieldPath, schema) === undefined
      ? [invalid(`${at}.fieldPath`, clipped(rule.fieldPath), 'must be a valid path')]
      : []),
  ]
}

/** An expression is compiled in one turn of the event loop. Those of real projects have up to 2,500 characters. */
const longestExpression = 8_192
/** Two seconds to compile. The largest schema of the Gateway API has 8,300. */
const mostCharacters = 500_000

function lengthProblems(at: string, { rule, messageExpression = '' }: ValidationRule): readonly Problem[] {
  return [
    ...(rule.length > longestExpression ? [tooLong(`${at}.rule`, longestExpression)] : []),
    ...(messageExpression.length > longestExpression ? [tooLong(`${at}.messageExpression`, longestExpression)] : []),
  ]
}

function costProblems(field: string, what: string, cost: number): readonly Problem[] {
  return cost > mostRuleCost ? [forbidden(field, exceeds(what, cost / mostRuleCost))] : []
}

function exceeds(what: string, factor: number): string {
  const text = factor > 100 ? 'more than 100x' : factor < 1.5 ? `${factor.toFixed(6)}x` : `${factor.toFixed(1)}x`
  const hint =
    'try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared'
  return `${what} exceeds budget by factor of ${text} (${hint})`
}

function totalProblems(at: string, costs: Walk['costs']): readonly Problem[] {
  const total = costs.reduce((sum, { cost }) => sum + cost, 0)
  if (total <= mostDefinitionCost) return []
  const why = 'contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema'
  const expensive = costs
    .filter(({ cost }) => cost > mostDefinitionCost / 100)
    .sort((one, other) => other.cost - one.cost)
    .slice(0, mostNamed)
  const what = 'x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema'
  return [...expensive.map((one) => forbidden(one.at, why)), forbidden(at, exceeds(what, total / mostDefinitionCost))]
}
