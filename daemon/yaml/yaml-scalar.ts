/**
 * The value of one YAML scalar as Kubernetes reads it: YAML 1.1 with the exceptions of go-yaml v2, which sigs.k8s.io/yaml contains
 * (goyaml.v2/resolve.go). Not the same as YAML 1.2: 0440 is octal, `yes`, `on` and `y` are true.
 */

export type ScalarValue = string | number | boolean | null

const prefix = 'tag:yaml.org,2002:'
const tagsOfValues = new Set(['bool', 'int', 'float', 'null', 'timestamp'].map((name) => prefix + name))

const words: ReadonlyMap<string, boolean | number | null> = new Map<string, boolean | number | null>([
  ...['y', 'Y', 'yes', 'Yes', 'YES', 'true', 'True', 'TRUE', 'on', 'On', 'ON'].map((word) => [word, true] as const),
  ...['n', 'N', 'no', 'No', 'NO', 'false', 'False', 'FALSE', 'off', 'Off', 'OFF'].map((word) => [word, false] as const),
  ...['', '~', 'null', 'Null', 'NULL'].map((word) => [word, null] as const),
  ...['.nan', '.NaN', '.NAN'].map((word) => [word, Number.NaN] as const),
  ...['.inf', '.Inf', '.INF', '+.inf', '+.Inf', '+.INF'].map((word) => [word, Number.POSITIVE_INFINITY] as const),
  ...['-.inf', '-.Inf', '-.INF'].map((word) => [word, Number.NEGATIVE_INFINITY] as const),
])

/** Go's integer literals without their underscores; a leading 0 is octal. */
const integer = /^([-+]?)(?:0[bB]([01]+)|0[xX]([0-9a-fA-F]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))$/
const float = /^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$/
/** What begins with a dot keeps its underscores, which Go allows between digits only. */
const fraction = /^\.[0-9]+(_[0-9]+)*([eE][-+]?[0-9]+(_[0-9]+)*)?$/
const [lowestInt64, highestUint64] = [-(2n ** 63n), 2n ** 64n - 1n]
const date = /^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ][0-9:.]+(Z|[-+][0-9]{2}:[0-9]{2})?)?$/

/** `isPlain`: without quotes and not a block. Throws go-yaml's sentence where the text is not what its tag promises. */
export function yamlScalar(text: string, isPlain: boolean, tag: string | undefined): ScalarValue {
  if (tag === undefined) return isPlain ? plainValue(text) : text
  if (tag === '!') return plainValue(text) // go-yaml takes the non-specific tag for none, and what it precedes for plain
  if (tag === `${prefix}binary`) return binaryText(text)
  return tagsOfValues.has(tag) ? taggedValue(text, tag.slice(prefix.length)) : text
}

function taggedValue(text: string, wanted: string): ScalarValue {
  if (wanted === 'timestamp' && date.test(text)) return text // as Kubernetes keeps it
  const value = plainValue(text)
  const found = kindOf(value, text)
  if (found === wanted || (wanted === 'float' && found === 'int')) return value
  throw new Error(`cannot decode !!${found} \`${text}\` as a !!${wanted}`)
}

function kindOf(value: ScalarValue, text: string): string {
  if (value === null) return 'null'
  if (typeof value === 'boolean') return 'bool'
  if (typeof value === 'string') return 'str'
  return isIntegerText(text) ? 'int' : 'float'
}

/** Whether the number in this text is an integer to Go, which 1e3 is not. */
export function isIntegerText(text: string): boolean {
  return integerIn(text.replaceAll('_', '')) !== undefined
}

function plainValue(text: string): ScalarValue {
  const word = words.get(text)
  if (word !== undefined) return word
  return numberIn(text) ?? text
}

function numberIn(text: string): number | undefined {
  if (text.startsWith('.')) return fraction.test(text) ? finite(Number(text.replaceAll('_', ''))) : undefined
  if (!/^[-+0-9]/.test(text)) return undefined
  const digits = text.replaceAll('_', '')
  const whole = integerIn(digits)
  if (whole !== undefined) return whole
  return float.test(digits) ? finite(Number(digits)) : undefined
}

/** Integer of 64 bits, as in Go. Larger ones are floats in base 10 and 8, and text in the others. */
function integerIn(digits: string): number | undefined {
  const match = integer.exec(digits)
  if (match === null) return undefined
  const [, sign, binary, hexadecimal, octal, decimal] = match
  const size = BigInt(
    binary !== undefined
      ? `0b${binary}`
      : hexadecimal !== undefined
        ? `0x${hexadecimal}`
        : octal !== undefined
          ? `0o${octal}`
          : (decimal ?? ''),
  )
  const value = sign === '-' ? -size : size
  return value >= lowestInt64 && value <= highestUint64 ? Number(value) : undefined
}

/** A number that no float can hold is text. */
function finite(value: number): number | undefined {
  return Number.isFinite(value) ? value : undefined
}

const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

/** As text, as Kubernetes reads it: bytes that are not UTF-8 are replaced. Secrets have `data` for such bytes. */
function binaryText(text: string): string {
  const encoded = text.replace(/[\r\n]/g, '')
  if (!base64.test(encoded)) throw new Error('!!binary value contains invalid base64 data')
  return Buffer.from(encoded, 'base64').toString('utf8')
}
