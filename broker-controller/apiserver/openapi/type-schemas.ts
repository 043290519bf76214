/**
 * Schemas of kinds → the types of an OpenAPI document. An object becomes a type of its own, which others refer to;
 * lists keep what patches identify their items by. Of 2.0 and 3.0 the same, save for references and choices.
 */
import { type Keywords, keywordsOf, type TSchema } from '../../../api/schema.ts'
import { descriptionOf } from './descriptions.ts'
import { type SchemaShape, schemaShape } from './schema-shape.ts'
import { capitalised, nestedTypeName, wellKnownTypes } from './type-names.ts'

export type OpenApiVersion = 'v2' | 'v3'
export type JsonSchema = { readonly [keyword: string]: unknown }

/** The types of one document, by name. */
export type TypeRegistry = {
  /** The type of that name, and all it refers to. */
  readonly add: (name: string, schema: TSchema, more?: JsonSchema) => void
  readonly addPlain: (name: string, schema: JsonSchema) => void
  readonly reference: (name: string) => JsonSchema
  readonly all: () => { readonly [name: string]: JsonSchema }
}

export function typeRegistry(version: OpenApiVersion): TypeRegistry {
  const types = new Map<string, JsonSchema>()
  const root = version === 'v2' ? '#/definitions/' : '#/components/schemas/'
  const reference = (name: string): JsonSchema => ({ $ref: `${root}${name}` })
  const plainTypes = plainTypesOf(version)
  const plain = (key: keyof typeof plainTypes) => {
    types.set(wellKnownTypes[key], plainTypes[key])
    return reference(wellKnownTypes[key])
  }

  function objectType(place: string, keywords: Keywords): JsonSchema {
    const short = keywords['x-bramble-type-name']
    const name = short === undefined ? place : nestedTypeName(short)
    const referred = reference(keep(types, name, fieldsOf(name, keywords)))
    // How a patch treats the field is a matter of the field, not of the type: kubectl reads it beside the reference.
    const strategy = keywords['x-kubernetes-patch-strategy']
    if (strategy === undefined) return referred
    const beside = version === 'v3' ? { allOf: [referred] } : referred
    return { ...beside, 'x-kubernetes-patch-strategy': strategy }
  }

  function fieldsOf(name: string, keywords: Keywords, more: JsonSchema = {}): JsonSchema {
    const { properties = {}, required = [] } = keywords
    const isKind = 'kind' in properties && 'metadata' in properties
    const described = Object.entries(properties).map(([field, schema]) => {
      const type = typeAt(`${name}${capitalised(field)}`, schema)
      return [field, withDescription(type, descriptionOf(name, field, isKind), version)]
    })
    const description = descriptionOf(name)
    const mandatory = required.filter((field) => field !== 'apiVersion' && field !== 'kind' && field !== 'metadata')
    return {
      ...(description !== undefined && { description }),
      type: 'object',
      ...(described.length > 0 && { properties: Object.fromEntries(described) }),
      ...(mandatory.length > 0 && { required: mandatory }),
      ...mapKeywords(keywords),
      ...more,
    }
  }

  const typeOf: { readonly [shape in SchemaShape]: (place: string, keywords: Keywords) => JsonSchema } = {
    list: (place, keywords) => ({ type: 'array', ...itemsAt(place, keywords), ...listKeywords(keywords) }),
    map: (place, keywords) => ({ type: 'object', ...valuesAt(place, keywords), ...mapKeywords(keywords) }),
    object: objectType,
    quantity: () => plain('quantity'),
    intOrString: () => plain('intOrString'),
    time: () => plain('time'),
    microTime: () => plain('microTime'),
    choice: (_, keywords) => choiceOf(keywords),
    integer: () => ({ type: 'integer', format: 'int64' }),
    number: () => ({ type: 'number', format: 'double' }),
    plain: (_, { type, format }) => ({ type, ...(format !== undefined && { format }) }),
    any: () => ({ type: 'object', 'x-kubernetes-preserve-unknown-fields': true }),
  }

  function typeAt(place: string, schema: TSchema): JsonSchema {
    const keywords = keywordsOf(schema)
    return typeOf[schemaShape(keywords)](place, keywords)
  }

  function itemsAt(place: string, { items }: Keywords): JsonSchema {
    return items === undefined ? {} : { items: typeAt(place, items) }
  }

  function valuesAt(place: string, { patternProperties = {} }: Keywords): JsonSchema {
    const [values] = Object.values(patternProperties)
    return values === undefined ? {} : { additionalProperties: typeAt(place, values) }
  }

  return {
    add: (name, schema, more) => void keep(types, name, fieldsOf(name, keywordsOf(schema), more)),
    addPlain: (name, schema) => void types.set(name, schema),
    reference,
    all: () => Object.fromEntries([...types].sort(([a], [b]) => (a < b ? -1 : 1))),
  }
}

/** Its name: another one where that one is another type's already. */
function keep(types: Map<string, JsonSchema>, name: string, type: JsonSchema): string {
  const present = types.get(name)
  if (present === undefined) types.set(name, type)
  else if (JSON.stringify(present) !== JSON.stringify(type)) return keep(types, `${name}_`, type)
  return name
}

function listKeywords(keywords: Keywords): JsonSchema {
  const names = [
    'x-kubernetes-list-type',
    'x-kubernetes-list-map-keys',
    'x-kubernetes-patch-merge-key',
    'x-kubernetes-patch-strategy',
  ] as const
  return Object.fromEntries(names.flatMap((name) => (keywords[name] === undefined ? [] : [[name, keywords[name]]])))
}

/** `atomic`: server-side apply takes the object or the map for one field. */
function mapKeywords({ 'x-kubernetes-map-type': mapType }: Keywords): JsonSchema {
  return mapType === undefined ? {} : { 'x-kubernetes-map-type': mapType }
}

/** Words to choose from; a single word is one that the path implies. Other choices are of a string or a number. */
function choiceOf({ anyOf = [], const: only }: Keywords): JsonSchema {
  const words = [...anyOf.map((one) => keywordsOf(one).const), only].filter((word) => typeof word === 'string')
  return { type: 'string', ...(words.length > 1 && { enum: words }) }
}

/** In 3.0 a reference has nothing beside it. */
function withDescription(type: JsonSchema, description: string | undefined, version: OpenApiVersion): JsonSchema {
  if (description === undefined) return type
  return '$ref' in type && version === 'v3' ? { description, allOf: [type] } : { description, ...type }
}

function plainTypesOf(version: OpenApiVersion) {
  const choice = (...types: readonly string[]): JsonSchema =>
    version === 'v2' ? { type: 'string' } : { oneOf: types.map((type) => ({ type })) }
  const time: JsonSchema = { type: 'string', format: 'date-time' }
  return {
    time,
    microTime: time,
    quantity: choice('string', 'number'),
    intOrString: { ...choice('integer', 'string'), format: 'int-or-string' },
  }
}
