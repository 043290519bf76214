/** JSON as expressions see it without a schema: objects are maps, and whole numbers are integers. */
import { fieldOf, isObject, type JsonObject } from '../../../api/text/json.ts'
import { Double, intOf, ListValue, MapValue, type Value } from './value.ts'

/** undefined counts as null. */
export function jsonValue(value: unknown): Value {
  if (typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number') return numberValue(value)
  if (Array.isArray(value)) return new JsonList(value)
  return isObject(value) ? new JsonMap(value) : null
}

function numberValue(value: number): Value {
  if (Number.isSafeInteger(value)) return value
  return (Number.isInteger(value) ? intOf(BigInt(value)) : undefined) ?? new Double(value)
}

const names = new WeakMap<JsonObject, readonly string[]>()

/** Field names of the object, which does not change. A large one takes a millisecond: they are read once. */
function namesIn(object: JsonObject): readonly string[] {
  const known = names.get(object)
  if (known !== undefined) return known
  const made = Object.keys(object)
  names.set(object, made)
  return made
}

class JsonMap extends MapValue {
  readonly #object: JsonObject

  constructor(object: JsonObject) {
    super()
    this.#object = object
  }

  get size(): number {
    return namesIn(this.#object).length
  }

  get(key: Value): Value | undefined {
    if (typeof key !== 'string' || !Object.hasOwn(this.#object, key)) return undefined
    return jsonValue(fieldOf(this.#object, key))
  }

  keys(): readonly Value[] {
    return namesIn(this.#object)
  }
}

class JsonList extends ListValue {
  readonly #items: readonly unknown[]

  constructor(items: readonly unknown[]) {
    super()
    this.#items = items
  }

  get size(): number {
    return this.#items.length
  }

  at(index: number): Value {
    return jsonValue(this.#items[index])
  }
}
