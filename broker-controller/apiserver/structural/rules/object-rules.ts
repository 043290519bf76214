/**
 * Evaluates the rules of a schema for an object (apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go). In pieces: rules are those
 * of clients, and may take long.
 */
import { duplicate, forbidden, invalid, mostProblems, type Problem, required } from '../../../../api/problem.ts'
import type { JSONSchemaProps, ValidationRule } from '../../../../api/structural/json-schema-props.ts'
import { isObject } from '../../../../api/text/json.ts'
import { Machine } from '../../../cel/machine.ts'
import { CostExceededError, Meter } from '../../../cel/values/meter.ts'
import {
  CelFailure,
  type CelOutcome,
  Deferred,
  none,
  noSuchOverload,
  Optional,
  type Value,
} from '../../../cel/values/value.ts'
import { equalJSON } from '../../../store/equal-json.ts'
import { earlierItems, uncorrelated } from '../value-problems.ts'
import { type CompiledExpression, type CompiledRule, hasRules } from './compiled-rules.ts'
import { type RuleNode, ruleNodesOf } from './rule-nodes.ts'
import { schemaValue } from './schema-values.ts'

/** Cost of one evaluation, and of all for one object (celconfig.PerCallLimit, RuntimeCELCostBudget). */
const mostCallCost = 1_000_000
const mostObjectCost = 10_000_000
/** Steps between two looks at the clock: about a millisecond. */
const slice = 20_000
/** Steps for one object, whatever they cost: about half a second. */
const mostSteps = 20_000_000

/** At most `mostProblems`. `old`: what the object replaces; undefined: it is new. The object has no problems by its schema. */
export function* objectRuleProblems(
  schema: JSONSchemaProps,
  object: unknown,
  at: string,
  old?: unknown,
): Generator<undefined, readonly Problem[]> {
  const node = ruleNodesOf(schema)
  return node === undefined ? [] : yield* valueRuleProblems(node, object, at, old)
}

/** The same of a part of an object. */
export function* valueRuleProblems(
  node: RuleNode,
  object: unknown,
  at: string,
  old?: unknown,
): Generator<undefined, readonly Problem[]> {
  const run: Run = { found: [], cost: mostObjectCost, steps: mostSteps, isOver: false }
  const isSame = () => old !== undefined && equalJSON(object, old)
  yield* visit(run, node, { value: object, old: old === undefined ? uncorrelated : old, at, isSame, isWhole: true })
  return run.found
}

const unchecked =
  'some validation rules were not checked because the object was invalid; correct the existing errors to complete validation'

/** The problems of an object by its schema, and that its rules are not evaluated before these are gone. */
export function withUncheckedRules(schema: JSONSchemaProps, problems: readonly Problem[]): readonly Problem[] {
  return problems.length === 0 || !hasRules(schema) ? problems : [...problems, invalid('<nil>', null, unchecked)]
}

type Run = {
  readonly found: Problem[]
  /** What is left of it. */
  cost: number
  steps: number
  /** Nothing more is evaluated. */
  isOver: boolean
}

type Place = {
  readonly value: unknown
  readonly old: unknown
  readonly at: string
  /** Whether the value is as it was, or what is around it, where it has no earlier value: then it is not judged again. */
  readonly isSame: () => boolean
  /** The object itself. */
  readonly isWhole?: true
}

const typeFields: ReadonlySet<string> = new Set(['apiVersion', 'kind'])

function* visit(run: Run, node: RuleNode, place: Place): Generator<undefined, void> {
  const { value } = place
  if (run.isOver || value === null || value === undefined) return
  if (node.rules.length > 0) yield* evaluateAll(run, node, place)
  if (Array.isArray(value)) yield* visitItems(run, node, place, value)
  else if (isObject(value)) yield* visitFields(run, node, place, value)
}

function* visitItems(run: Run, node: RuleNode, place: Place, items: readonly unknown[]): Generator<undefined, void> {
  if (node.element === undefined) return
  const earlier = earlierItems(node.declared.schema, place.old)
  for (const [index, item] of items.entries()) {
    if (run.isOver) return
    yield* visit(run, node.element, inner(place, item, earlier(item), `${place.at}[${index}]`))
  }
}

function* visitFields(
  run: Run,
  node: RuleNode,
  place: Place,
  fields: { readonly [name: string]: unknown },
): Generator<undefined, void> {
  for (const name of Object.keys(fields)) {
    if (run.isOver) return
    const own = node.properties.get(name) ?? node.element
    if (own !== undefined) yield* visit(run, own, fieldPlace(node, place, name, fields[name]))
  }
}

function fieldPlace(node: RuleNode, place: Place, name: string, value: unknown): Place {
  const old = isObject(place.old) && Object.hasOwn(place.old, name) ? place.old[name] : uncorrelated
  const field = place.at === '' ? name : `${place.at}.${name}`
  const part = inner(place, value, old, node.element === undefined ? field : `${place.at}[${name}]`)
  // The type of an object is that of the request: it is never as it was.
  return place.isWhole && typeFields.has(name) ? { ...part, isSame: () => false } : part
}

function inner(around: Place, value: unknown, old: unknown, at: string): Place {
  return { value, old, at, isSame: old === uncorrelated ? around.isSame : () => equalJSON(value, old) }
}

function* evaluateAll(run: Run, { rules, declared }: RuleNode, place: Place): Generator<undefined, void> {
  const self = schemaValue(declared, place.value)
  const hasOld = place.old !== uncorrelated && place.old !== null && place.old !== undefined
  const oldSelf = hasOld ? schemaValue(declared, place.old) : undefined
  const type = declared.schema.type ?? ''
  for (const lazy of rules) {
    if (!lazy.isCompiled) {
      lazy.compiled()
      yield
    }
    yield* evaluateOne(run, lazy.compiled(), { self, oldSelf }, place, type)
    if (run.isOver) return
  }
}

function* evaluateOne(
  run: Run,
  compiled: CompiledRule,
  { self, oldSelf }: Variables,
  place: Place,
  type: string,
): Generator<undefined, void> {
  const { rule, condition, usesOldSelf } = compiled
  const field = place.at === '' ? '<nil>' : place.at
  if (condition === undefined) {
    // Another version of Bramble accepted the definition: a rule is never skipped.
    run.found.push(invalid(field, type, `rule compile error: ${compiled.problem}`))
    return
  }
  if (usesOldSelf && oldSelf === undefined && !rule.optionalOldSelf) return
  const variables = { self, oldSelf: rule.optionalOldSelf ? optionalOf(oldSelf) : oldSelf }
  const outcome = yield* evaluated(run, condition, variables)
  if (outcome === true) return
  if (outcome !== false) run.found.push(invalid(field, type, failureText(run, outcome, rule)))
  else {
    const problem = yield* broken(run, compiled, variables, place, type)
    // As the object was before: its author did not break the rule.
    if (problem !== undefined && (usesOldSelf || !place.isSame())) run.found.push(problem)
  }
  if (run.found.length >= mostProblems) run.isOver = true
}

function optionalOf(value: Value | undefined): Value {
  return value === undefined ? none : new Optional(value)
}

type Variables = { readonly self: Value; readonly oldSelf: Value | undefined }
type Exceeded = 'call' | 'budget'

/** Ends the run where it costs too much. */
function* evaluated(
  run: Run,
  { program }: CompiledExpression,
  variables: Variables,
): Generator<undefined, CelOutcome | Exceeded> {
  const meter = new Meter(Math.min(mostCallCost, run.cost), Math.max(0, run.steps))
  const machine = new Machine(program, variables, meter)
  try {
    for (;;) {
      const outcome = machine.run(slice)
      // Rules have no variable whose functions ask others.
      if (outcome instanceof Deferred) machine.resume(noSuchOverload)
      else if (outcome !== undefined) return outcome
      yield
    }
  } catch (error) {
    if (!(error instanceof CostExceededError)) throw error
    run.isOver = true
    return meter.cost > run.cost || meter.work > run.steps ? 'budget' : 'call'
  } finally {
    run.cost -= meter.cost
    run.steps -= meter.work
  }
}

const outOfBudget = 'validation failed due to running out of cost budget, no further validation rules will be run'

function failureText(run: Run, outcome: CelOutcome | Exceeded, rule: ValidationRule): string {
  const name = ruleText(rule)
  if (run.isOver) {
    const exceeded = 'operation cancelled: actual cost limit exceeded'
    const ofCall = `'${exceeded}': no further validation rules will be run due to call cost exceeds limit for rule: ${name}`
    return outcome === 'budget' ? outOfBudget : ofCall
  }
  const message = outcome instanceof CelFailure ? outcome.message : 'no such overload'
  const signature = 'call arguments did not match a supported operator, function or macro signature for rule'
  return message.startsWith('no such overload')
    ? `'${message}': ${signature}: ${name}`
    : `${message} evaluating rule: ${name}`
}

function ruleText({ rule, message = '' }: ValidationRule): string {
  return (message === '' ? rule : message).trim()
}

/** The problem of a value that breaks the rule. */
function* broken(
  run: Run,
  { rule, message, fieldPath }: CompiledRule,
  variables: Variables,
  { at }: Place,
  type: string,
): Generator<undefined, Problem> {
  const field = fieldPath === '' ? at : at === '' ? fieldPath : `${at}.${fieldPath}`
  const named = field === '' ? '<nil>' : field
  const usual = rule.message ? rule.message.trim() : `failed rule: ${ruleText(rule)}`
  if (message === undefined) return reasoned(rule, named, type, usual)
  const outcome = yield* evaluated(run, message, variables)
  if (run.isOver) {
    const exceeded = `no further validation rules will be run due to call cost exceeds limit for messageExpression: ${JSON.stringify(rule.messageExpression)}`
    return invalid(
      named,
      type,
      outcome === 'budget'
        ? `messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run`
        : exceeded,
    )
  }
  const text = typeof outcome === 'string' ? outcome.trim() : ''
  const isUsable = text !== '' && text.length <= longestMessage && !text.includes('\n')
  return reasoned(rule, named, type, isUsable ? text : usual)
}

/** celconfig.MaxEvaluatedMessageExpressionSizeBytes. */
const longestMessage = 5 * 1024

function reasoned({ reason }: ValidationRule, field: string, type: string, message: string): Problem {
  switch (reason) {
    case 'FieldValueForbidden':
      return forbidden(field, message)
    case 'FieldValueRequired':
      return required(field, message)
    case 'FieldValueDuplicate':
      return duplicate(field, type)
    default:
      return invalid(field, type, message)
  }
}
