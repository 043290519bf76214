/**
 * Objects that are as large as a list or map of them may become, made from the schemas: for each list and map of a kind one
 * object in which that one is long and all else is as little as the kind needs. What a validator does with it in more
 * than linear time shows in the time that it takes. What depends on several fields together is in `budget/handmade-objects.ts`.
 */
import { apiVersionOf, type Resource } from '../../api/resources.ts'
import { type Keywords, keywordsOf, schemaOfField, type TSchema } from '../../api/schema.ts'

export type Json = { readonly [name: string]: unknown }

export type LargeObject = {
  /** `spec.containers[].ports`. */
  readonly field: string
  /** The object with this many items; other `salt`, other texts in them. */
  readonly object: (items: number, salt: string) => Json
}

/** By field, as `spec.accessModes[]`: the words that it takes, beside those of the schema. */
export type FieldWords = ReadonlyMap<string, readonly string[]>

/** One for each list and map below the schema of the kind. Fields that take one of some words have each of them in turn. */
export function largeObjects(resource: Resource, words: FieldWords = new Map()): readonly LargeObject[] {
  return placesIn(resource.schema, []).map((path) => {
    const schema = path.reduce<TSchema | undefined>(stepInto, resource.schema) ?? resource.schema
    const object = (items: number, salt: string) => {
      const head = { apiVersion: apiVersionOf(resource), kind: resource.kind, metadata: { name: 'large' } }
      const filled = at(resource.schema, path, filledWith(schema, items, salt), '0')
      const whole = merged(merged(filled, head), least(resource.kind))
      return (words.size === 0 ? whole : withWords(whole, words)) as Json
    }
    return { field: path.join('.').replaceAll('.[]', '[]'), object }
  })
}

/** The same for the body of a message: without the head of an object. */
export function largeValues(schema: TSchema): readonly LargeObject[] {
  return placesIn(schema, []).map((path) => {
    const place = path.reduce<TSchema | undefined>(stepInto, schema) ?? schema
    return {
      field: path.join('.').replaceAll('.[]', '[]'),
      object: (items, salt) =>
        merged(requiredOf(schema, '0'), at(schema, path, filledWith(place, items, salt), '0')) as Json,
    }
  })
}

/** `[]` is the item of a list or the value of a map. */
type Path = readonly string[]

function placesIn(schema: TSchema, path: Path): readonly Path[] {
  const { properties = {}, items } = keywordsOf(schema)
  const values = valuesOf(schema)
  const own = items !== undefined || values !== undefined ? [path] : []
  const inner = items ?? values
  return [
    ...own,
    ...(inner === undefined ? [] : placesIn(inner, [...path, '[]'])),
    ...Object.entries(properties).flatMap(([name, field]) => placesIn(field, [...path, name])),
  ]
}

function stepInto(schema: TSchema | undefined, step: string): TSchema | undefined {
  if (schema === undefined) return undefined
  return step === '[]' ? (keywordsOf(schema).items ?? valuesOf(schema)) : schemaOfField(schema, step)
}

function valuesOf(schema: TSchema): TSchema | undefined {
  return Object.values(keywordsOf(schema).patternProperties ?? {})[0]
}

function filledWith(schema: TSchema, items: number, salt: string): unknown {
  const { items: item } = keywordsOf(schema)
  const numbers = Array.from({ length: items }, (_, number) => `${salt}${number}`)
  if (item !== undefined) return numbers.map((number) => sample(item, number))
  const values = valuesOf(schema)
  return Object.fromEntries(numbers.map((number) => [number, values === undefined ? 'v' : sample(values, number)]))
}

/** The object around the filled place, with what its levels require. */
function at(schema: TSchema | undefined, [step, ...further]: Path, filled: unknown, salt: string): unknown {
  if (step === undefined || schema === undefined) return filled
  const inner = at(stepInto(schema, step), further, filled, salt)
  if (step !== '[]') return merged(requiredOf(schema, salt), { [step]: inner })
  return keywordsOf(schema).items === undefined ? { [`k${salt}`]: inner } : [inner]
}

function requiredOf(schema: TSchema, salt: string): Json {
  const { properties = {}, required = [] } = keywordsOf(schema)
  return Object.fromEntries(
    required.flatMap((name) => (properties[name] === undefined ? [] : [[name, sample(properties[name], salt)]])),
  )
}

/** The least value of this schema, distinguished from others by its texts. */
function sample(schema: TSchema, salt: string): unknown {
  const keywords = keywordsOf(schema)
  const { type, anyOf = [], properties = {}, required = [], items } = keywords
  if (keywords.const !== undefined) return keywords.const
  if (keywords['x-kubernetes-quantity']) return '1'
  if (keywords['x-bramble-time'] === 'micro') return '2026-01-01T00:00:00.000000Z'
  if (keywords['x-bramble-time'] !== undefined) return '2026-01-01T00:00:00Z'
  if (keywords.format === 'byte') return 'QUJD'
  if (anyOf[0] !== undefined)
    return sample(anyOf[areWords(anyOf) ? numberIn(salt) % anyOf.length : 0] ?? anyOf[0], salt)
  if (items !== undefined) return []
  if (type === 'object') {
    const names = required.length > 0 ? required : Object.keys(properties).filter((name) => isPlain(properties[name]))
    const key = keyIn(properties)
    const chosen = new Set([...names.slice(0, required.length || 1), ...(key === undefined ? [] : [key])])
    return Object.fromEntries(
      [...chosen].flatMap((name) => (properties[name] === undefined ? [] : [[name, sample(properties[name], salt)]])),
    )
  }
  return scalar(keywords, salt)
}

function scalar({ type, minimum = 1 }: Keywords, salt: string): unknown {
  switch (type) {
    case 'integer':
    case 'number':
      return minimum + (numberIn(salt) % 60_000)
    case 'boolean':
      return true
    default:
      return salt
  }
}

function areWords(schemas: readonly TSchema[]): boolean {
  return schemas.every((schema) => typeof keywordsOf(schema).const === 'string')
}

function numberIn(salt: string): number {
  return Number(salt.replace(/\D/g, ''))
}

/** The texts of these fields replaced by their words, one after the other. */
function withWords(value: unknown, words: FieldWords): unknown {
  let count = 0
  const replaced = (inner: unknown, field: string): unknown => {
    if (typeof inner === 'string') {
      const list = words.get(field)
      return list === undefined ? inner : list[count++ % list.length]
    }
    if (Array.isArray(inner)) return inner.map((item) => replaced(item, `${field}[]`))
    if (!isJson(inner)) return inner
    return Object.fromEntries(
      Object.entries(inner).map(([name, part]) => {
        const named = field === '' ? name : `${field}.${name}`
        return [name, replaced(part, words.has(`${field}[]`) ? `${field}[]` : named)]
      }),
    )
  }
  return replaced(value, '')
}

/** The key that identifies items, if the list has one. */
function keyIn(properties: { readonly [name: string]: TSchema }): string | undefined {
  return ['name', 'type', 'key', 'topologyKey', 'ip'].find((name) => Object.hasOwn(properties, name))
}

function isPlain(schema: TSchema | undefined): boolean {
  const { type } = schema === undefined ? {} : keywordsOf(schema)
  return type !== 'object' && type !== 'array'
}

function least(kind: string): Json {
  const request = { signerName: 'example.com/signer', request: 'QUJD', usages: ['client auth'] }
  switch (kind) {
    case 'Pod':
      return { spec: { containers: [{ name: 'main', image: 'a' }] } }
    case 'CertificateSigningRequest':
      return { spec: request }
    case 'PriorityClass':
      return { value: 1 }
    case 'Event':
      return { involvedObject: { kind: 'Pod', namespace: 'default', name: 'a' } }
    default:
      return {}
  }
}

/** The second laid over the first; items of lists are laid over each other by their place. */
function merged(first: unknown, second: unknown): unknown {
  if (Array.isArray(first) && Array.isArray(second)) {
    return [
      ...first.map((item, index) => (index < second.length ? merged(item, second[index]) : item)),
      ...second.slice(first.length),
    ]
  }
  if (!isJson(first) || !isJson(second)) return second
  const result: { [name: string]: unknown } = { ...first }
  for (const [name, value] of Object.entries(second)) result[name] = merged(first[name], value)
  return result
}

function isJson(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
