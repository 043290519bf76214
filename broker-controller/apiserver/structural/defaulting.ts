/**
 * Sets the defaults of a structural schema, and leaves out null where it is not a value (staging/src/k8s.io/apiextensions-apiserver/
 * pkg/apiserver/schema/defaulting/algorithm.go and prunenulls.go).
 */
import type { JSONSchemaProps } from '../../../api/structural/json-schema-props.ts'
import { isObject, type JsonObject } from '../../../api/text/json.ts'
import { schemaOfItems, schemaOfName } from './pruning.ts'

/** The value with its defaults; the same value where none is missing. */
export function defaulted(schema: JSONSchemaProps | undefined, value: unknown): unknown {
  if (schema === undefined) return value
  if (Array.isArray(value)) return defaultedItems(schema, value)
  return isObject(value) ? defaultedObject(schema, value) : value
}

/** The object with its defaults; the same object where none is missing. */
export function defaultedObject(schema: JSONSchemaProps, object: JsonObject): JsonObject {
  const result: { [name: string]: unknown } = {}
  let isSame = true
  for (const name of Object.keys(object)) {
    const value = object[name]
    const own = schemaOfName(schema, name)
    const given = isMeaningless(value, own) ? own.default : value
    const complete = given === undefined ? undefined : defaulted(own, given)
    if (complete !== undefined) result[name] = complete
    if (complete !== value) isSame = false
  }
  const { properties = {} } = schema
  for (const name of Object.keys(properties)) {
    const property = properties[name]
    if (property?.default === undefined || Object.hasOwn(object, name)) continue
    result[name] = defaulted(property, property.default)
    isSame = false
  }
  return isSame ? object : result
}

/** A null item stays where there is no default for it: the others keep their places. */
function defaultedItems(schema: JSONSchemaProps, items: readonly unknown[]): readonly unknown[] {
  const ofItems = schemaOfItems(schema)
  if (ofItems === undefined) return items
  const complete = items.map((item) =>
    defaulted(ofItems, isMeaningless(item, ofItems) && ofItems.default !== undefined ? ofItems.default : item),
  )
  return complete.every((item, index) => item === items[index]) ? items : complete
}

/** null where the schema does not allow it counts as absent. */
function isMeaningless(value: unknown, schema: JSONSchemaProps | undefined): schema is JSONSchemaProps {
  return value === null && schema !== undefined && schema.nullable !== true
}
