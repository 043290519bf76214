/**
 * Values of CEL expressions (https://github.com/google/cel-spec/blob/master/doc/langdef.md#values). Integers are numbers of JavaScript
 * where these are exact, and bigints elsewhere; whatever JavaScript has no type for is an object of a class.
 */

export class Uint {
  readonly value: bigint

  constructor(value: bigint) {
    this.value = value
  }
}

/** A floating point number: a bare number is an integer. */
export class Double {
  readonly value: number

  constructor(value: number) {
    this.value = value
  }
}

export class Bytes {
  readonly value: Uint8Array

  constructor(value: Uint8Array) {
    this.value = value
  }
}

/** Nanoseconds since 1970. */
export class Timestamp {
  readonly nanos: bigint
  /** Offset from UTC of the time zone in its text, in minutes. */
  readonly offset: number

  constructor(nanos: bigint, offset = 0) {
    this.nanos = nanos
    this.offset = offset
  }
}

export class Duration {
  readonly nanos: bigint

  constructor(nanos: bigint) {
    this.nanos = nanos
  }
}

/** The type of a value, as `type(1)` gives it. */
export class TypeValue {
  readonly name: string

  constructor(name: string) {
    this.name = name
  }
}

/** A value, or that there is none. */
export class Optional {
  readonly value: Value | undefined

  constructor(value: Value | undefined) {
    this.value = value
  }
}

export const none = new Optional(undefined)

export abstract class ListValue {
  abstract readonly size: number
  /** The index is within the list. */
  abstract at(index: number): Value
  /** What identifies an item of a list that is a set, or a map by keys: such lists are equal in any order. undefined: as other lists. */
  get identityOf(): ((item: Value) => string) | undefined {
    return undefined
  }
}

export class ArrayList extends ListValue {
  readonly #items: readonly Value[]

  constructor(items: readonly Value[]) {
    super()
    this.#items = items
  }

  get size(): number {
    return this.#items.length
  }

  at(index: number): Value {
    return this.#items[index] ?? null
  }
}

export abstract class MapValue {
  abstract readonly size: number
  abstract get(key: Value): Value | undefined
  abstract keys(): readonly Value[]
}

/** A map as a literal writes it. */
export class EntryMap extends MapValue {
  readonly #entries: ReadonlyMap<string, readonly [key: Value, value: Value]>
  #keys: readonly Value[] | undefined

  /** By `mapKeyText`. */
  constructor(entries: ReadonlyMap<string, readonly [key: Value, value: Value]>) {
    super()
    this.#entries = entries
  }

  get size(): number {
    return this.#entries.size
  }

  get(key: Value): Value | undefined {
    const text = mapKeyText(key)
    return text === undefined ? undefined : this.#entries.get(text)?.[1]
  }

  keys(): readonly Value[] {
    this.#keys ??= [...this.#entries.values()].map(([key]) => key)
    return this.#keys
  }
}

/** An object with the fields of its schema, by the names that expressions give them. */
export abstract class ObjectValue {
  abstract readonly typeName: string
  abstract field(name: string): Value | undefined
  /** Names of all its fields, also of those that no expression can name. */
  abstract names(): readonly string[]
  /** What it has under one of `names`. */
  abstract part(name: string): Value | undefined
}

/** An object whose fields are found when an expression reads them. */
export abstract class LazyObject extends ObjectValue {
  /** undefined: it has no such field. */
  abstract deferred(name: string): Deferred | undefined

  field(): undefined {
    return undefined
  }

  part(): undefined {
    return undefined
  }
}

/** A value of a library: an address, a quantity. */
export abstract class OpaqueValue {
  abstract readonly typeName: string
  abstract equals(other: OpaqueValue): boolean
  /** What its size is where costs follow sizes. */
  get costSize(): number {
    return 1
  }
}

export type Value =
  | null
  | boolean
  | string
  | number
  | bigint
  | Uint
  | Double
  | Bytes
  | Timestamp
  | Duration
  | TypeValue
  | Optional
  | ListValue
  | MapValue
  | ObjectValue
  | OpaqueValue

/** What an expression gives in place of a value. Others handle it as a value: `&&` and `||` do without it where they can. */
export class CelFailure {
  readonly message: string

  constructor(message: string) {
    this.message = message
  }
}

export type CelOutcome = Value | CelFailure

/** An outcome that the machine does not compute: it stops, and is resumed with what `find` gives. */
export class Deferred {
  readonly find: () => Promise<CelOutcome>

  constructor(find: () => Promise<CelOutcome>) {
    this.find = find
  }
}

export const noSuchOverload = new CelFailure('no such overload')

export type Int = number | bigint

export function isInt(value: CelOutcome): value is Int {
  return typeof value === 'number' || typeof value === 'bigint'
}

const leastInt = -(2n ** 63n)
const mostInt = 2n ** 63n - 1n
const mostUint = 2n ** 64n - 1n

/** A 64-bit integer in the form of values; undefined: out of range. */
export function intOf(value: bigint): Int | undefined {
  if (value < leastInt || value > mostInt) return undefined
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : value
}

/** undefined: it has no 64 bits. */
export function uintOf(value: bigint): Uint | undefined {
  return value < 0n || value > mostUint ? undefined : new Uint(value)
}

/** Identifies a key of a map: whole numbers of all types are the same keys. undefined: it cannot be one. */
export function mapKeyText(key: Value): string | undefined {
  if (typeof key === 'string') return `"${key}`
  if (typeof key === 'boolean' || isInt(key)) return String(key)
  if (key instanceof Uint) return String(key.value)
  if (key instanceof Double) return Number.isInteger(key.value) ? String(BigInt(key.value)) : 'fraction'
  return undefined
}

/** As `type()` names it. */
export function typeNameOf(value: Value): string {
  if (value === null) return 'null_type'
  if (typeof value === 'boolean') return 'bool'
  if (typeof value === 'string') return 'string'
  if (isInt(value)) return 'int'
  if (value instanceof Uint) return 'uint'
  if (value instanceof Double) return 'double'
  if (value instanceof Bytes) return 'bytes'
  if (value instanceof Timestamp) return 'google.protobuf.Timestamp'
  if (value instanceof Duration) return 'google.protobuf.Duration'
  if (value instanceof TypeValue) return 'type'
  if (value instanceof Optional) return 'optional_type'
  if (value instanceof ListValue) return 'list'
  if (value instanceof MapValue) return 'map'
  return value.typeName
}
