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

/** Gives the frozen copy of a schema. The given value is never touched. */
export function sharedSchemas({
  parts = 100_000,
  characters = 16 * 1024 * 1024,
  forMs = 30_000,
  later = (ms, act) => void setTimeout(act, ms).unref(),
}: SharedSchemasLimits = {}): (schema: object) => object {
  let table: SchemaTable | undefined
  return (schema) => {
    if (Object.isFrozen(schema)) return schema
    if (table === undefined || table.parts() > parts || table.characters() > characters) {
      const own = schemaTable()
      table = own
      later(forMs, () => {
        if (table === own) table = undefined
      })
    }
    return table.share(schema)
  }
}

type SchemaTable = ReturnType<typeof schemaTable>

/** Each text and each part has a name, by which what contains it is found without comparing all of it. */
function schemaTable() {
  const texts = new Map<string, { readonly text: string; readonly name: string }>()
  const parts = new Map<string, object>()
  const names = new WeakMap<object, string>()
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
  const shared = (value: unknown): unknown => {
    if (typeof value === 'string') {
      const { text, name } = entryOf(value)
      named = name
      return text
    }
    if (isObject(value)) return share(value)
    named = JSON.stringify(value)
    return value
  }
  const kept = (key: string, make: () => object): object => {
    const known = parts.get(key) ?? Object.freeze(make())
    named = names.get(known) ?? ''
    if (named !== '') return known
    named = `#${parts.size}`
    parts.set(key, known)
    names.set(known, named)
    characters += key.length
    return known
  }
  const share = (value: object): object => {
    const name = names.get(value)
    if (name !== undefined) {
      named = name
      return value
    }
    const isList = Array.isArray(value)
    const all: [string, unknown][] = []
    let key = isList ? '[' : '{'
    for (const [field, given] of Object.entries(value)) {
      if (given === undefined && !isList) continue
      const item = shared(given ?? null)
      key += isList ? `${named},` : `${entryOf(field).name}:${named},`
      all.push([field, item])
    }
    return kept(key, () => {
      if (Object.isFrozen(value)) return value
      return isList ? all.map(([, item]) => item) : Object.fromEntries(all)
    })
  }
  return { share, parts: () => parts.size, characters: () => characters }
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}
