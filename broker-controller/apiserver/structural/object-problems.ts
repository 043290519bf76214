/** What the extensions of structural schemas ask of an object beside its values: distinct items, and embedded objects that are objects. */
import { type ReadNotes, schemaReader } from '../../../api/decode.ts'
import { type ObjectMeta, ObjectMetaSchema } from '../../../api/meta.ts'
import { dns1035LabelProblem, pathSegmentProblem } from '../../../api/names.ts'
import { duplicate, invalid, mostProblems, type Problem, required } from '../../../api/problem.ts'
import type { JSONSchemaProps } from '../../../api/structural/json-schema-props.ts'
import { fieldOf, isObject, type JsonObject } from '../../../api/text/json.ts'
import { metadataProblems } from '../../../api/validation/metadata-validation.ts'
import { schemaOfItems, schemaOfName } from './pruning.ts'

/** Items that are more than once in lists that are sets or maps (schema/listtype/validation.go). */
export function repeatedItemProblems(schema: JSONSchemaProps, object: JsonObject): readonly Problem[] {
  const found: Problem[] = []
  eachValue(schema, object, '', (own, value, at) => {
    if (!Array.isArray(value) || found.length >= mostProblems) return
    const listType = own['x-kubernetes-list-type']
    if (listType !== 'set' && listType !== 'map') return
    const keys = own['x-kubernetes-list-map-keys'] ?? []
    const identity = listType === 'set' ? itemText : (item: unknown) => keyText(keys, schemaOfItems(own), item)
    for (const index of repeatedOnce(value.map(identity))) {
      const item: unknown = value[index]
      found.push(duplicate(`${at}[${index}]`, listType === 'set' ? item : keysOf(keys, item)))
    }
  })
  return found.slice(0, mostProblems)
}

/** The places of the first item of each that equals an earlier one. */
function repeatedOnce(identities: readonly string[]): readonly number[] {
  const counts = new Map<string, number>()
  return [...identities.keys()].filter((index) => {
    const identity = identities[index] ?? ''
    const count = (counts.get(identity) ?? 0) + 1
    counts.set(identity, count)
    return count === 2
  })
}

/** JSON with the names of objects in order. */
function itemText(item: unknown): string {
  return JSON.stringify(item, (_, value: unknown) =>
    isObject(value) ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) : value,
  )
}

function keyText(keys: readonly string[], items: JSONSchemaProps | undefined, item: unknown): string {
  if (!isObject(item)) return itemText(item)
  const given = keys.map((key) => fieldOf(item, key) ?? (items && schemaOfName(items, key)?.default) ?? null)
  return JSON.stringify(given)
}

function keysOf(keys: readonly string[], item: unknown): unknown {
  return isObject(item)
    ? Object.fromEntries(keys.flatMap((key) => (Object.hasOwn(item, key) ? [[key, item[key]]] : [])))
    : item
}

/** Problems of objects that are fields of the object (schema/objectmeta/validation.go). */
export function embeddedProblems(schema: JSONSchemaProps, object: JsonObject): readonly Problem[] {
  const found: Problem[] = []
  eachValue(schema, object, '', (own, value, at) => {
    if (found.length < mostProblems && own['x-kubernetes-embedded-resource'] && isObject(value) && at !== '') {
      found.push(...embeddedObjectProblems(value, at))
    }
  })
  return found.slice(0, mostProblems)
}

function embeddedObjectProblems(object: JsonObject, at: string): readonly Problem[] {
  const { apiVersion, kind, metadata } = object
  const text = (field: string, value: unknown) => {
    if (value === undefined) return [required(`${at}.${field}`, 'must not be empty')]
    if (typeof value !== 'string') return [invalid(`${at}.${field}`, value, 'must be a string')]
    return value === '' ? [invalid(`${at}.${field}`, value, 'must not be empty')] : []
  }
  const isVersion = typeof apiVersion !== 'string' || apiVersion.split('/').length <= 2
  const kindProblem = typeof kind === 'string' && kind !== '' ? dns1035LabelProblem(kind.toLowerCase()) : undefined
  return [
    ...text('apiVersion', apiVersion),
    ...(isVersion ? [] : [invalid(`${at}.apiVersion`, apiVersion, `unexpected GroupVersion string: ${apiVersion}`)]),
    ...text('kind', kind),
    ...(kindProblem === undefined
      ? []
      : [invalid(`${at}.kind`, kind, `may have mixed case, but should otherwise match: ${kindProblem}`)]),
    ...(metadata === undefined ? [] : embeddedMetadataProblems(metadata, at)),
  ]
}

const metadataReader = schemaReader(ObjectMetaSchema)

function embeddedMetadataProblems(metadata: unknown, at: string): readonly Problem[] {
  const notes: ReadNotes = { problems: [], unknownFields: [] }
  const read = metadataReader.read(metadata, notes) as ObjectMeta | undefined
  const problems =
    read === undefined || notes.problems.length > 0
      ? notes.problems.map((problem) => ({ ...problem, field: `metadata.${problem.field}` }))
      : metadataProblems(
          { namespaced: Boolean(read.namespace), nameProblem: pathSegmentProblem },
          { ...read, name: read.name || 'fakename' },
        )
  return problems.map((problem) => ({ ...problem, field: `${at}.${problem.field}` }))
}

/** The metadata of embedded objects as ObjectMeta has them, with what is wrong or unknown noted. The same object where nothing changes. */
export function withEmbeddedMetadata(schema: JSONSchemaProps, value: unknown, at: string, notes: ReadNotes): unknown {
  if (Array.isArray(value)) {
    const items = schemaOfItems(schema)
    if (items === undefined) return value
    const read = value.map((item, index) => withEmbeddedMetadata(items, item, `${at}[${index}]`, notes))
    return read.every((item, index) => item === value[index]) ? value : read
  }
  if (!isObject(value)) return value
  const result: { [name: string]: unknown } = {}
  let isSame = true
  for (const name of Object.keys(value)) {
    const item = value[name]
    const path = at === '' ? name : `${at}.${name}`
    const own = schemaOfName(schema, name)
    const isMetadata = at !== '' && schema['x-kubernetes-embedded-resource'] && name === 'metadata'
    const read = isMetadata ? readMetadata(item, path, notes) : withMetadataBelow(own, item, path, notes)
    result[name] = read
    if (read !== item) isSame = false
  }
  return isSame ? value : result
}

function withMetadataBelow(schema: JSONSchemaProps | undefined, value: unknown, at: string, notes: ReadNotes): unknown {
  return schema === undefined ? value : withEmbeddedMetadata(schema, value, at, notes)
}

/** ObjectMeta at this path. */
export function readMetadata(value: unknown, at: string, notes: ReadNotes): unknown {
  const own: ReadNotes = { problems: [], unknownFields: [] }
  const read = metadataReader.read(value, own)
  const within = (field: string) => (field === '' ? at : `${at}.${field}`)
  for (const problem of own.problems) {
    if (notes.problems.length < mostProblems) notes.problems.push({ ...problem, field: within(problem.field) })
  }
  for (const field of own.unknownFields) {
    if (notes.unknownFields.length < mostProblems) notes.unknownFields.push(within(field))
  }
  return read
}

type Visit = (schema: JSONSchemaProps, value: unknown, at: string) => void

/** Each value that the schema specifies, outside of alternatives. */
function eachValue(schema: JSONSchemaProps, value: unknown, at: string, visit: Visit): void {
  visit(schema, value, at)
  if (Array.isArray(value)) {
    const items = schemaOfItems(schema)
    if (items === undefined) return
    for (const [index, item] of value.entries()) eachValue(items, item, `${at}[${index}]`, visit)
    return
  }
  if (!isObject(value)) return
  for (const name of Object.keys(value)) {
    const own = schemaOfName(schema, name)
    if (own !== undefined) eachValue(own, value[name], at === '' ? name : `${at}.${name}`, visit)
  }
}
