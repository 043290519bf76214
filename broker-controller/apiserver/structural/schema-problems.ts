/** What is wrong with the patterns and defaults of a schema: `rules/` checks its rules, and `api/structural/` its other keywords. */
import { PatternError } from '../../../api/patterns/pattern-syntax.ts'
import { forbidden, invalid, mostProblems, type Problem } from '../../../api/problem.ts'
import type { JSONSchemaProps } from '../../../api/structural/json-schema-props.ts'
import { isObject } from '../../../api/text/json.ts'
import { equalJSON } from '../../store/equal-json.ts'
import { embeddedProblems, repeatedItemProblems } from './object-problems.ts'
import { prunedBySchema, schemaOfItems } from './pruning.ts'
import { ValidationRun } from './validation-run.ts'
import { patternOf, valueProblems } from './value-problems.ts'

/** All patterns of a schema together, each counted once: as many as are kept compiled. Schemas of real projects have up to 504. */
const mostPatternParts = 50_000
const mostDefaults = 5_000

type Walk = {
  readonly found: Problem[]
  readonly run: ValidationRun
  readonly patterns: Set<string>
  patternParts: number
  defaults: number
}

/** At most `mostProblems`. The schema is structural, and its keywords are those of JSONSchemaProps. */
export function schemaProblems(at: string, schema: JSONSchemaProps): readonly Problem[] {
  const walk: Walk = { found: [], run: new ValidationRun(), patterns: new Set(), patternParts: 0, defaults: 0 }
  visit(walk, at, schema, 'specified')
  return walk.found.slice(0, mostProblems)
}

/** Defaults are checked where the value is specified: other places refuse them. */
type Place = 'specified' | 'branch'

function visit(walk: Walk, at: string, schema: JSONSchemaProps, place: Place): void {
  if (walk.found.length >= mostProblems) return
  const { pattern, additionalProperties, properties = {}, not } = schema
  if (pattern !== undefined && pattern !== '') checkPattern(walk, `${at}.pattern`, pattern)
  if (schema.default !== undefined && place === 'specified') checkDefault(walk, `${at}.default`, schema, schema.default)
  const items = schemaOfItems(schema)
  if (items !== undefined) visit(walk, `${at}.items`, items, place)
  if (typeof additionalProperties === 'object') {
    visit(walk, `${at}.additionalProperties`, additionalProperties, place)
  }
  for (const name of Object.keys(properties)) {
    const property = properties[name]
    if (property !== undefined) visit(walk, `${at}.properties[${name}]`, property, place)
  }
  if (not !== undefined) visit(walk, `${at}.not`, not, 'branch')
  for (const keyword of ['allOf', 'oneOf', 'anyOf'] as const) {
    for (const [index, one] of (schema[keyword] ?? []).entries())
      visit(walk, `${at}.${keyword}[${index}]`, one, 'branch')
  }
}

function checkPattern(walk: Walk, field: string, pattern: string): void {
  if (walk.patterns.has(pattern) || walk.patternParts > mostPatternParts) return
  try {
    walk.patternParts += patternOf(pattern).size
    walk.patterns.add(pattern)
    if (walk.patternParts > mostPatternParts)
      walk.found.push(forbidden(field, 'the patterns of the schema are too large'))
  } catch (error) {
    if (!(error instanceof PatternError)) throw error
    walk.found.push(invalid(field, pattern, `must be a valid regular expression, but isn't: ${error.message}`))
  }
}

/** schema/defaulting/validation.go. */
function checkDefault(walk: Walk, field: string, schema: JSONSchemaProps, value: unknown): void {
  walk.defaults += 1
  if (walk.defaults > mostDefaults) {
    if (walk.defaults === mostDefaults + 1)
      walk.found.push(forbidden(field, `the schema has more than ${mostDefaults} defaults`))
    return
  }
  if (!equalJSON(prunedBySchema(schema, value, ''), value)) {
    walk.found.push(invalid(field, value, 'must not have unknown fields'))
  }
  walk.found.push(...valueProblems(schema, value, field, { run: walk.run }))
  if (!isObject(value) && !Array.isArray(value)) return
  const wrapped = { type: 'object', properties: { value: schema } }
  const inside = [...embeddedProblems(wrapped, { value }), ...repeatedItemProblems(wrapped, { value })]
  walk.found.push(...inside.map((problem) => ({ ...problem, field: problem.field.replace(/^value/, field) })))
}
