/** What Go leaves out of an object: fields that are empty and no pointers (`omitempty`). For Kubernetes both are one object. */
import { type Described, keywordsOf, type TSchema } from '../schema.ts'
import { isObject } from '../text/json.ts'

/**
 * The value, which was decoded by the schema, without `""`, 0, false, null, empty lists and empty maps. Kept are the fields that the
 * schema requires, those that are pointers in Go, where 0 or false is a choice, and objects: `emptyDir: {}` is one, too.
 */
export function withoutZeros<S extends TSchema>(schema: S, value: Described<S>): Described<S> {
  return valueWithoutZeros(schema, value) as Described<S>
}

/** The same of a value that may have only some of the fields. */
export function valueWithoutZeros(schema: TSchema | undefined, value: unknown): unknown {
  const { items, properties, required = [], 'x-bramble-field-numbers': numbers = {} } = schema ? keywordsOf(schema) : {}
  if (Array.isArray(value)) return value.map((item) => valueWithoutZeros(items, item))
  if (properties === undefined || !isObject(value)) return value
  const fields = Object.entries(value).flatMap(([name, inner]) => {
    const field = Object.hasOwn(properties, name) ? properties[name] : undefined
    const isGiven = inner !== undefined && inner !== null
    const isKept = required.includes(name) || (numbers[name]?.pointer === true && isGiven)
    return isKept || !isZero(field, inner) ? [[name, valueWithoutZeros(field, inner)]] : []
  })
  return Object.fromEntries(fields)
}

function isZero(schema: TSchema | undefined, value: unknown): boolean {
  if (value === undefined || value === null || value === '' || value === false) return true
  const { type, patternProperties } = schema ? keywordsOf(schema) : {}
  if (value === 0) return type === 'integer' // not of `intOrString`, which is an object in Go
  if (Array.isArray(value)) return value.length === 0
  return patternProperties !== undefined && isObject(value) && Object.keys(value).length === 0
}
