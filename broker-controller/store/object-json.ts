/** The JSON text of stored objects, made once for each version and shared by the disk, lists and watches. */

/**
 * Characters of text that are kept at most, in memory twice that where a text is not Latin-1. A list of 3,000 small objects has 2 MB;
 * what is not kept is made again.
 */
const keptTextLength = 8 * 1024 * 1024
/**
 * A text is used again within moments, by the disk and by watches, or by lists that are repeated every few seconds. Those of a
 * burst are dropped between one and two of these times after it.
 */
const keptForMs = 30_000
/** Bytes of watch events that are kept: those that the watches are receiving now. */
const keptEventBytes = 1024 * 1024

const keptTexts = recentlyUsed<string>(keptTextLength, keptForMs)
const events = recentlyUsed<{ readonly type: string; readonly bytes: Buffer }>(keptEventBytes, keptForMs)

/** JSON of a deeply frozen object, as the store returns it: its text never changes. */
export function jsonOf(object: object): string {
  return keptTexts.get(object) ?? kept(object)
}

function kept(object: object): string {
  const text = JSON.stringify(object)
  keptTexts.set(object, text, text.length)
  return text
}

/**
 * JSON of anything, in pieces of at least `pieceLength` characters but for the last one: of a list its `items`, of a table its
 * `rows`, piece by piece. The kept text is taken for what is frozen, as a whole or as an item.
 */
export function* jsonPieces(value: unknown, pieceLength = 64 * 1024): Generator<string> {
  const list = isFrozenObject(value) ? undefined : asList(value)
  if (list === undefined) {
    yield textOf(value)
    return
  }
  const { name, items, others } = list
  const head = JSON.stringify(others)
  let start = `${head.slice(0, -1)}${head === '{}' ? '' : ','}"${name}":[`
  let texts: string[] = []
  let length = 0
  for (const item of items) {
    if (length >= pieceLength) {
      yield `${start}${texts.join(',')}`
      start = ','
      texts = []
      length = 0
    }
    const text = textOf(item)
    texts.push(text)
    length += text.length
  }
  yield `${start}${texts.join(',')}]}`
}

/** JSON of any value. Only texts of frozen values are kept: others can change. */
function textOf(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  return keptTexts.get(value) ?? (Object.isFrozen(value) ? kept(value) : JSON.stringify(value))
}

/** The line of a watch event. Watches that show the same version share the bytes. */
export function eventLine(type: string, object: unknown): Buffer {
  const line = () => Buffer.from(`{"type":"${type}","object":${textOf(object)}}\n`)
  if (!isFrozenObject(object)) return line()
  const recent = events.get(object)
  if (recent?.type === type) return recent.bytes
  const bytes = line()
  events.set(object, { type, bytes }, bytes.length)
  return bytes
}

/**
 * Values by object, as long as the object lives and up to the limit, by the sizes given. The older of two generations
 * is dropped when the younger one has half of the limit, or when `forMs` have passed.
 */
export function recentlyUsed<Value extends string | object>(limit: number, forMs: number, later = laterWithoutWaiting) {
  let young = new WeakMap<object, Value>()
  let old = young
  let size = 0
  /** A turn by time is planned as long as there is something to drop. */
  let isPlanned = false
  const turn = () => {
    old = young
    young = new WeakMap()
    size = 0
  }
  const turnInTime = () => {
    const hasYounger = size > 0
    turn()
    isPlanned = hasYounger
    if (hasYounger) later(forMs, turnInTime)
  }
  return {
    get: (object: object) => young.get(object) ?? old.get(object),
    set(object: object, value: Value, valueSize: number) {
      if (size + valueSize > limit / 2) turn()
      size += valueSize
      young.set(object, value)
      if (isPlanned) return
      isPlanned = true
      later(forMs, turnInTime)
    },
  }
}

/** Does not keep the process alive. */
function laterWithoutWaiting(ms: number, act: () => void): void {
  setTimeout(act, ms).unref()
}

function isFrozenObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && Object.isFrozen(value)
}

/** The value as a long list and what stands before it; undefined: it is not one. */
function asList(value: unknown) {
  if (typeof value !== 'object' || value === null) return undefined
  const { items, rows, ...others } = value as { readonly items?: unknown; readonly rows?: unknown }
  if (Array.isArray(items) && rows === undefined) return { name: 'items', items: items as readonly unknown[], others }
  if (Array.isArray(rows) && items === undefined) return { name: 'rows', items: rows as readonly unknown[], others }
  return undefined
}
