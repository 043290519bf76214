/**
 * The 2.0 document of a stranger with known fields only, each of its type: kubectl before 1.27 refuses the whole document of the fleet for one
 * field that it cannot read (kube-openapi, pkg/util/proto/document.go).
 */
import { isObject, type JsonObject } from '../../../api/text/json.ts'

/** undefined: it is not a value of this shape. */
type Shape = (value: unknown) => unknown

const text: Shape = (value) => (typeof value === 'string' ? value : undefined)
const truth: Shape = (value) => (typeof value === 'boolean' ? value : undefined)
const number: Shape = (value) => (typeof value === 'number' ? value : undefined)
const count: Shape = (value) => (Number.isSafeInteger(value) ? value : undefined)
const any: Shape = (value) => value

const listOf =
  (inner: Shape): Shape =>
  (value) =>
    Array.isArray(value) ? value.map(inner).filter((one) => one !== undefined) : undefined

const mapOf =
  (inner: Shape): Shape =>
  (value) => {
    if (!isObject(value)) return undefined
    const all = Object.entries(value).map(([name, one]) => [name, inner(one)] as const)
    return Object.fromEntries(all.filter(([, one]) => one !== undefined))
  }

/** Fields `x-…` may have any value. */
const objectOf =
  (fields: () => { readonly [name: string]: Shape }): Shape =>
  (value) => {
    if (!isObject(value)) return undefined
    const known = fields()
    const all = Object.entries(value).map(([name, one]) => {
      const shape = name.startsWith('x-') ? any : Object.hasOwn(known, name) ? known[name] : undefined
      return [name, shape?.(one)] as const
    })
    return Object.fromEntries(all.filter(([, one]) => one !== undefined))
  }

const types = ['array', 'boolean', 'integer', 'number', 'object', 'string']

/** Clients read one type, not several. */
const typeName: Shape = (value) => {
  const [only, ...more] = Array.isArray(value) ? value : [value]
  return more.length === 0 && types.includes(only) ? only : undefined
}

const typeFields: { readonly [name: string]: Shape } = {
  ...{ type: typeName, format: text, title: text, description: text, default: any, pattern: text },
  ...{ multipleOf: number, maximum: number, minimum: number, exclusiveMaximum: truth, exclusiveMinimum: truth },
  ...{ maxLength: count, minLength: count, maxItems: count, minItems: count, uniqueItems: truth },
  ...{ maxProperties: count, minProperties: count, enum: listOf(any), required: listOf(text) },
}
const schemaFields: { readonly [name: string]: Shape } = {
  ...typeFields,
  $ref: text,
  properties: mapOf((value) => schema(value)),
  items: (value) => schema(value),
  additionalProperties: (value) => (typeof value === 'boolean' ? value : schema(value)),
  allOf: listOf((value) => schema(value)),
}
const plainSchema = objectOf(() => schemaFields)
const schema: Shape = (value) => {
  const read = plainSchema(value)
  if (!isObject(read) || read['type'] !== 'array' || isObject(read['items'])) return read
  // Clients refuse a list without the type of its items.
  const { type: _, ...others } = read
  return others
}

const places = ['body', 'query', 'path', 'header', 'formData']
const plainParameter = objectOf(() => ({
  ...typeFields,
  $ref: text,
  name: text,
  in: (value) => (places.includes(String(value)) ? value : undefined),
  required: truth,
  schema,
}))
const parameter: Shape = (value) => {
  const read = plainParameter(value)
  if (!isObject(read)) return undefined
  return read['$ref'] !== undefined || (read['name'] !== undefined && read['in'] !== undefined) ? read : undefined
}
const response = objectOf(() => ({ description: text, schema }))
const operation = objectOf(() => ({
  ...{ tags: listOf(text), summary: text, description: text, operationId: text, deprecated: truth },
  ...{ consumes: listOf(text), produces: listOf(text), schemes: listOf(text) },
  parameters: listOf(parameter),
  responses: mapOf(response),
}))
const pathItem = objectOf(() => ({
  ...{ get: operation, put: operation, post: operation, delete: operation, options: operation, head: operation },
  ...{ patch: operation, parameters: listOf(parameter) },
}))

const asObject =
  (shape: Shape) =>
  (value: unknown): JsonObject | undefined => {
    const read = shape(value)
    return isObject(read) ? read : undefined
  }

/** undefined: it is not one. */
export const swaggerShapes = {
  paths: asObject(pathItem),
  definitions: asObject(schema),
  parameters: asObject(parameter),
} as const
