/** The words of an expression (https://github.com/google/cel-spec/blob/master/doc/langdef.md#syntax). */
import { Bytes, Double, type Int, intOf, type Uint, uintOf, type Value } from '../values/value.ts'
import { SourceError } from './source-problem.ts'

export type Token = {
  readonly at: number
  readonly text: string
} & ({ readonly kind: 'name' | 'sign' | 'end' } | { readonly kind: 'literal'; readonly value: Value })

/** As cel-go: more code points than that are refused. */
const longestExpression = 100_000

/** Throws SourceError. The last one is the end. */
export function tokensOf(source: string): readonly Token[] {
  if (source.length > longestExpression) {
    const limit = `expression code point size exceeds limit: size: ${source.length}, limit ${longestExpression}`
    throw new SourceError(0, limit)
  }
  const tokens: Token[] = []
  for (let at = skipped(source, 0); at < source.length; ) {
    const token = tokenAt(source, at)
    tokens.push(token)
    at = skipped(source, at + token.text.length)
  }
  return [...tokens, { kind: 'end', at: source.length, text: '<EOF>' }]
}

const blank = /(?:[\t\n\f\r ]|\/\/[^\n]*)*/y
const name = /[_a-zA-Z][_a-zA-Z0-9]*/y
const number = /0x[0-9a-fA-F]+[uU]?|(?:\d+\.\d+|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\d+[uU]?/y
const quote = /(?:[rR][bB]?|[bB][rR]?)?('''|"""|'|")/y
const sign = /==|!=|<=|>=|&&|\|\||[<>()[\]{}.,:?!+\-*/%]/y

function skipped(source: string, at: number): number {
  return at + (matched(blank, source, at)?.[0].length ?? 0)
}

function matched(pattern: RegExp, source: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at
  return pattern.exec(source)
}

function tokenAt(source: string, at: number): Token {
  const quoted = matched(quote, source, at)
  if (quoted !== null) return textToken(source, at, quoted[0], quoted[1] ?? '')
  const word = matched(name, source, at)?.[0]
  if (word !== undefined) return { kind: 'name', at, text: word }
  const digits = matched(number, source, at)?.[0]
  if (digits !== undefined) return { kind: 'literal', at, text: digits, value: numberOf(digits, at) }
  const text = matched(sign, source, at)?.[0]
  if (text !== undefined) return { kind: 'sign', at, text }
  const character = String.fromCodePoint(source.codePointAt(at) ?? 0)
  throw new SourceError(at, `Syntax error: token recognition error at: '${character}'`)
}

const leastMagnitude = 2n ** 63n

function numberOf(digits: string, at: number): Int | Uint | Double {
  if (/[.eE]/.test(digits) && !digits.startsWith('0x')) {
    const value = Number(digits)
    if (Number.isFinite(value)) return new Double(value)
    throw new SourceError(at, 'invalid double literal')
  }
  const isUnsigned = /[uU]$/.test(digits)
  const value = BigInt(isUnsigned ? digits.slice(0, -1) : digits)
  // Only with a minus sign: the reader of expressions refuses it otherwise.
  const result = isUnsigned ? uintOf(value) : value === leastMagnitude ? value : intOf(value)
  if (result === undefined) throw new SourceError(at, isUnsigned ? 'invalid uint literal' : 'invalid int literal')
  return result
}

function textToken(source: string, at: number, opening: string, mark: string): Token {
  const prefix = opening.slice(0, -mark.length).toLowerCase()
  const isRaw = prefix.includes('r')
  const start = at + opening.length
  let end = start
  for (; ; end++) {
    if (source.startsWith(mark, end)) break
    const isBroken = end >= source.length || (mark.length === 1 && /[\r\n]/.test(source[end] ?? ''))
    if (isBroken) throw new SourceError(at, `Syntax error: token recognition error at: '${source.slice(at, at + 20)}'`)
    if (source[end] === '\\' && !isRaw) end++
  }
  const body = source.slice(start, end).replaceAll('\r\n', '\n')
  const isBytes = prefix.includes('b')
  const value = isBytes ? new Bytes(bytesOf(body, isRaw, at)) : isRaw ? body : unescaped(body, at)
  return { kind: 'literal', at, text: source.slice(at, end + mark.length), value }
}

const escapeSequence =
  /\\(?:([abfnrtv\\?"'`])|[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|([\s\S]?))/g
const controls: { readonly [letter: string]: string } = {
  ...{ a: '\x07', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' },
}

function unescaped(body: string, at: number): string {
  return body.replace(
    escapeSequence,
    (_, plain: string, hex = '', short = '', long = '', octal = '', wrong?: string) => {
      if (plain !== undefined) return controls[plain] ?? plain
      if (wrong !== undefined) throw new SourceError(at, `Syntax error: token recognition error at: '\\${wrong}'`)
      const code = octal === '' ? Number.parseInt(`${hex}${short}${long}`, 16) : Number.parseInt(octal, 8)
      if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) throw new SourceError(at, 'invalid unicode code point')
      return String.fromCodePoint(code)
    },
  )
}

/** Escapes of two digits are bytes here; other characters are UTF-8. */
function bytesOf(body: string, isRaw: boolean, at: number): Uint8Array {
  const encoder = new TextEncoder()
  if (isRaw) return encoder.encode(body)
  const bytes: number[] = []
  let done = 0
  const flush = (end: number) => {
    for (const byte of encoder.encode(body.slice(done, end))) bytes.push(byte)
  }
  for (const match of body.matchAll(escapeSequence)) {
    flush(match.index)
    const [whole, , hex, , , octal] = match
    const single = hex ?? octal
    if (single === undefined) bytes.push(...encoder.encode(unescaped(whole, at)))
    else bytes.push(Number.parseInt(single, hex === undefined ? 8 : 16))
    done = match.index + whole.length
  }
  flush(body.length)
  return Uint8Array.from(bytes)
}
