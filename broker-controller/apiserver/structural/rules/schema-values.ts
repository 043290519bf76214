/** Values of an object as the rules of its schema see them (apiextensions-apiserver/pkg/apiserver/schema/cel/values.go). */
import { fieldOf, isObject, type JsonObject } from '../../../../api/text/json.ts'
import { durationOf, parseGoDuration, parseTimestamp } from '../../../cel/values/time-values.ts'
import {
  Bytes,
  Double,
  ListValue,
  MapValue,
  mapKeyText,
  ObjectValue,
  OpaqueValue,
  type Value,
} from '../../../cel/values/value.ts'
import { equalJSON } from '../../../store/equal-json.ts'
import { propertyOf } from '../pruning.ts'
import type { Declared } from './declared-type.ts'
import { escapedName } from './escaped-name.ts'

/** The value, which is as the schema specifies it. */
export function schemaValue(declared: Declared, value: unknown): Value {
  if (value === null || value === undefined) return null
  if (typeof value === 'string') return textValue(declared, value)
  if (typeof value === 'number') return numberValue(declared, value)
  if (typeof value === 'boolean') return value
  if (Array.isArray(value))
    return declared.element === undefined ? null : new SchemaList(declared, declared.element, value)
  if (!isObject(value)) return null
  return declared.element === undefined ? new SchemaObject(declared, value) : new SchemaMap(declared.element, value)
}

function numberValue({ type: { kind } }: Declared, value: number): Value {
  if (kind !== 'double' && Number.isSafeInteger(value)) return value
  return kind === 'int' ? BigInt(value) : new Double(value)
}

function textValue({ type, schema }: Declared, text: string): Value {
  switch (type.kind) {
    case 'bytes':
      return new Bytes(Buffer.from(text, 'base64'))
    case 'duration':
      return durationValue(text)
    case 'timestamp':
      return parseTimestamp(schema.format === 'date' ? `${text}T00:00:00Z` : text) ?? null
    default:
      return text
  }
}

const unitNanos: readonly (readonly [unit: RegExp, nanos: bigint])[] = [
  [/^n(?:s|ano|anosecond)s?$/i, 1n],
  [/^u(?:s)$|^micro(?:second)?s?$/i, 1_000n],
  [/^ms$|^milli(?:second)?s?$/i, 1_000_000n],
  [/^s(?:ec|econd)?s?$/i, 1_000_000_000n],
  [/^m(?:in|inute)?s?$/i, 60_000_000_000n],
  [/^h(?:r|our)?s?$/i, 3_600_000_000_000n],
  [/^d(?:ay)?s?$/i, 86_400_000_000_000n],
  [/^w(?:k|eek)?s?$/i, 604_800_000_000_000n],
]

/** As the format `duration` has it: also `3 days`. */
function durationValue(text: string): Value {
  const duration = parseGoDuration(text)
  if (duration !== undefined) return duration
  const [, amount, unit = ''] = /^(\d{1,12})\s*([a-z]+)$/i.exec(text) ?? []
  const nanos = unitNanos.find(([pattern]) => pattern.test(unit))?.[1]
  return amount === undefined || nanos === undefined ? null : (durationOf(BigInt(amount) * nanos) ?? null)
}

/** Values of the parts of one value, each made once: an expression may read them a million times. Scalars are made as fast as found. */
class Parts<Key> {
  readonly #made = new Map<Key, Value>()

  get(key: Key, declared: Declared, value: unknown): Value {
    const made = this.#made.get(key) ?? schemaValue(declared, value)
    if (typeof made === 'object' && made !== null) this.#made.set(key, made)
    return made
  }
}

class SchemaObject extends ObjectValue {
  readonly #declared: Declared
  readonly #object: JsonObject
  readonly #parts = new Parts<string>()
  #names: readonly string[] | undefined

  constructor(declared: Declared, object: JsonObject) {
    super()
    this.#declared = declared
    this.#object = object
  }

  get typeName(): string {
    return this.#declared.type.name
  }

  field(name: string): Value | undefined {
    const { fields } = this.#declared
    // Few names are escaped.
    const field = fields?.has(name) && escapedName(name) === name ? name : fields && fieldNamed(fields, name)
    return field === undefined ? undefined : this.#specified(field)
  }

  names(): readonly string[] {
    const preserves = this.#declared.schema['x-kubernetes-preserve-unknown-fields'] === true
    this.#names ??= Object.keys(this.#object).filter(
      (name) => this.#object[name] !== null && (preserves || propertyOf(this.#declared.schema, name) !== undefined),
    )
    return this.#names
  }

  part(name: string): Value | undefined {
    return this.#specified(name) ?? new UnseenValue(this.#object[name])
  }

  /** A field that is null counts as absent. */
  #specified(name: string): Value | undefined {
    const declared = this.#declared.fields?.get(name)
    if (declared === undefined || !Object.hasOwn(this.#object, name)) return undefined
    return this.#parts.get(name, declared, this.#object[name]) ?? undefined
  }
}

/** A value that no expression can name: it only counts where objects are compared. */
class UnseenValue extends OpaqueValue {
  readonly typeName = 'unknown'
  readonly #value: unknown

  constructor(value: unknown) {
    super()
    this.#value = value
  }

  equals(other: OpaqueValue): boolean {
    return other instanceof UnseenValue && equalJSON(this.#value, other.#value)
  }
}

type Fields = NonNullable<Declared['fields']>

/** Names by their escaped forms. */
const escapedNames = new WeakMap<Fields, ReadonlyMap<string, string>>()

function fieldNamed(fields: Fields, escaped: string): string | undefined {
  let names = escapedNames.get(fields)
  if (names === undefined) {
    names = new Map([...fields.keys()].map((name) => [escapedName(name) ?? '', name]))
    escapedNames.set(fields, names)
  }
  // Reserved words, which later versions of Kubernetes take as they are.
  return names.get(escaped) ?? (fields.has(escaped) ? escaped : undefined)
}

class SchemaMap extends MapValue {
  readonly #element: Declared
  readonly #object: JsonObject
  readonly #parts = new Parts<string>()
  #keys: readonly string[] | undefined

  constructor(element: Declared, object: JsonObject) {
    super()
    this.#element = element
    this.#object = object
  }

  get size(): number {
    return this.keys().length
  }

  get(key: Value): Value | undefined {
    if (typeof key !== 'string' || !Object.hasOwn(this.#object, key)) return undefined
    return this.#parts.get(key, this.#element, fieldOf(this.#object, key))
  }

  keys(): readonly Value[] {
    this.#keys ??= Object.keys(this.#object)
    return this.#keys
  }
}

class SchemaList extends ListValue {
  readonly #declared: Declared
  readonly #element: Declared
  readonly #items: readonly unknown[]
  readonly #parts = new Parts<number>()

  constructor(declared: Declared, element: Declared, items: readonly unknown[]) {
    super()
    this.#declared = declared
    this.#element = element
    this.#items = items
  }

  override get identityOf(): ((item: Value) => string) | undefined {
    const { 'x-kubernetes-list-type': listType, 'x-kubernetes-list-map-keys': keys = [] } = this.#declared.schema
    if (listType === 'set' && this.#element.element === undefined && this.#element.fields === undefined) {
      return (item) => mapKeyText(item) ?? ''
    }
    if (listType !== 'map') return undefined
    const names = keys.map((key) => escapedName(key) ?? '')
    return (item) =>
      JSON.stringify(names.map((name) => (item instanceof ObjectValue ? identity(item.field(name)) : '')))
  }

  get size(): number {
    return this.#items.length
  }

  at(index: number): Value {
    return this.#parts.get(index, this.#element, this.#items[index])
  }
}

function identity(value: Value | undefined): string {
  return value === undefined ? '' : (mapKeyText(value) ?? '')
}
