/**
 * What is wrong with a value by its schema, in the words of kube-openapi (vendor/k8s.io/kube-openapi/pkg/validation/validate) as
 * kube-apiserver gives them (staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/validation/validation.go).
 */
import { compilePattern, type Pattern } from '../../../api/patterns/pattern.ts'
import { invalid, type Problem, quoted, required, typeInvalid } from '../../../api/problem.ts'
import type { JSONSchemaProps } from '../../../api/structural/json-schema-props.ts'
import { fieldOf, isObject, type JsonObject } from '../../../api/text/json.ts'
import { tooMany } from '../../../api/validation/endpoints-validation.ts'
import { tooLong } from '../../../api/validation/metadata-validation.ts'
import { equalJSON } from '../../store/equal-json.ts'
import { hasFormat } from './formats.ts'
import { propertyOf, schemaOfItems } from './pruning.ts'
import { addProblems, TooCostlyError, ValidationRun } from './validation-run.ts'

/** There is no earlier value that corresponds: as for a new object. */
export const uncorrelated = Symbol('no earlier value')
type Earlier = unknown | typeof uncorrelated

/**
 * Problems of the value, at most `mostProblems`. `at`: its path. `old`: what it replaces; the problems of parts that are as they were
 * are left out (CRDValidationRatcheting). `run`: bounds the work together with that of other values.
 */
export function valueProblems(
  schema: JSONSchemaProps,
  value: unknown,
  at: string,
  { run = new ValidationRun(), ...replaced }: { readonly old?: unknown; readonly run?: ValidationRun } = {},
): readonly Problem[] {
  const walk: Walk = { run, prefix: at }
  try {
    return problemsAt(walk, schema, value, '', 'old' in replaced ? replaced.old : uncorrelated)
  } catch (error) {
    if (error instanceof TooCostlyError) return [invalid(at, '', error.message)]
    throw error
  }
}

type Walk = { readonly run: ValidationRun; readonly prefix: string }

function problemsAt(
  walk: Walk,
  schema: JSONSchemaProps,
  value: unknown,
  path: string,
  old: Earlier,
): readonly Problem[] {
  walk.run.take(1)
  const found = [...typeProblems(walk, schema, value, path)]
  if (value !== null && found.length === 0) {
    addProblems(found, branchProblems(walk, schema, value, path, old))
    if (typeof value === 'string') addProblems(found, textProblems(walk, schema, value, path))
    if (typeof value === 'number') addProblems(found, numberProblems(walk, schema, value, path))
    if (Array.isArray(value)) addProblems(found, listProblems(walk, schema, value, path, old))
    if (isObject(value)) addProblems(found, objectProblems(walk, schema, value, path, old))
  }
  if (value !== null) addProblems(found, enumProblems(walk, schema, value, path))
  return found.length > 0 && old !== uncorrelated && equalJSON(value, old) ? [] : found
}

/** The path in the object, as a problem names it. */
function fieldAt({ prefix }: Walk, path: string): string {
  const plain = path.replace(/^\./, '')
  return prefix === '' || plain === '' ? `${prefix}${plain}` : `${prefix}.${plain}`
}

function wrong(walk: Walk, path: string, value: unknown, sentence: string): Problem {
  return invalid(fieldAt(walk, path), value, `${path} in body ${sentence}`)
}

/** Problems of a whole schema have no field in Kubernetes. */
function wrongWhole({ prefix }: Walk, sentence: string): Problem {
  return invalid(prefix === '' ? '<nil>' : prefix, '', sentence)
}

function typeProblems(walk: Walk, schema: JSONSchemaProps, value: unknown, path: string): readonly Problem[] {
  const { type = '', nullable = false } = schema
  const wanted = schema['x-kubernetes-int-or-string'] ? ['integer', 'string'] : type === '' ? [] : [type]
  const actual = typeOf(value)
  if (wanted.length === 0 || wanted.includes(actual) || (value === null && nullable)) return []
  if (actual === 'integer' && wanted.includes('number')) return []
  const sentence = `${path} in body must be of type ${wanted.join()}: "${actual}"`
  return [{ ...typeInvalid(fieldAt(walk, path), actual, ''), message: `Invalid value: "${actual}": ${sentence}` }]
}

function typeOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number'
  return typeof value
}

function branchProblems(
  walk: Walk,
  schema: JSONSchemaProps,
  value: unknown,
  path: string,
  old: Earlier,
): readonly Problem[] {
  const { anyOf = [], oneOf = [], allOf = [], not } = schema
  if (anyOf.length + oneOf.length + allOf.length === 0 && not === undefined) return []
  const found: Problem[] = []
  const resultsOf = (branches: readonly JSONSchemaProps[]) =>
    branches.map((branch) => problemsAt(walk, branch, value, path, old))
  const any = resultsOf(anyOf)
  if (any.length > 0 && !any.some(isClean)) {
    addProblems(found, [wrongWhole(walk, `${quoted(path)} must validate at least one schema (anyOf)`), ...fewest(any)])
  }
  const one = resultsOf(oneOf)
  const valid = one.filter(isClean).length
  if (one.length > 0 && valid !== 1) {
    const why = valid === 0 ? 'Found none valid' : `Found ${valid} valid alternatives`
    const sentence = `${quoted(path)} must validate one and only one schema (oneOf). ${why}`
    addProblems(found, [wrongWhole(walk, sentence), ...(valid === 0 ? fewest(one) : [])])
  }
  const all = resultsOf(allOf)
  if (!all.every(isClean)) {
    const none = all.some(isClean) ? '' : '. None validated'
    addProblems(found, [
      ...all.flat(),
      wrongWhole(walk, `${quoted(path)} must validate all the schemas (allOf)${none}`),
    ])
  }
  if (not !== undefined && isClean(problemsAt(walk, not, value, path, old))) {
    addProblems(found, [wrongWhole(walk, `${quoted(path)} must not validate the schema (not)`)])
  }
  return found
}

function isClean(problems: readonly Problem[]): boolean {
  return problems.length === 0
}

/** The branch that its author most likely meant. */
function fewest(results: readonly (readonly Problem[])[]): readonly Problem[] {
  return results.reduce((best, one) => (one.length < best.length ? one : best), results[0] ?? [])
}

function textProblems(walk: Walk, schema: JSONSchemaProps, text: string, path: string): readonly Problem[] {
  const { maxLength, minLength, pattern = '', format = '' } = schema
  const formatProblem = hasFormat(format, text) ? [] : [wrongFormat(walk, format, text, path)]
  const length = maxLength === undefined && minLength === undefined ? 0 : [...text].length
  if (maxLength !== undefined && length > maxLength) return [...formatProblem, tooLong(fieldAt(walk, path), maxLength)]
  if (minLength !== undefined && length < minLength) {
    return [...formatProblem, wrong(walk, path, text, `should be at least ${minLength} chars long`)]
  }
  if (pattern === '') return formatProblem
  const isMatch = patternOf(pattern).matches(text, walk.run.patternSteps)
  if (isMatch === undefined) throw new TooCostlyError()
  return isMatch ? formatProblem : [...formatProblem, wrong(walk, path, text, `should match '${pattern}'`)]
}

function wrongFormat(walk: Walk, format: string, text: string, path: string): Problem {
  const problem = wrong(walk, path, text, `must be of type ${format}: ${quoted(text)}`)
  return { ...problem, reason: 'FieldValueTypeInvalid' }
}

/** Compiled patterns by their text: schemas of many kinds have the same ones. */
const patterns = new Map<string, Pattern>()
/** Parts of all kept patterns, which take about 10 MB. */
const mostPatternParts = 50_000
let patternParts = 0

/** Throws PatternError, never for the pattern of a schema that was accepted. */
export function patternOf(source: string): Pattern {
  const known = patterns.get(source)
  if (known !== undefined) return known
  const pattern = compilePattern(source)
  if (patternParts + pattern.size > mostPatternParts) {
    patterns.clear()
    patternParts = 0
  }
  patterns.set(source, pattern)
  patternParts += pattern.size
  return pattern
}

function numberProblems(walk: Walk, schema: JSONSchemaProps, value: number, path: string): readonly Problem[] {
  const { multipleOf, maximum, exclusiveMaximum = false, minimum, exclusiveMinimum = false } = schema
  const isAbove = maximum !== undefined && (exclusiveMaximum ? value >= maximum : value > maximum)
  const isBelow = minimum !== undefined && (exclusiveMinimum ? value <= minimum : value < minimum)
  return [
    ...(multipleOf === undefined || Number.isInteger(value / multipleOf)
      ? []
      : [wrong(walk, path, value, `should be a multiple of ${multipleOf}`)]),
    ...(isAbove
      ? [wrong(walk, path, value, `should be less than ${exclusiveMaximum ? '' : 'or equal to '}${maximum}`)]
      : []),
    ...(isBelow
      ? [wrong(walk, path, value, `should be greater than ${exclusiveMinimum ? '' : 'or equal to '}${minimum}`)]
      : []),
  ]
}

function listProblems(
  walk: Walk,
  schema: JSONSchemaProps,
  items: readonly unknown[],
  path: string,
  old: Earlier,
): readonly Problem[] {
  const { maxItems, minItems } = schema
  const ofItems = schemaOfItems(schema)
  const found: Problem[] = []
  if (ofItems !== undefined) {
    const earlier = earlierItems(schema, old)
    for (const [index, item] of items.entries()) {
      addProblems(found, problemsAt(walk, ofItems, item, `${path}[${index}]`, earlier(item)))
    }
  }
  if (minItems !== undefined && items.length < minItems) {
    found.push(wrong(walk, path, items.length, `should have at least ${minItems} items`))
  }
  if (maxItems !== undefined) found.push(...tooMany(fieldAt(walk, path), items.length, maxItems))
  return found
}

/** The earlier item of an item: in a list that is a map by its keys, the one with the same keys. */
export function earlierItems(schema: JSONSchemaProps, old: Earlier): (item: unknown) => Earlier {
  const keys = schema['x-kubernetes-list-type'] === 'map' ? (schema['x-kubernetes-list-map-keys'] ?? []) : []
  if (keys.length === 0 || !Array.isArray(old)) return () => uncorrelated
  const keyOf = (item: unknown) => JSON.stringify(keys.map((key) => (isObject(item) ? fieldOf(item, key) : undefined)))
  const byKey = new Map(old.map((item) => [keyOf(item), item]))
  return (item) => {
    const key = keyOf(item)
    return byKey.has(key) ? byKey.get(key) : uncorrelated
  }
}

function objectProblems(
  walk: Walk,
  schema: JSONSchemaProps,
  object: JsonObject,
  path: string,
  old: Earlier,
): readonly Problem[] {
  const { maxProperties, minProperties, required: mandatory = [], additionalProperties } = schema
  const names = Object.keys(object)
  const found: Problem[] = []
  if (minProperties !== undefined && names.length < minProperties) {
    found.push(wrong(walk, path, names.length, `should have at least ${minProperties} properties`))
  }
  if (maxProperties !== undefined) found.push(...tooMany(fieldAt(walk, path), names.length, maxProperties))
  for (const name of names) {
    const own = propertyOf(schema, name)
    const at = path === '' ? name : `${path}.${name}`
    if (own === undefined && additionalProperties === false) {
      found.push(wrong(walk, path, '', `is a forbidden property`))
    }
    const used = own ?? (typeof additionalProperties === 'object' ? additionalProperties : undefined)
    if (used === undefined) continue
    addProblems(found, problemsAt(walk, used, object[name], at, earlierField(old, name, path)))
  }
  walk.run.take(mandatory.length / 8)
  const missing = mandatory.filter((name) => !Object.hasOwn(object, name))
  addProblems(
    found,
    missing.map((name) => required(fieldAt(walk, `${path}.${name}`))),
  )
  return found
}

/** The type of an object is that of the request: it has no earlier one. */
function earlierField(old: Earlier, name: string, path: string): Earlier {
  const isType = path === '' && (name === 'apiVersion' || name === 'kind')
  return !isType && isObject(old) && Object.hasOwn(old, name) ? old[name] : uncorrelated
}

type Choices = { readonly plain: ReadonlySet<unknown>; readonly others: readonly unknown[] }

const choices = new WeakMap<readonly unknown[], Choices>()

function choicesOf(words: readonly unknown[]): Choices {
  const known = choices.get(words)
  if (known !== undefined) return known
  const isPlain = (word: unknown) => typeof word !== 'object' || word === null
  const made = { plain: new Set(words.filter(isPlain)), others: words.filter((word) => !isPlain(word)) }
  choices.set(words, made)
  return made
}

function enumProblems(walk: Walk, { enum: words }: JSONSchemaProps, value: unknown, path: string): readonly Problem[] {
  if (words === undefined || words.length === 0) return []
  const { plain, others } = choicesOf(words)
  if (plain.has(value)) return []
  walk.run.take(others.length)
  if (typeof value === 'object' && others.some((word) => equalJSON(word, value))) return []
  const supported = words.slice(0, 64).map((word) => (typeof word === 'string' ? word : JSON.stringify(word)))
  const message = `Unsupported value: ${quoted(value)}: supported values: ${supported.map((word) => JSON.stringify(word)).join(', ')}`
  return [{ field: fieldAt(walk, path), reason: 'FieldValueNotSupported', message }]
}
