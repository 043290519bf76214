/**
 * Sets the defaults of a structural schema, and leaves out null where it is not a value (staging/src/k8s.io/apiextensions-apiserver/
 * pkg/apiserver/schema/defaulting/algorithm.go and prunenulls.go).
 */
import type { JSONSchemaProps } from '../../../api/structural/json-schema-props.ts'
import { isObject, type JsonObject } from '../../../api/text/json.ts'
import { schemaOfItems, schemaOfName } from './pruning.ts'

/**
 * What the defaults of one object may add, in characters of its JSON: more than any object may have. Lists whose items have defaults in them
 * multiply, and ten lines of a schema could ask for more than the machine has memory.
 */
const mostDefaulted = 2 * 1024 * 1024
/** Cost of each default, beside its own length: a field or an item that is visited. */
const leastCost = 16

type Room = { left: number }

/** The object with its defaults; the same object where none is missing. undefined: with them it would be larger than any object may be. */
export function defaultedObject(schema: JSONSchemaProps, object: JsonObject): JsonObject | undefined {
  const room = { left: mostDefaulted }
  const complete = defaultedFields(schema, object, room)
  return room.left < 0 ? undefined : complete
}

function defaulted(schema: JSONSchemaProps | undefined, value: unknown, room: Room): unknown {
  if (schema === undefined) return value
  if (Array.isArray(value)) return defaultedItems(schema, value, room)
  return isObject(value) ? defaultedFields(schema, value, room) : value
}

function defaultedFields(schema: JSONSchemaProps, object: JsonObject, room: Room): JsonObject {
  const result: { [name: string]: unknown } = {}
  let isSame = true
  for (const name of Object.keys(object)) {
    const value = object[name]
    const own = schemaOfName(schema, name)
    const given = isMeaningless(value, own) ? defaultOf(own, room) : value
    const complete = given === undefined ? undefined : defaulted(own, given, room)
    if (complete !== undefined) result[name] = complete
    if (complete !== value) isSame = false
  }
  for (const [name, property] of propertiesWithDefaults(schema)) {
    if (room.left < 0) break
    if (Object.hasOwn(object, name)) continue
    result[name] = defaulted(property, defaultOf(property, room), room)
    isSame = false
  }
  return isSame ? object : result
}

type NamedProperty = readonly [name: string, property: JSONSchemaProps]

const withDefaults = new WeakMap<JSONSchemaProps, readonly NamedProperty[]>()

/** Found once: an object may have thousands of items, and the schema of each thousands of properties. */
function propertiesWithDefaults(schema: JSONSchemaProps): readonly NamedProperty[] {
  const known = withDefaults.get(schema)
  if (known !== undefined) return known
  const found = Object.entries(schema.properties ?? {}).filter(([, property]) => property.default !== undefined)
  withDefaults.set(schema, found)
  return found
}

/** A null item stays where there is no default for it: the others keep their places. */
function defaultedItems(schema: JSONSchemaProps, items: readonly unknown[], room: Room): readonly unknown[] {
  const ofItems = schemaOfItems(schema)
  if (ofItems === undefined) return items
  const complete = items.map((item) => {
    const given = isMeaningless(item, ofItems) ? (defaultOf(ofItems, room) ?? item) : item
    return defaulted(ofItems, given, room)
  })
  return complete.every((item, index) => item === items[index]) ? items : complete
}

/** The default, if there is room for it. */
function defaultOf(schema: JSONSchemaProps, room: Room): unknown {
  if (schema.default === undefined || room.left < 0) return undefined
  room.left -= leastCost + lengthOf(schema.default)
  return room.left < 0 ? undefined : schema.default
}

const lengths = new WeakMap<object, number>()

/** Length of the value's JSON. */
function lengthOf(value: unknown): number {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null) return 0
  const known = lengths.get(value)
  if (known !== undefined) return known
  const { length } = JSON.stringify(value)
  lengths.set(value, length)
  return length
}

/** null where the schema does not allow it counts as absent. */
function isMeaningless(value: unknown, schema: JSONSchemaProps | undefined): schema is JSONSchemaProps {
  return value === null && schema !== undefined && schema.nullable !== true
}
