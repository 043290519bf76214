/** apiextensions.k8s.io/v1 JSONSchemaProps: the schema of a custom resource as its author writes it, and its reader. */
import { type ReadNotes, readAny } from '../decode.ts'
import { fieldWithin, invalid, mostProblems, type Problem, required, typeInvalid } from '../problem.ts'
import { isObject, type JsonObject } from '../text/json.ts'

export type ValidationRule = {
  readonly rule: string
  readonly message?: string
  readonly messageExpression?: string
  readonly reason?: string
  readonly fieldPath?: string
  readonly optionalOldSelf?: boolean
}
type NamedSchemas = { readonly [name: string]: JSONSchemaProps }

export type JSONSchemaProps = {
  readonly id?: string
  readonly $schema?: string
  readonly $ref?: string
  readonly description?: string
  readonly type?: string
  readonly format?: string
  readonly title?: string
  readonly default?: unknown
  readonly maximum?: number
  readonly exclusiveMaximum?: boolean
  readonly minimum?: number
  readonly exclusiveMinimum?: boolean
  readonly maxLength?: number
  readonly minLength?: number
  readonly pattern?: string
  readonly maxItems?: number
  readonly minItems?: number
  readonly uniqueItems?: boolean
  readonly multipleOf?: number
  readonly enum?: readonly unknown[]
  readonly maxProperties?: number
  readonly minProperties?: number
  readonly required?: readonly string[]
  readonly items?: JSONSchemaProps | readonly JSONSchemaProps[]
  readonly allOf?: readonly JSONSchemaProps[]
  readonly oneOf?: readonly JSONSchemaProps[]
  readonly anyOf?: readonly JSONSchemaProps[]
  readonly not?: JSONSchemaProps
  readonly properties?: NamedSchemas
  readonly additionalProperties?: JSONSchemaProps | boolean
  readonly patternProperties?: NamedSchemas
  readonly dependencies?: { readonly [name: string]: JSONSchemaProps | readonly string[] }
  readonly additionalItems?: JSONSchemaProps | boolean
  readonly definitions?: NamedSchemas
  readonly externalDocs?: { readonly description?: string; readonly url?: string }
  readonly example?: unknown
  readonly nullable?: boolean
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean
  readonly 'x-kubernetes-embedded-resource'?: boolean
  readonly 'x-kubernetes-int-or-string'?: boolean
  readonly 'x-kubernetes-list-map-keys'?: readonly string[]
  readonly 'x-kubernetes-list-type'?: string
  readonly 'x-kubernetes-map-type'?: string
  readonly 'x-kubernetes-validations'?: readonly ValidationRule[]
}

/** Levels of schemas in a schema. Those of real projects have up to 38 levels of JSON. */
const deepest = 100

type Reader = (value: unknown, field: string, notes: ReadNotes, depth: number) => unknown

/** undefined after a problem. Never throws, whatever comes in. */
export function readJSONSchema(value: unknown, field: string, notes: ReadNotes): JSONSchemaProps | undefined {
  return schema(value, field, notes, 0) as JSONSchemaProps | undefined
}

const text: Reader = (value, field, notes) =>
  typeof value === 'string' ? value : refuse(notes, typeInvalid(field, value, 'text'))
const bool: Reader = (value, field, notes) =>
  typeof value === 'boolean' ? value : refuse(notes, typeInvalid(field, value, 'true or false'))
const number: Reader = (value, field, notes) =>
  typeof value === 'number' ? value : refuse(notes, typeInvalid(field, value, 'a number'))
const integer: Reader = (value, field, notes) =>
  Number.isInteger(value) ? value : refuse(notes, typeInvalid(field, value, 'an integer'))
const anything: Reader = (value, field, notes) => readAny(value, field, notes)

const schema: Reader = (value, field, notes, depth) => {
  if (depth > deepest) return refuse(notes, invalid(field, '...', `is nested deeper than ${deepest} levels`))
  return fieldsOf(keywords, value, field, notes, depth + 1)
}
const schemaOrBool: Reader = (value, ...rest) => (typeof value === 'boolean' ? value : schema(value, ...rest))
const schemaOrList: Reader = (value, ...rest) =>
  Array.isArray(value) ? listOf(schema)(value, ...rest) : schema(value, ...rest)
const schemaOrNames: Reader = (value, ...rest) =>
  Array.isArray(value) ? listOf(text)(value, ...rest) : schema(value, ...rest)
const rule: Reader = (value, field, notes, depth) => {
  const read = fieldsOf(ruleFields, value, field, notes, depth)
  return read === undefined || Object.hasOwn(read, 'rule') ? read : refuse(notes, required(fieldWithin(field, 'rule')))
}

const ruleFields: ReadonlyMap<string, Reader> = new Map(
  Object.entries({
    ...{ rule: text, message: text, messageExpression: text, reason: text, fieldPath: text },
    optionalOldSelf: bool,
  }),
)
const docsFields: ReadonlyMap<string, Reader> = new Map(Object.entries({ description: text, url: text }))

/** How each keyword is read: every one of JSONSchemaProps has a line. */
const readers: { readonly [Keyword in keyof Required<JSONSchemaProps>]: Reader } = {
  id: text,
  $schema: text,
  $ref: text,
  description: text,
  type: text,
  format: text,
  title: text,
  default: anything,
  maximum: number,
  exclusiveMaximum: bool,
  minimum: number,
  exclusiveMinimum: bool,
  maxLength: integer,
  minLength: integer,
  pattern: text,
  maxItems: integer,
  minItems: integer,
  uniqueItems: bool,
  multipleOf: number,
  enum: listOf(anything, { nulls: true }),
  maxProperties: integer,
  minProperties: integer,
  required: listOf(text),
  items: schemaOrList,
  allOf: listOf(schema),
  oneOf: listOf(schema),
  anyOf: listOf(schema),
  not: schema,
  properties: mapOf(schema),
  additionalProperties: schemaOrBool,
  patternProperties: mapOf(schema),
  dependencies: mapOf(schemaOrNames),
  additionalItems: schemaOrBool,
  definitions: mapOf(schema),
  externalDocs: (value, field, notes, depth) => fieldsOf(docsFields, value, field, notes, depth),
  example: anything,
  nullable: bool,
  'x-kubernetes-preserve-unknown-fields': bool,
  'x-kubernetes-embedded-resource': bool,
  'x-kubernetes-int-or-string': bool,
  'x-kubernetes-list-map-keys': listOf(text),
  'x-kubernetes-list-type': text,
  'x-kubernetes-map-type': text,
  'x-kubernetes-validations': listOf(rule),
}
const keywords: ReadonlyMap<string, Reader> = new Map(Object.entries(readers))

/** The known fields of an object. Nulls count as absent. */
function fieldsOf(
  known: ReadonlyMap<string, Reader>,
  value: unknown,
  field: string,
  notes: ReadNotes,
  depth: number,
): JsonObject | undefined {
  if (!isObject(value)) return refuse(notes, typeInvalid(field, value, 'an object'))
  const result: { [name: string]: unknown } = {}
  for (const name of Object.keys(value)) {
    if (notes.problems.length >= mostProblems) return undefined
    const [item, reader, at] = [value[name], known.get(name), fieldWithin(field, name)]
    if (reader === undefined) {
      if (notes.unknownFields.length < mostProblems) notes.unknownFields.push(at)
    } else if (item !== null && item !== undefined) result[name] = reader(item, at, notes, depth)
  }
  return result
}

function listOf(items: Reader, { nulls = false } = {}): Reader {
  return (value, field, notes, depth) => {
    if (!Array.isArray(value)) return refuse(notes, typeInvalid(field, value, 'a list'))
    return value.map((item: unknown, index) => {
      if (notes.problems.length >= mostProblems) return undefined
      if (item !== null && item !== undefined) return items(item, `${field}[${index}]`, notes, depth)
      return nulls ? null : refuse(notes, required(`${field}[${index}]`))
    })
  }
}

function mapOf(values: Reader): Reader {
  return (value, field, notes, depth) => {
    if (!isObject(value)) return refuse(notes, typeInvalid(field, value, 'an object'))
    const result: { [name: string]: unknown } = {}
    for (const name of Object.keys(value)) {
      if (notes.problems.length >= mostProblems) return undefined
      const at = `${field}[${name}]`
      if (name === '__proto__') refuse(notes, invalid(field, name, 'this key is not allowed'))
      else result[name] = value[name] === null ? {} : values(value[name], at, notes, depth)
    }
    return result
  }
}

function refuse(notes: ReadNotes, problem: Problem): undefined {
  notes.problems.push(problem)
  return undefined
}
