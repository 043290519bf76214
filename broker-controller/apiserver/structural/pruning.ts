/**
 * Leaves out the fields that a structural schema does not specify (staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/schema/
 * pruning/algorithm.go).
 */
import { fieldWithin } from '../../../api/problem.ts'
import type { JSONSchemaProps } from '../../../api/structural/json-schema-props.ts'
import { isObject, type JsonObject } from '../../../api/text/json.ts'

/** The fields that every object has, whatever its schema specifies. */
export const metaFields: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'metadata'])

export type PruningNotes = {
  /** A field that is left out, by its path. */
  unknownField(path: string): void
}

const quiet: PruningNotes = { unknownField: () => undefined }

/** The object without unspecified fields. The same object where nothing is left out. */
export function prunedObject(schema: JSONSchemaProps, object: JsonObject, notes: PruningNotes = quiet): JsonObject {
  return prunedFields({ ...schema, 'x-kubernetes-embedded-resource': true }, object, '', notes)
}

/** The value without unspecified fields; the same value where nothing is left out. `schema` undefined: nothing is specified. */
export function prunedBySchema(
  schema: JSONSchemaProps | undefined,
  value: unknown,
  at: string,
  notes: PruningNotes = quiet,
): unknown {
  if (Array.isArray(value)) return prunedItems(schema, value, at, notes)
  if (!isObject(value)) return value
  if (schema !== undefined) return prunedFields(schema, value, at, notes)
  for (const name of Object.keys(value)) notes.unknownField(fieldWithin(at, name))
  return Object.keys(value).length === 0 ? value : {}
}

function prunedItems(schema: JSONSchemaProps | undefined, items: readonly unknown[], at: string, notes: PruningNotes) {
  const ofItems = schemaOfItems(schema)
  if (ofItems === undefined && preserves(schema)) return items
  const pruned = items.map((item, index) => prunedBySchema(ofItems, item, `${at}[${index}]`, notes))
  return pruned.every((item, index) => item === items[index]) ? items : pruned
}

function prunedFields(schema: JSONSchemaProps, object: JsonObject, at: string, notes: PruningNotes): JsonObject {
  const result: { [name: string]: unknown } = {}
  let isSame = true
  for (const name of Object.keys(object)) {
    const value = object[name]
    if (schema['x-kubernetes-embedded-resource'] && metaFields.has(name)) {
      result[name] = value
      continue
    }
    const specified = specifiedField(schema, name)
    if (specified === undefined) {
      if (preserves(schema)) result[name] = value
      else {
        notes.unknownField(fieldWithin(at, name))
        isSame = false
      }
      continue
    }
    const pruned = prunedBySchema(specified.schema, value, fieldWithin(at, name), notes)
    result[name] = pruned
    if (pruned !== value) isSame = false
  }
  return isSame ? object : result
}

/** What is specified of a field; undefined: nothing. `schema` undefined: any value without fields of its own. */
function specifiedField(
  schema: JSONSchemaProps,
  name: string,
): { readonly schema: JSONSchemaProps | undefined } | undefined {
  const property = propertyOf(schema, name)
  if (property !== undefined) return { schema: property }
  const { additionalProperties } = schema
  if (additionalProperties === undefined) return undefined
  return { schema: typeof additionalProperties === 'boolean' ? undefined : additionalProperties }
}

function preserves(schema: JSONSchemaProps | undefined): boolean {
  return schema?.['x-kubernetes-preserve-unknown-fields'] === true
}

/** The schema of a property of that name. */
export function propertyOf({ properties }: JSONSchemaProps, name: string): JSONSchemaProps | undefined {
  return properties !== undefined && Object.hasOwn(properties, name) ? properties[name] : undefined
}

/** The schema of what stands under a name: of a property, or of any other value of a map. */
export function schemaOfName(schema: JSONSchemaProps, name: string): JSONSchemaProps | undefined {
  const { additionalProperties } = schema
  return propertyOf(schema, name) ?? (typeof additionalProperties === 'object' ? additionalProperties : undefined)
}

/** The schema of the items of a list. A structural schema has one for all of them. */
export function schemaOfItems(schema: JSONSchemaProps | undefined): JSONSchemaProps | undefined {
  const items = schema?.items
  return items === undefined || Array.isArray(items) ? undefined : (items as JSONSchemaProps)
}
