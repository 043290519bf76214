/**
 * The schemas of definitions, of which equal parts are held once: an operator repeats the specification of a pod, with all its descriptions, in
 * each of its kinds and versions. Parts are looked for among the schemas of the last half minute: at a start among those of all definitions.
 */

export type SharedSchemasLimits = {
  readonly parts?: number
  /** The most characters of all texts and keys together. */
  readonly characters?: number
  readonly forMs?: number
  readonly later?: (ms: number, act: () => void) => void
}

/**
 * Gives the frozen copy of a schema. The given value is touched only if `isOwn`: nothing else refers to it, and it is frozen in place. A store
 * with 85 definitions opens in half of the time.
 */
export type SharesSchema = (schema: object, isOwn?: boolean) => object

export function sharedSchemas({
  parts = 100_000,
  characters = 16 * 1024 * 1024,
  forMs = 30_000,
  later = (ms, act) => void setTimeout(act, ms).unref(),
}: SharedSchemasLimits = {}): SharesSchema {
  let table: SchemaTable | undefined
  return (schema, isOwn = false) => {
    if (Object.isFrozen(schema)) return schema
    if (table === undefined || table.parts() > parts || table.characters() > characters) {
      const own = schemaTable()
      table = own
      later(forMs, () => {
        if (table === own) table = undefined
      })
    }
    return table.share(schema, isOwn)
  }
}

type SchemaTable = ReturnType<typeof schemaTable>

/** Each text and each part has a name, by which what contains it is found without comparing all of it. */
function schemaTable() {
  const texts = new Map<string, { readonly text: string; readonly name: string }>()
  const parts = new Map<string, { readonly part: object; readonly name: string }>()
  let characters = 0

  /** The name of what was shared last: each name is needed once, behind its value. */
  let named = ''

  const entryOf = (text: string) => {
    const known = texts.get(text)
    if (known !== undefined) return known
    const made = { text, name: `'${texts.size}` }
    texts.set(text, made)
    characters += text.length
    return made
  }
  const shared = (value: unknown, isOwn: boolean): unknown => {
    if (typeof value === 'string') {
      const { text, name } = entryOf(value)
      named = name
      return text
    }
    if (isObject(value)) return share(value, isOwn)
    named = JSON.stringify(value)
    return value
  }
  const share = (value: object, isOwn: boolean): object =>
    Array.isArray(value) ? shareList(value, isOwn) : shareFields(value as Fields, isOwn)

  const shareList = (given: unknown[], isOwn: boolean): object => {
    const list = isOwn ? given : [...given]
    let key = '['
    for (let i = 0; i < list.length; i++) {
      list[i] = shared(list[i] ?? null, isOwn)
      key += `${named},`
    }
    return kept(key, Object.isFrozen(given) ? given : list)
  }
  const shareFields = (given: Fields, isOwn: boolean): object => {
    const fields = isOwn ? given : { ...given }
    let key = '{'
    for (const field in fields) {
      if (fields[field] === undefined) {
        delete fields[field]
        continue
      }
      fields[field] = shared(fields[field], isOwn)
      key += `${entryOf(field).name}:${named},`
    }
    return kept(key, Object.isFrozen(given) ? given : fields)
  }
  /** The part with this key: `part`, if there was none. */
  const kept = (key: string, part: object): object => {
    const known = parts.get(key)
    if (known !== undefined) {
      named = known.name
      return known.part
    }
    named = `#${parts.size}`
    parts.set(key, { part: Object.freeze(part), name: named })
    characters += key.length
    return part
  }
  return { share, parts: () => parts.size, characters: () => characters }
}

type Fields = { [name: string]: unknown }

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}
