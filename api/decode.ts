/**
 * What came from outside → typed, or the list of what is wrong with it. One walk along the schema: a null field counts as
 * absent, a null in a list or a map as the zero of its type, as for Go's decoder; fields that are not in the schema are left out and named, quantities become canonical text, times get the
 * precision Kubernetes writes. Single values are judged by TypeBox's checker. The walk ends with the hundredth problem,
 * and no more than a hundred unknown fields are named: an input must not cost more to refuse than to accept.
 */

import { Check } from 'typebox/schema'
import { fieldWithin, invalid, mostProblems, notSupported, type Problem, required, typeInvalid } from './problem.ts'
import { formatQuantity, tryParseQuantity } from './quantity.ts'
import { type Described, type Keywords, keywordsOf, type TSchema } from './schema.ts'
import { isObject, type JsonObject } from './text/json.ts'

export type Decoded<T> =
  | { readonly ok: true; readonly value: T; readonly unknownFields: readonly string[] }
  | { readonly ok: false; readonly problems: readonly Problem[]; readonly unknownFields: readonly string[] }

/** What a reader found wrong with an input, and the fields that it left out. It names at most `mostProblems` of each. */
export type ReadNotes = { readonly problems: Problem[]; readonly unknownFields: string[] }

/** Reads what came from outside as an object of one kind. */
export interface ObjectReader {
  /** undefined after a problem. Never throws, whatever comes in. */
  read(body: unknown, notes: ReadNotes): unknown
}

/** Reads objects that a schema describes. */
export function schemaReader(schema: TSchema): ObjectReader {
  return { read: (body, notes) => readerOf(schema)(body, '', notes) }
}

/** Never throws, whatever comes in. */
export function decode<const S extends TSchema>(schema: S, input: unknown): Decoded<Described<S>> {
  return readWith(schemaReader(schema), input) as Decoded<Described<S>>
}

/** What a reader makes of an input. Never throws. */
export function readWith(reader: ObjectReader, input: unknown): Decoded<unknown> {
  const notes: ReadNotes = { problems: [], unknownFields: [] }
  const value = input === undefined || input === null ? undefined : reader.read(input, notes)
  if (value === undefined && notes.problems.length === 0) notes.problems.push(required(''))
  if (notes.problems.length > 0) return { ok: false, ...notes }
  return { ok: true, value, unknownFields: notes.unknownFields }
}

/** Returns the decoded value; undefined after a problem. The value is never null. */
type Reader = (value: unknown, field: string, notes: ReadNotes) => unknown

const readers = new WeakMap<object, Reader>()
const deepest = 32 // levels below a field of any shape

function readerOf(schema: TSchema): Reader {
  const known = readers.get(schema)
  if (known !== undefined) return known
  const reader = makeReader(schema)
  readers.set(schema, reader)
  return reader
}

function makeReader(schema: TSchema): Reader {
  const keywords = keywordsOf(schema)
  if (keywords.type === 'array' && keywords.items !== undefined) return listReader(keywords.items)
  if (keywords.patternProperties !== undefined) return mapReader(Object.values(keywords.patternProperties)[0])
  if (keywords.type === 'object') return objectReader(keywords)
  if (keywords['x-kubernetes-quantity']) return quantityReader
  if (keywords['x-bramble-decoded-later']) return (value) => value
  if (keywords.format === 'byte') return bytesReader
  if (keywords['x-bramble-time'] !== undefined) return timeReader(schema, keywords['x-bramble-time'])
  if (keywords.type === undefined && keywords.anyOf === undefined && keywords.const === undefined) return readAny
  return valueReader(schema)
}

function objectReader({ properties = {}, required: mandatory = [] }: Keywords): Reader {
  const fields = new Map(Object.entries(properties).map(([name, schema]) => [name, readerOf(schema)]))
  return (value, field, notes) => {
    if (!isObject(value)) return refuse(notes, typeInvalid(field, value, 'an object'))
    const { problems } = notes
    const result: { [name: string]: unknown } = {}
    for (const name of Object.keys(value)) {
      // Not by `isFull`: the agent interprets JavaScript, where a call for each field costs more than what it does.
      if (problems.length >= mostProblems) return undefined
      const reader = fields.get(name)
      const item = value[name]
      if (reader === undefined) noteUnknown(notes, fieldWithin(field, name))
      else if (item !== null && item !== undefined) result[name] = reader(item, fieldWithin(field, name), notes)
    }
    noteMissing(result, mandatory, field, notes)
    return result
  }
}

function noteMissing(found: object, mandatory: readonly string[], field: string, notes: ReadNotes): void {
  for (const name of mandatory) {
    if (!Object.hasOwn(found, name)) notes.problems.push(required(fieldWithin(field, name)))
  }
}

function mapReader(values: TSchema | undefined): Reader {
  const reader = values === undefined ? readAny : readerOf(values)
  const zero = values === undefined ? undefined : zeroOf(values)
  return (value, field, notes) => {
    if (!isObject(value)) return refuse(notes, typeInvalid(field, value, 'an object'))
    const result: { [name: string]: unknown } = {}
    for (const name of Object.keys(value)) {
      if (isFull(notes)) return undefined
      const item = value[name] ?? zero
      if (name === '__proto__') notes.problems.push(invalid(field, name, 'this key is not allowed'))
      else if (item !== undefined) result[name] = reader(item, `${field}[${name}]`, notes)
    }
    return result
  }
}

/** What Go's decoder makes of a null that is not a field; undefined: this type has no zero here. */
function zeroOf(schema: TSchema): unknown {
  const { type, anyOf = [], patternProperties, format, ...rest } = keywordsOf(schema)
  // apimachinery, Quantity.UnmarshalJSON: `requests: {memory: null}` asks for no memory.
  if (rest['x-kubernetes-quantity']) return '0'
  if (rest['x-bramble-time'] !== undefined || rest['x-bramble-decoded-later']) return undefined
  if (type === 'object' || patternProperties !== undefined) return {}
  if (type === 'string' || format === 'byte') return ''
  if (type === 'integer' || type === 'number') return 0
  if (type === 'boolean') return false
  const choices = anyOf.map((choice) => keywordsOf(choice))
  if (choices.some((choice) => choice.type === 'integer')) return 0
  return choices.length > 0 && choices.every((choice) => typeof choice.const === 'string') ? '' : undefined
}

function listReader(items: TSchema): Reader {
  const reader = readerOf(items)
  const zero = zeroOf(items)
  return (value, field, notes) => {
    if (!Array.isArray(value)) return refuse(notes, typeInvalid(field, value, 'a list'))
    // Full length from the start: a list that grows has room for 17 items, and most kept lists have one to three.
    const result = new Array<unknown>(value.length)
    for (let index = 0; index < value.length; index++) {
      if (isFull(notes)) return undefined
      const item: unknown = value[index] ?? zero
      const at = `${field}[${index}]`
      result[index] = item === null || item === undefined ? refuse(notes, required(at)) : reader(item, at, notes)
    }
    return result
  }
}

/** Canonical, so that equal amounts are equal texts: `0.5` becomes `500m`. */
const quantityReader: Reader = (value, field, notes) => {
  const text = typeof value === 'number' ? String(value) : typeof value === 'string' ? value.trim() : ''
  const quantity = tryParseQuantity(text)
  if (quantity !== undefined) return formatQuantity(quantity)
  return refuse(notes, typeInvalid(field, value, 'a quantity (like 100m or 64Mi)'))
}

/** Line breaks are let through by Kubernetes, and mean nothing. */
const bytesReader: Reader = (value, field, notes) => {
  if (typeof value !== 'string') return refuse(notes, typeInvalid(field, value, 'text'))
  const plain = value.replaceAll(/[\r\n]/g, '')
  if (plain.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(plain)) return plain
  return refuse(notes, { field, reason: 'FieldValueInvalid', message: 'Invalid value: must be base64' })
}

const canonicalTime = { seconds: /^[^.]{19}Z$/, micro: /^[^.]{19}\.\d{6}Z$/ } as const

/** Days that exist in every year, and their times: usual values cost one expression and not TypeBox's whole checker. */
const usualDay =
  '\\d{4}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1\\d|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)'
const usualTime = `^${usualDay}T(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d`
const usualTimes = { seconds: new RegExp(`${usualTime}Z$`), micro: new RegExp(`${usualTime}\\.\\d{6}Z$`) } as const

function timeReader(schema: TSchema, precision: 'seconds' | 'micro'): Reader {
  return (value, field, notes) => {
    if (typeof value === 'string' && usualTimes[precision].test(value)) return value
    if (!Check(schema, value) || typeof value !== 'string') {
      return refuse(notes, typeInvalid(field, value, 'a time (like 2026-01-02T03:04:05Z)'))
    }
    if (canonicalTime[precision].test(value)) return value
    const milliseconds = Date.parse(value)
    if (Number.isNaN(milliseconds))
      return refuse(notes, typeInvalid(field, value, 'a time (like 2026-01-02T03:04:05Z)'))
    const iso = new Date(milliseconds).toISOString()
    return precision === 'seconds' ? `${iso.slice(0, 19)}Z` : iso.replace('Z', '000Z')
  }
}

/** Any shape is fine here, but not any key, nor any depth. */
export function readAny(value: unknown, field: string, notes: ReadNotes): unknown {
  return copied(value, field, notes, 0)
}

function copied(value: unknown, field: string, notes: ReadNotes, depth: number): unknown {
  if (typeof value !== 'object' || value === null) return value
  // Only the store freezes, and what it holds was decoded before.
  if (Object.isFrozen(value)) return value
  if (isFull(notes)) return undefined
  if (depth > deepest) return refuse(notes, invalid(field, '...', `is nested deeper than ${deepest} levels`))
  if (Array.isArray(value)) return value.map((item, index) => copied(item, `${field}[${index}]`, notes, depth + 1))
  if (Object.hasOwn(value, '__proto__')) return refuse(notes, invalid(field, '__proto__', 'this key is not allowed'))
  const result: { [name: string]: unknown } = {}
  for (const name of Object.keys(value)) {
    result[name] = copied((value as JsonObject)[name], fieldWithin(field, name), notes, depth + 1)
  }
  return result
}

function valueReader(schema: TSchema): Reader {
  const { type, anyOf = [], const: only, ...constraints } = keywordsOf(schema)
  const words = (only === undefined ? anyOf : [schema]).map((choice) => keywordsOf(choice).const)
  const plain = Object.keys(constraints).length === 0 && (type === 'string' || type === 'boolean') ? type : undefined
  const isUsual = usualValues(schema)
  return (value, field, notes) => {
    if (plain !== undefined ? typeof value === plain : isUsual(value) || Check(schema, value)) return value
    return refuse(notes, valueProblem(schema, words, value, field))
  }
}

/** `words`: those that the schema allows; none if it does not list them. */
function valueProblem(schema: TSchema, words: readonly unknown[], value: unknown, field: string): Problem {
  const { type } = keywordsOf(schema)
  if (words.length > 0 && words.every((word) => typeof word === 'string')) {
    return typeof value === 'string' ? notSupported(field, value, words) : typeInvalid(field, value, 'text')
  }
  if (type === undefined || !isOfType(value, type)) {
    return typeInvalid(field, value, typeNames[type ?? ''] ?? 'an integer or text')
  }
  return invalid(field, value, limitsOf(schema))
}

/**
 * Accepts integers within their limits and the words of a choice without TypeBox's checker, which interprets the schema for each
 * value. False decides nothing: the checker does.
 */
function usualValues(schema: TSchema): (value: unknown) => boolean {
  const { type, anyOf, const: only, minimum, maximum, ...others } = keywordsOf(schema)
  if (Object.keys(others).length > 0) return () => false
  if (type === 'integer' && anyOf === undefined && only === undefined) {
    const [least, most] = [minimum ?? Number.NEGATIVE_INFINITY, maximum ?? Number.POSITIVE_INFINITY]
    return (value) => typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most
  }
  if (type !== undefined || anyOf === undefined || only !== undefined) return () => false
  const words = new Set<unknown>(anyOf.map((choice) => keywordsOf(choice).const))
  return (value) => typeof value === 'string' && words.has(value)
}

const typeNames: { readonly [type: string]: string } = {
  string: 'text',
  integer: 'an integer',
  number: 'a number',
  boolean: 'true or false',
}

function isOfType(value: unknown, type: string): boolean {
  return type === 'integer' ? Number.isInteger(value) : typeof value === type
}

/** The limits a configuration's schema may set, as a sentence. */
function limitsOf(schema: TSchema): string {
  const { minimum, maximum, pattern, minLength } = keywordsOf(schema)
  if (minimum !== undefined && maximum !== undefined) return `must be between ${minimum} and ${maximum}`
  if (minimum !== undefined) return `must be at least ${minimum}`
  if (maximum !== undefined) return `must be at most ${maximum}`
  if (pattern !== undefined) return `must match ${pattern}`
  if (minLength !== undefined) return 'must not be empty'
  return 'is not allowed here'
}

function isFull({ problems }: ReadNotes): boolean {
  return problems.length >= mostProblems
}

function noteUnknown({ unknownFields }: ReadNotes, field: string): void {
  if (unknownFields.length < mostProblems) unknownFields.push(field)
}

function refuse(notes: ReadNotes, problem: Problem): undefined {
  notes.problems.push(problem)
  return undefined
}
