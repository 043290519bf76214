/** JSON values as YAML, for clients that accept `application/yaml`. Only what JSON can express is written. */

/** Longer texts come in several pieces, each about so many characters. */
const pieceCharacters = 48 * 1024

/** The text of a JSON value in block style. A long `items` is written piece by piece, so other requests get a turn in between. */
export function* yamlPieces(value: unknown): Generator<string> {
  const items = isRecord(value) && Array.isArray(value['items']) ? (value['items'] as readonly unknown[]) : []
  if (items.length === 0) {
    yield document(value)
    return
  }
  const { items: _, ...head } = value as { readonly items: unknown }
  let text = `${Object.keys(head).length > 0 ? document(head) : ''}items:\n`
  for (const item of items) {
    const lines: string[] = []
    addItem(lines, item, '')
    text += `${lines.join('\n')}\n`
    if (text.length < pieceCharacters) continue
    yield text
    text = ''
  }
  yield text
}

function document(value: unknown): string {
  const lines: string[] = []
  if (isFilled(value)) addFields(lines, value, '')
  else lines.push(scalar(value, ''))
  return `${lines.join('\n')}\n`
}

/** Every line of a record or a list, each behind `pad`. */
function addFields(lines: string[], value: Filled, pad: string): void {
  if (Array.isArray(value)) {
    for (const item of value) addItem(lines, item, pad)
    return
  }
  for (const [key, field] of Object.entries(value)) {
    if (field === undefined) continue
    if (!isFilled(field)) lines.push(`${keyAt(pad, key)}: ${scalar(field, pad)}`)
    else {
      lines.push(`${keyAt(pad, key)}:`)
      // A list stands below its key, as sigs.k8s.io/yaml writes it.
      addFields(lines, field, Array.isArray(field) ? pad : `${pad}  `)
    }
  }
}

/** An implicit key is on one line and has at most 1,024 characters (YAML 1.2, 7.4.2); a longer one stands behind `?`. */
function keyAt(pad: string, key: string): string {
  const text = isPlain(key) ? key : JSON.stringify(key)
  return text.length <= 1000 ? `${pad}${text}` : `${pad}? ${text}\n${pad}`
}

function addItem(lines: string[], item: unknown, pad: string): void {
  if (!isFilled(item)) {
    lines.push(`${pad}- ${scalar(item, pad)}`)
    return
  }
  const first = lines.length
  addFields(lines, item, `${pad}  `)
  lines[first] = `${pad}- ${(lines[first] ?? '').slice(pad.length + 2)}`
}

type Filled = { readonly [key: string]: unknown } | readonly unknown[]

/** Whether it has fields or items, which are written below it. Empty ones are on the line of their key. */
function isFilled(value: unknown): value is Filled {
  if (Array.isArray(value)) return value.length > 0
  return isRecord(value) && Object.values(value).some((field) => field !== undefined)
}

function isRecord(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Starts with a letter or a slash and holds no character with a meaning in YAML. */
const plain = /^[A-Za-z/][A-Za-z0-9_./-]*(?::[A-Za-z0-9_./-]+)*$/
/** Words that YAML 1.1 or 1.2 reads as a boolean, null or a number. */
const reserved = /^(?:true|false|yes|no|on|off|y|n|null|nan|inf)$/i
function scalar(value: unknown, pad: string): string {
  if (Array.isArray(value)) return '[]'
  if (typeof value === 'object' && value !== null) return '{}'
  if (typeof value !== 'string') return String(value ?? null)
  if (isPlain(value)) return value
  return value.includes('\n') && isLiteral(value) ? literalBlock(value, `${pad}  `) : JSON.stringify(value)
}

function isPlain(text: string): boolean {
  return plain.test(text) && !reserved.test(text)
}

/** Whether a literal block can hold it as it is: its first line begins with text, no line ends in a blank, no control characters. */
function isLiteral(text: string): boolean {
  if (/^\s/.test(text)) return false
  return text.split('\n').every((line) => !/[\p{C}\u2028\u2029]|\s$/u.test(line))
}

/** `|` keeps one line end, `|-` none, `|+` all of them (YAML 1.2, 8.1.1.2). */
function literalBlock(text: string, pad: string): string {
  const chomping = !text.endsWith('\n') ? '-' : text.endsWith('\n\n') ? '+' : ''
  const lines = (text.endsWith('\n') ? text.slice(0, -1) : text).split('\n')
  return [`|${chomping}`, ...lines.map((line) => (line === '' ? '' : `${pad}${line}`))].join('\n')
}
