/**
 * The few words our schemas are written with. Each gives a TypeBox type, so one declaration is the TypeScript type,
 * the validator and the source of the API description. Imported by name: a bundle then carries only what is used.
 */
import {
  _Array_,
  _Object_,
  Boolean as BooleanType,
  Integer,
  Literal,
  Number as NumberType,
  Optional,
  Record as RecordType,
  type Static,
  String as StringType,
  type TLiteral,
  type TObject,
  type TProperties,
  type TSchema,
  type TUnion,
  Union,
  Unknown,
} from 'typebox/type'

export type { Static, TSchema } from 'typebox/type'

/** What a schema describes, all of it read-only: objects are replaced, never changed in place. */
export type Described<S extends TSchema> = DeepReadonly<Static<S>>

export type DeepReadonly<T> = unknown extends T
  ? T
  : T extends (infer Item)[]
    ? readonly DeepReadonly<Item>[]
    : T extends object
      ? { readonly [Key in keyof T]: DeepReadonly<T[Key]> }
      : T

export const text = StringType()
export const integer = Integer()
export const double = NumberType()
export const bool = BooleanType()
export const anything = Unknown()
/** Neither checked nor copied: the caller decodes it. */
export const decodedLater = Unknown({ 'x-bramble-decoded-later': true })
/** The same, with the schema of its message in protobuf, which is asked for when one is read. */
export const decodedLaterFrom = (message: () => TSchema) =>
  Unknown({ 'x-bramble-decoded-later': true, 'x-bramble-message': message })
/** Any JSON, which protobuf carries as its text (apimachinery, runtime.RawExtension). */
export const rawJson = Unknown({ 'x-bramble-raw-json': true })
/** RFC 3339, whole seconds: `2026-01-02T03:04:05Z`. */
export const time = StringType({ format: 'date-time', 'x-bramble-time': 'seconds' })
/** RFC 3339 with exactly six fraction digits, as Leases and Events carry it: typed clients refuse anything else. */
export const microTime = StringType({ format: 'date-time', 'x-bramble-time': 'micro' })
/** `100m`, `1536Mi`: clients may write a bare number, it is kept as text. */
export const quantity = Union([StringType(), NumberType()], { 'x-kubernetes-quantity': true })
/** Decoded by the caller, which also reports its problems. */
export const numberOrText = Union([StringType(), NumberType()])
export const intOrString = Union([Integer(), StringType()], { 'x-kubernetes-int-or-string': true })
/** Bytes, as base64 text. */
export const bytes = StringType({ format: 'byte' })

export const optional = Optional

/** An object with these fields. `typeName`: what the API description calls it; without one it has a name by its place. */
export function object<const P extends TProperties>(properties: P): TObject<P>
export function object<const P extends TProperties>(typeName: string, properties: P): TObject<P>
export function object<const P extends TProperties>(...given: [P] | [string, P]): TObject<P> {
  const [typeName, properties] = given.length === 1 ? [undefined, given[0]] : given
  const plain: { [name: string]: TSchema } = {}
  const numbers: { [name: string]: FieldNumber } = {}
  for (const [name, schema] of Object.entries<TSchema | Numbered>(properties)) {
    const isNumbered = numberOf in schema
    plain[name] = isNumbered ? schema.schema : schema
    if (isNumbered) numbers[name] = schema[numberOf]
  }
  return _Object_(plain as P, {
    ...(Object.keys(numbers).length > 0 && { 'x-bramble-field-numbers': numbers }),
    ...(typeName !== undefined && { 'x-bramble-type-name': typeName }),
  })
}

/** Where a field stands in the protobuf message of its object: its number in the generated.proto of its group. */
export type FieldNumber = {
  /** More than one where protobuf has a message around fields that JSON has inline (`json:",inline"`), as VolumeSource. */
  readonly path: readonly number[]
  /** A pointer in Go, which is sent only when it is set: its zero is kept. */
  readonly pointer: boolean
}

const numberOf = Symbol('field number')
type Numbered = { readonly [numberOf]: FieldNumber; readonly schema: TSchema }

/** A field of an object with its number. Without a number it cannot be sent as protobuf. */
export function field<S extends TSchema>(number: number | readonly number[], schema: S): S {
  return numbered({ path: [number].flat(), pointer: false }, schema)
}

/** A field that is a pointer in Go. */
export function pointer<S extends TSchema>(number: number | readonly number[], schema: S): S {
  return numbered({ path: [number].flat(), pointer: true }, schema)
}

/** Fields that stand in a message of that number, which JSON has inline. */
export function inside<P extends TProperties>(number: number, properties: P): P {
  const moved = Object.entries<TSchema | Numbered>(properties).map(([name, schema]) => {
    if (!(numberOf in schema)) return [name, schema]
    const { path, pointer } = schema[numberOf]
    return [name, { ...schema, [numberOf]: { path: [number, ...path], pointer } }]
  })
  return Object.fromEntries(moved)
}

/** The wrapper is taken off by `object`, so a schema without numbers can be shared. */
function numbered<S extends TSchema>(number: FieldNumber, schema: S): S {
  const wrapper: Numbered = { [numberOf]: number, schema }
  return wrapper as unknown as S
}

/** A list without identity: patches replace it whole. */
export function list<const S extends TSchema>(items: S) {
  return _Array_(items, { 'x-kubernetes-list-type': 'atomic' })
}

/**
 * A list whose items are identified by `key`: strategic merge patches merge it item by item. `more.keys`: all that
 * identify an item for server-side apply, where that is more than the key, with the value of a key that is not given
 * (undefined: it must be). `more.oneSource`: an item has one of many fields, and a patch that sets another one removes the
 * first (patchStrategy "retainKeys"). `more.patch`: a patch replaces the list whole. `more.apply`: server-side apply does.
 */
export function listBy<const S extends TSchema>(
  key: string,
  items: S,
  more: {
    readonly keys?: { readonly [name: string]: string | undefined }
    readonly oneSource?: true
    readonly patch?: 'whole'
    readonly apply?: 'whole'
  } = {},
) {
  const patch = {
    'x-kubernetes-patch-merge-key': key,
    'x-kubernetes-patch-strategy': more.oneSource ? 'merge,retainKeys' : 'merge',
  }
  const apply = {
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': more.keys === undefined ? [key] : Object.keys(more.keys),
  }
  return _Array_(items, {
    ...(more.patch !== 'whole' && patch),
    ...(more.apply !== 'whole' ? apply : { 'x-kubernetes-list-type': 'atomic' }),
    ...(more.keys !== undefined && { 'x-bramble-key-defaults': more.keys }),
  })
}

/** A list of plain values that patches merge as a set (finalizers, podCIDRs). `more.patch`: a patch replaces it whole. */
export function setOf<const S extends TSchema>(items: S, more: { readonly patch?: 'whole' } = {}) {
  const patch = more.patch === 'whole' ? {} : { 'x-kubernetes-patch-strategy': 'merge' }
  return _Array_(items, { ...patch, 'x-kubernetes-list-type': 'set' })
}

/** Marks a new schema of an object or a map: for server-side apply it is one field, which an applier sets whole. */
export function atomic<S extends TSchema>(schema: S): S {
  return Object.assign(schema, { 'x-kubernetes-map-type': 'atomic' })
}

/** Marks a new schema of an object of which only some fields go together: a patch drops those that it does not name. */
export function retainingKeys<S extends TSchema>(schema: S): S {
  return Object.assign(schema, { 'x-kubernetes-patch-strategy': 'retainKeys' })
}

/** Marks a new schema of an object that is a message of protobuf only: JSON has the last of its fields that is set in place of it. */
export function lastField<S extends TSchema>(schema: S): S {
  return Object.assign(schema, { 'x-bramble-last-field': true })
}

export function mapOf<const S extends TSchema>(values: S) {
  return RecordType(StringType(), values)
}

/** One of these words. */
export function oneOf<const Words extends readonly string[]>(...words: Words) {
  const literals: TSchema[] = words.map((word) => Literal(word))
  return Union(literals) as unknown as TUnion<{ -readonly [I in keyof Words]: TLiteral<Words[I]> }>
}

/** The keywords of a schema, as the functions above write them. */
export type Keywords = {
  readonly type?: string
  readonly format?: string
  readonly const?: unknown
  readonly anyOf?: readonly TSchema[]
  readonly items?: TSchema
  readonly properties?: { readonly [name: string]: TSchema }
  readonly required?: readonly string[]
  readonly patternProperties?: { readonly [pattern: string]: TSchema }
  readonly minimum?: number
  readonly maximum?: number
  readonly pattern?: string
  readonly minLength?: number
  readonly 'x-kubernetes-quantity'?: boolean
  readonly 'x-kubernetes-int-or-string'?: boolean
  readonly 'x-kubernetes-patch-merge-key'?: string
  readonly 'x-kubernetes-patch-strategy'?: string
  readonly 'x-kubernetes-list-type'?: 'atomic' | 'map' | 'set'
  readonly 'x-kubernetes-list-map-keys'?: readonly string[]
  readonly 'x-kubernetes-map-type'?: 'atomic'
  readonly 'x-bramble-raw-json'?: boolean
  readonly 'x-bramble-decoded-later'?: boolean
  readonly 'x-bramble-message'?: () => TSchema
  readonly 'x-bramble-last-field'?: boolean
  readonly 'x-bramble-key-defaults'?: { readonly [name: string]: string | undefined }
  readonly 'x-bramble-time'?: 'seconds' | 'micro'
  /** `core.v1.Container`: of an object that other objects refer to. */
  readonly 'x-bramble-type-name'?: string
  readonly 'x-bramble-field-numbers'?: { readonly [name: string]: FieldNumber }
}

export function keywordsOf(schema: TSchema): Keywords {
  return schema
}

/** The schema of what stands under `name` in an object or a map; undefined when the schema has no such field. */
export function schemaOfField(schema: TSchema | undefined, name: string): TSchema | undefined {
  const { properties, patternProperties } = schema === undefined ? {} : keywordsOf(schema)
  if (patternProperties !== undefined) return Object.values(patternProperties)[0]
  return properties !== undefined && Object.hasOwn(properties, name) ? properties[name] : undefined
}
