/**
 * Which objects are meant: label selectors as kubectl writes them or as objects carry them, field selectors, and the
 * terms that choose nodes. A text that is not a selector gives a sentence for a 400.
 */
import type { LabelSelector } from './meta.ts'
import { labelKeyProblem, labelValueProblem } from './names.ts'
import type { Node } from './node.ts'
import type { NodeSelectorTerm } from './pod.ts'

export type Parsed<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly problem: string }

export type Labels = { readonly [key: string]: string }

export type Operator = 'In' | 'NotIn' | 'Exists' | 'DoesNotExist' | 'Gt' | 'Lt'
export type Requirement = { readonly key: string; readonly operator: Operator; readonly values: readonly string[] }

const operators: readonly string[] = ['In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt', 'Lt'] satisfies Operator[]

/** All must hold. An absent label is not in any set, and so satisfies NotIn. */
export function matchesLabels(requirements: readonly Requirement[], labels: Labels = {}): boolean {
  return requirements.every((requirement) => meets(requirement, own(labels, requirement.key)))
}

/** `a=b,c!=d,e in (x,y),f notin (z),g,!h,i>1`. An empty text asks for everything. */
export function parseLabelSelector(text: string): Parsed<readonly Requirement[]> {
  const tokens = text.match(/[^\s(),!=<>]+|==|!=|[(),!=<>]/g) ?? []
  const requirements: Requirement[] = []
  let at = 0
  const wrong = (what: string): Parsed<never> => ({
    ok: false,
    problem: `unable to parse label selector ${JSON.stringify(text)}: ${what}`,
  })
  while (at < tokens.length) {
    const taken = takeRequirement(tokens, at)
    if (typeof taken === 'string') return wrong(taken)
    const problem = requirementProblem(taken.requirement)
    if (problem !== undefined) return wrong(problem)
    requirements.push(taken.requirement)
    at = taken.next
    if (at === tokens.length) break
    if (tokens[at] !== ',') return wrong(`expected a comma, found ${shown(tokens[at])}`)
    at++
    if (at === tokens.length) return wrong('it ends with a comma')
  }
  return { ok: true, value: requirements }
}

/** The selector of a workload. Absent selects nothing; an empty one everything. */
export function requirementsOf(selector: LabelSelector | undefined): Parsed<readonly Requirement[]> | undefined {
  if (selector === undefined) return undefined
  const equal = Object.entries(selector.matchLabels ?? {}).map(
    ([key, value]): Requirement => ({ key, operator: 'In', values: [value] }),
  )
  const expressions: Requirement[] = []
  for (const { key, operator, values = [] } of selector.matchExpressions ?? []) {
    // Gt and Lt are for nodes (LabelSelectorAsSelector, apimachinery meta/v1/helpers.go).
    if (!isOperator(operator) || operator === 'Gt' || operator === 'Lt') {
      return { ok: false, problem: `${shown(operator)} is not a valid operator` }
    }
    expressions.push({ key, operator, values })
  }
  const all = [...equal, ...expressions]
  const problem = all.map(requirementProblem).find((found) => found !== undefined)
  return problem === undefined ? { ok: true, value: all } : { ok: false, problem }
}

/** A term holds when all it asks holds; one that asks nothing holds for no node. Wrong operators match nothing. */
export function matchesNodeSelectorTerm(term: NodeSelectorTerm, node: Node): boolean {
  const { matchExpressions = [], matchFields = [] } = term
  if (matchExpressions.length + matchFields.length === 0) return false
  const labels = node.metadata.labels ?? {}
  return (
    matchExpressions.every(({ key, operator, values = [] }) =>
      isOperator(operator) ? meets({ key, operator, values }, own(labels, key)) : false,
    ) &&
    matchFields.every(({ key, operator, values = [] }) =>
      isOperator(operator) && key === 'metadata.name' ? meets({ key, operator, values }, node.metadata.name) : false,
    )
  )
}

/** Terms are alternatives: one that holds is enough. */
export function matchesNodeSelectorTerms(terms: readonly NodeSelectorTerm[], node: Node): boolean {
  return terms.some((term) => matchesNodeSelectorTerm(term, node))
}

export type FieldRequirement = { readonly field: string; readonly equal: boolean; readonly value: string }

/** `status.phase!=Running,spec.nodeName=pi-01`; a comma, equals sign or backslash in a value comes after a backslash.
 * `selectableFields`: those of the kind, beside `metadata.name` and `metadata.namespace`. */
export function parseFieldSelector(
  selectableFields: readonly string[],
  text: string,
): Parsed<readonly FieldRequirement[]> {
  const fields = ['metadata.name', 'metadata.namespace', ...selectableFields]
  const requirements: FieldRequirement[] = []
  for (const part of text.match(/(?:\\.|[^,\\])+/g) ?? []) {
    // Spaces are not part of the pattern: it would need cubic time for many.
    const [, before = '', operator, value = ''] = /^([^=!\\]*)(==|!=|=)((?:\\.|[^=\\])*)$/.exec(part) ?? []
    const field = before.trim()
    if (field === '') return { ok: false, problem: `invalid field selector: ${shown(part)}` }
    if (!fields.includes(field)) return { ok: false, problem: `field label not supported: ${field}` }
    requirements.push({ field, equal: operator !== '!=', value: value.replace(/\\([\\,=])/g, '$1') })
  }
  return { ok: true, value: requirements }
}

/** All must hold. A field that is not there is empty; `false` for the ones that are true or false. */
export function matchesFields(requirements: readonly FieldRequirement[], object: object): boolean {
  return fieldMatcher(requirements)(object)
}

/** The same for many objects: each field is read once, however often a long selector names it. */
export function fieldMatcher(requirements: readonly FieldRequirement[]): (object: object) => boolean {
  const byField = new Map<string, { readonly equal: Set<string>; readonly other: Set<string> }>()
  for (const { field, equal, value } of requirements) {
    const wanted = byField.get(field) ?? { equal: new Set(), other: new Set() }
    byField.set(field, wanted)
    if (equal) wanted.equal.add(value)
    else wanted.other.add(value)
  }
  const fields = [...byField]
  return (object) =>
    fields.every(([field, { equal, other }]) => {
      const text = fieldText(object, field)
      return !other.has(text) && (equal.size === 0 || (equal.size === 1 && equal.has(text)))
    })
}

export type LabelMatcher = (labels: Labels | undefined) => boolean

/**
 * As `matchesLabels`, for many objects: what a long selector asks several times is asked once, long lists of values cost as much as short
 * ones, and what an absent label satisfies is asked for each label of the object only.
 */
export function labelMatcher(requirements: readonly Requirement[]): LabelMatcher {
  const different = [...new Map(requirements.map((one) => [JSON.stringify(one), one])).values()]
  const excluded = new Map<string, Set<string>>()
  const unwanted = new Set<string>()
  const included: { readonly key: string; readonly values: ReadonlySet<string> }[] = []
  const others: Requirement[] = []
  for (const requirement of different) {
    const { key, operator, values } = requirement
    if (operator === 'NotIn') {
      const all = excluded.get(key) ?? new Set()
      excluded.set(key, all)
      for (const value of values) all.add(value)
    } else if (operator === 'DoesNotExist') unwanted.add(key)
    else if (operator === 'In') included.push({ key, values: new Set(values) })
    else others.push(requirement)
  }
  return (labels = {}) => {
    for (const { key, values } of included) {
      const value = own(labels, key)
      if (value === undefined || !values.has(value)) return false
    }
    if (unwanted.size + excluded.size === 0) return matchesLabels(others, labels)
    for (const [key, value] of Object.entries(labels)) {
      if (unwanted.has(key) || excluded.get(key)?.has(value)) return false
    }
    return matchesLabels(others, labels)
  }
}

/**
 * `status.successful` is the old name of a count of Jobs (pkg/registry/batch/job/strategy.go). The source of an Event without one is the controller that reports it
 * (pkg/registry/core/event/strategy.go).
 */
function fieldText(object: object, field: string): string {
  if (field === 'source') return fieldText(object, 'source.component') || fieldText(object, 'reportingComponent')
  if (field === 'status.successful') return fieldText(object, 'status.succeeded') || '0'
  const value = field
    .split('.')
    .reduce<unknown>(
      (at, name) => (typeof at === 'object' && at !== null ? (at as { [name: string]: unknown })[name] : undefined),
      object,
    )
  if (value === undefined || value === null) return booleanFields.includes(field) ? 'false' : ''
  return String(value)
}

const booleanFields = ['spec.unschedulable', 'spec.hostNetwork']

type Taken = { readonly requirement: Requirement; readonly next: number }

/** One requirement from the token at `at` on, or what is wrong with it. */
function takeRequirement(tokens: readonly string[], at: number): Taken | string {
  const negated = tokens[at] === '!'
  const key = tokens[negated ? at + 1 : at]
  if (key === undefined || isMark(key)) return `expected a key, found ${shown(key)}`
  if (negated) return { requirement: { key, operator: 'DoesNotExist', values: [] }, next: at + 2 }
  const operator = tokens[at + 1]
  if (operator === undefined || operator === ',') {
    return { requirement: { key, operator: 'Exists', values: [] }, next: at + 1 }
  }
  if (operator === 'in' || operator === 'notin') return takeSet(tokens, at + 2, key, operator === 'in' ? 'In' : 'NotIn')
  const meant = comparisons[operator]
  if (meant === undefined) return `expected an operator, found ${shown(operator)}`
  const value = tokens[at + 2]
  if (value === undefined || value === ',') return { requirement: { key, operator: meant, values: [''] }, next: at + 2 }
  if (isMark(value)) return `expected a value, found ${shown(value)}`
  return { requirement: { key, operator: meant, values: [value] }, next: at + 3 }
}

const comparisons: { readonly [mark: string]: Operator } = {
  '=': 'In',
  '==': 'In',
  '!=': 'NotIn',
  '>': 'Gt',
  '<': 'Lt',
}

/** `(x,y)`: an empty place between commas is the empty value. */
function takeSet(tokens: readonly string[], open: number, key: string, operator: Operator): Taken | string {
  if (tokens[open] !== '(') return `expected '(' after in or notin, found ${shown(tokens[open])}`
  const values: string[] = []
  let value = ''
  for (let at = open + 1; at < tokens.length; at++) {
    const token = tokens[at] ?? ''
    if (token === ')') return { requirement: { key, operator, values: [...values, value] }, next: at + 1 }
    if (token === ',') {
      values.push(value)
      value = ''
    } else if (isMark(token) || value !== '') return `expected ',' or ')', found ${shown(token)}`
    else value = token
  }
  return "expected ')'"
}

function requirementProblem({ key, operator, values }: Requirement): string | undefined {
  const keyProblem = labelKeyProblem(key)
  if (keyProblem !== undefined) return `key ${shown(key)}: ${keyProblem}`
  const countProblem = valuesProblem(operator, values)
  if (countProblem !== undefined) return `key ${shown(key)}: ${operator} ${countProblem}`
  if (operator === 'Gt' || operator === 'Lt') return undefined
  for (const value of values) {
    const problem = labelValueProblem(value)
    if (problem !== undefined) return `value ${shown(value)}: ${problem}`
  }
  return undefined
}

/** What the operator needs beside its key. */
function valuesProblem(operator: Requirement['operator'], values: readonly string[]): string | undefined {
  switch (operator) {
    case 'Exists':
    case 'DoesNotExist':
      return values.length > 0 ? 'takes no values' : undefined
    case 'In':
    case 'NotIn':
      return values.length === 0 ? 'needs values' : undefined
    case 'Gt':
    case 'Lt':
      return values.length === 1 && /^[+-]?\d+$/.test(values[0] ?? '') ? undefined : 'needs one integer'
  }
}

function meets({ operator, values }: Requirement, value: string | undefined): boolean {
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value)
    case 'NotIn':
      return value === undefined || !values.includes(value)
    case 'Exists':
      return value !== undefined
    case 'DoesNotExist':
      return value === undefined
    case 'Gt':
      return isInteger(value) && isInteger(values[0]) && BigInt(value) > BigInt(values[0])
    case 'Lt':
      return isInteger(value) && isInteger(values[0]) && BigInt(value) < BigInt(values[0])
  }
}

function isInteger(text: string | undefined): text is string {
  return text !== undefined && /^-?\d{1,19}$/.test(text)
}

function isOperator(text: string): text is Operator {
  return operators.includes(text)
}

function isMark(token: string): boolean {
  return /^[(),!=<>]/.test(token)
}

function own(labels: Labels, key: string): string | undefined {
  return Object.hasOwn(labels, key) ? labels[key] : undefined
}

function shown(text: string | undefined): string {
  return text === undefined ? 'the end' : JSON.stringify(text)
}
