/** A structural schema as server-side apply reads schemas: which lists and maps are atomic, and what identifies items. */
import { ObjectMetaSchema } from '../../../api/meta.ts'
import { type Keywords, type TSchema, text } from '../../../api/schema.ts'
import type { JSONSchemaProps } from '../../../api/structural/json-schema-props.ts'
import { propertyOf, schemaOfItems } from './pruning.ts'

/** Values without a schema: objects by their fields, lists whole (typed/deduced.go). */
const deduced: TSchema = {}
Object.assign(deduced, { patternProperties: { '^.*$': deduced } })

const made = new WeakMap<JSONSchemaProps, TSchema>()

/** The schema of whole objects of a kind. */
export function applySchema(schema: JSONSchemaProps): TSchema {
  const fields = applySchemaOf(schema) as Keywords
  return withKeywords({
    ...fields,
    properties: { ...fields.properties, apiVersion: text, kind: text, metadata: ObjectMetaSchema },
  })
}

/** Each schema once, and only where an object has a value for it: the largest have thousands. */
function applySchemaOf(schema: JSONSchemaProps): TSchema {
  const known = made.get(schema)
  if (known !== undefined) return known
  const result: TSchema = {}
  made.set(schema, result)
  Object.defineProperties(result, Object.getOwnPropertyDescriptors(lazyKeywords(schema)))
  return result
}

function lazyKeywords(schema: JSONSchemaProps): Keywords {
  const { type, properties, additionalProperties } = schema
  const items = schemaOfItems(schema)
  if (type === 'array' || items !== undefined) {
    const listType = schema['x-kubernetes-list-type'] as Keywords['x-kubernetes-list-type']
    const keys = schema['x-kubernetes-list-map-keys']
    return {
      get items() {
        return items === undefined ? deduced : applySchemaOf(items)
      },
      'x-kubernetes-list-type': listType ?? 'atomic',
      ...(keys !== undefined && { 'x-kubernetes-list-map-keys': keys }),
      ...(keys !== undefined && items !== undefined && { 'x-bramble-key-defaults': keyDefaults(keys, items) }),
    }
  }
  const isAtomic = schema['x-kubernetes-map-type'] === 'atomic' ? ({ 'x-kubernetes-map-type': 'atomic' } as const) : {}
  const others = schema['x-kubernetes-preserve-unknown-fields'] || additionalProperties === true ? deduced : undefined
  if (schema['x-kubernetes-embedded-resource']) {
    const meta = { apiVersion: text, kind: text, metadata: ObjectMetaSchema }
    return withOthers({ ...isAtomic, properties: { ...propertiesOf(properties), ...meta } }, others)
  }
  if (properties !== undefined) {
    return withOthers(
      {
        ...isAtomic,
        get properties() {
          return propertiesOf(properties)
        },
      },
      others,
    )
  }
  if (typeof additionalProperties === 'object') {
    return {
      ...isAtomic,
      get patternProperties() {
        return { '^.*$': applySchemaOf(additionalProperties) }
      },
    }
  }
  if (others !== undefined) return { ...isAtomic, patternProperties: { '^.*$': others } }
  return type === 'object' ? { ...isAtomic, properties: {} } : {}
}

function withOthers(keywords: Keywords, others: TSchema | undefined): Keywords {
  if (others === undefined) return keywords
  return Object.defineProperties({ patternProperties: { '^.*$': others } }, Object.getOwnPropertyDescriptors(keywords))
}

function propertiesOf(properties: JSONSchemaProps['properties'] = {}): { readonly [name: string]: TSchema } {
  return Object.fromEntries(Object.entries(properties).map(([name, one]) => [name, applySchemaOf(one)]))
}

function keyDefaults(keys: readonly string[], items: JSONSchemaProps): { readonly [name: string]: string | undefined } {
  return Object.fromEntries(keys.map((key) => [key, propertyOf(items, key)?.default as string | undefined]))
}

function withKeywords(keywords: Keywords): TSchema {
  return keywords
}
