/**
 * What a schema is to the expressions of its rules: types, and the largest sizes for the estimate of costs
 * (staging/src/k8s.io/apiserver/pkg/cel/common/schemas.go).
 */
import type { JSONSchemaProps } from '../../../../api/structural/json-schema-props.ts'
import {
  boolType,
  bytesType,
  type CelType,
  doubleType,
  durationType,
  dynType,
  intType,
  listType,
  mapType,
  objectType,
  stringType,
  timestampType,
} from '../../../cel/checking/types.ts'
import { schemaOfItems } from '../pruning.ts'
import { escapedName, isReservedName } from './escaped-name.ts'

export type Declared = {
  readonly schema: JSONSchemaProps
  readonly type: CelType
  /** Most characters, items or entries. */
  readonly most: number
  /** Bytes of the shortest JSON. */
  readonly least: number
  /** By the names of the object, not escaped. */
  readonly fields?: ReadonlyMap<string, Declared>
  /** Type of the items of a list, or the values of a map. */
  readonly element?: Declared
}

/** Bytes of a body, as Kubernetes counts (celconfig.MaxRequestSizeBytes). */
export const largestRequest = 3 * 1024 * 1024

/**
 * undefined: expressions cannot name it. `isResource`: the schema of a whole object, which has a name whatever the schema specifies.
 * `name`: of the type, in messages. `metadata`: of whole objects, also of those that stand in others.
 */
export function declaredType(
  schema: JSONSchemaProps,
  isResource: boolean,
  name = 'selfType',
  metadata: JSONSchemaProps = namesOnly,
): Declared | undefined {
  if (schema['x-kubernetes-int-or-string']) {
    return { schema, type: dynType, least: 1, most: ofLength(schema.maxLength) ?? longestText }
  }
  switch (schema.type) {
    case 'array':
      return declaredList(schema, name, metadata)
    case 'object':
      return declaredObject(isResource ? withMeta(schema, metadata) : schema, name, metadata)
    case 'string':
      return declaredText(schema)
    case 'boolean':
      return { schema, type: boolType, least: 4, most: 0 }
    case 'number':
      return { schema, type: doubleType, least: 1, most: 0 }
    case 'integer':
      return { schema, type: intType, least: 1, most: 0 }
    default:
      return undefined
  }
}

const longestText = largestRequest - 2
const bytesPerCharacter = 4

function ofLength(length: number | undefined): number | undefined {
  return length === undefined ? undefined : Math.max(0, length) * bytesPerCharacter
}

function declaredList(schema: JSONSchemaProps, name: string, metadata: JSONSchemaProps): Declared | undefined {
  const items = schemaOfItems(schema)
  const element = items && declaredType(items, isEmbedded(items), `${name}.@idx`, metadata)
  if (element === undefined) return undefined
  const most = schema.maxItems ?? Math.floor((largestRequest - 2) / (element.least + 1))
  return { schema, type: listType(element.type), element, least: 2, most: Math.max(0, most) }
}

function declaredObject(schema: JSONSchemaProps, name: string, metadata: JSONSchemaProps): Declared | undefined {
  const { additionalProperties, properties = {}, required = [] } = schema
  if (typeof additionalProperties === 'object') {
    const element = declaredType(additionalProperties, isEmbedded(additionalProperties), `${name}.@elem`, metadata)
    if (element === undefined) return undefined
    const most = schema.maxProperties ?? Math.floor((largestRequest - 2) / (element.least + 6))
    return { schema, type: mapType(stringType, element.type), element, least: 2, most: Math.max(0, most) }
  }
  const fields = new Map<string, Declared>()
  const types = new Map<string, CelType>()
  const mandatory = new Set(required)
  let least = 2
  for (const [field, own] of Object.entries(properties)) {
    const declared = declaredType(own, isEmbedded(own), `${name}.${field}`, metadata)
    if (declared === undefined) continue
    fields.set(field, declared)
    const escaped = escapedName(field)
    if (escaped !== undefined) types.set(escaped, declared.type)
    if (isReservedName(field)) types.set(field, declared.type)
    if (mandatory.has(field) && own.default === undefined) least += field.length + declared.least + 4
  }
  return { schema, type: objectType(name, types), fields, least, most: 0 }
}

function isEmbedded(schema: JSONSchemaProps): boolean {
  return schema['x-kubernetes-embedded-resource'] === true
}

const text: JSONSchemaProps = { type: 'string' }
const namesOnly: JSONSchemaProps = { type: 'object', properties: { name: text, generateName: text } }

function withMeta(schema: JSONSchemaProps, metadata: JSONSchemaProps): JSONSchemaProps {
  return { ...schema, properties: { ...schema.properties, apiVersion: text, kind: text, metadata } }
}

/** Characters of JSON that a text of this format has. */
const durationLength = 32
const timeLengths: { readonly [format: string]: { readonly least: number; readonly most: number } } = {
  date: { least: 12, most: 12 },
  'date-time': { least: 21, most: 32 },
}

function declaredText(schema: JSONSchemaProps): Declared {
  const { format = '', maxLength, enum: words = [] } = schema
  if (format === 'byte') return { schema, type: bytesType, least: 2, most: Math.max(0, maxLength ?? longestText) }
  if (format === 'duration') return { schema, type: durationType, least: 3, most: durationLength }
  const time = Object.hasOwn(timeLengths, format) ? timeLengths[format] : undefined
  if (time !== undefined) return { schema, type: timestampType, ...time }
  const longestWord = Math.max(0, ...words.map((word) => (typeof word === 'string' ? word.length : 0)))
  const most = ofLength(maxLength) ?? (words.length > 0 ? longestWord : longestText)
  return { schema, type: stringType, least: 2, most }
}

/** The largest size of what is at the path, which begins with the name of a variable; undefined: the schema has nothing there. */
export function sizeAtPath(root: Declared, [, ...path]: readonly string[]): number | undefined {
  let declared: Declared | undefined = root
  for (const name of path) {
    // Keys are texts of any length.
    if (name === '@keys') return declared.element === undefined ? undefined : noLength
    declared = name === '@items' || name === '@values' ? declared.element : fieldNamed(declared, name)
    if (declared === undefined) return undefined
  }
  return declared.most
}

/** By the name that expressions give it. */
function fieldNamed({ fields }: Declared, name: string): Declared | undefined {
  const plain = fields?.get(name)
  if (plain !== undefined && escapedName(name) === name) return plain
  for (const [field, declared] of fields ?? []) if (escapedName(field) === name) return declared
  return plain
}

/** As Kubernetes has it for the keys of a map: nothing is known of their length, and they count as none. */
const noLength = 0
