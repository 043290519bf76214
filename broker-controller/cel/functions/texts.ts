/** Functions of strings: those of the language, and cel-go's ext.Strings in version 2, as Kubernetes 1.32 has them. */
import { charactersOf, countedCharacters, isPlain } from '../values/characters.ts'
import type { Meter } from '../values/meter.ts'
import { ArrayList, type CelOutcome, isInt, ListValue, noSuchOverload, type Value } from '../values/value.ts'
import { type FunctionTable, fail, patternCost, traversal, traversalFactor, valueSize } from './definition.ts'
import { formatted } from './formatting.ts'
import { listItems } from './operators.ts'
import { matchesPattern } from './patterns.ts'

type TextCall = (text: string, args: readonly Value[], meter: Meter) => CelOutcome

const ofText =
  (call: TextCall) =>
  ([text, ...args]: readonly Value[], meter: Meter): CelOutcome =>
    typeof text === 'string' ? call(text, args, meter) : noSuchOverload

/** A function of two strings. */
const ofTexts = (call: (text: string, other: string, meter: Meter) => CelOutcome) =>
  ofText((text, [other], meter) => (typeof other === 'string' ? call(text, other, meter) : noSuchOverload))

/** A search compares each place of the text with what is looked for: in the worst case, all of it. */
const searchSteps = (text: string, part: string) => (text.length * part.length) / 64

function searched(find: (text: string, part: string, from: number | undefined) => number): TextCall {
  return (text, [part, offset], meter) => {
    if (typeof part !== 'string' || (offset !== undefined && typeof offset !== 'number')) return noSuchOverload
    meter.step(searchSteps(text, part))
    const length = charactersOf(text).length
    if (offset !== undefined && (offset < 0 || offset > length)) return fail(`index out of range: ${offset}`)
    const from = offset === undefined ? undefined : unitsOf(text, offset)
    const at = find(text, part, from)
    return at < 0 || isPlain(text) ? at : [...text.slice(0, at)].length
  }
}

/** How many code units so many characters have. */
function unitsOf(text: string, characters: number): number {
  const all = charactersOf(text)
  return typeof all === 'string' ? characters : all.slice(0, characters).join('').length
}

const substring: TextCall = (text, [start, end]) => {
  if (typeof start !== 'number' || (end !== undefined && typeof end !== 'number')) return noSuchOverload
  const { length } = charactersOf(text)
  const last = end ?? length
  if (start < 0 || start > length) return fail(`index out of range: ${start}`)
  if (last < 0 || last > length) return fail(`index out of range: ${last}`)
  if (start > last) return fail(`invalid substring range. start: ${start}, end: ${last}`)
  return text.slice(unitsOf(text, start), unitsOf(text, last))
}

const charAt: TextCall = (text, [index], meter) => {
  if (!isInt(index ?? null)) return noSuchOverload
  const all = countedCharacters(text, meter)
  const at = Number(index)
  return at < 0 || at > all.length ? fail(`index out of range: ${index}`) : (all[at] ?? '')
}

/** One call holds the event loop no longer than these need: more than an object of real use has. */
const longestResult = 4 * 1024 * 1024
const mostPieces = 100_000
const tooLongResult = fail('the result is too long')

const replace: TextCall = (text, [part, other, most], meter) => {
  if (typeof part !== 'string' || typeof other !== 'string') return noSuchOverload
  if (most !== undefined && typeof most !== 'number') return noSuchOverload
  meter.step(searchSteps(text, part))
  const times = most === undefined || most < 0 ? Number.POSITIVE_INFINITY : most
  if (part === '' && text.length > mostPieces) return tooLongResult
  const pieces = part === '' ? piecesAround(text, times) : piecesOf(text, part, times + 1)
  if (pieces.length > mostPieces || pieces.length * other.length > longestResult) return tooLongResult
  meter.step(pieces.length)
  return pieces.join(other)
}

/** What is around the empty part: it is before each character, and at the end. */
function piecesAround(text: string, times: number): readonly string[] {
  if (times === 0) return [text]
  const characters = [...text]
  if (times > characters.length) return ['', ...characters, '']
  return ['', ...characters.slice(0, times - 1), characters.slice(times - 1).join('')]
}

/** At most `most` pieces, of which the last has the rest. */
function piecesOf(text: string, separator: string, most: number): readonly string[] {
  if (most === 0) return []
  const all = separator === '' ? [...text] : text.split(separator)
  if (all.length <= most) return all
  return [...all.slice(0, most - 1), all.slice(most - 1).join(separator)]
}

const split: TextCall = (text, [separator, most], meter) => {
  if (typeof separator !== 'string' || (most !== undefined && typeof most !== 'number')) return noSuchOverload
  if (separator === '' && text.length > mostPieces) return tooLongResult
  const pieces = piecesOf(text, separator, most === undefined || most < 0 ? Number.POSITIVE_INFINITY : most)
  if (pieces.length > mostPieces) return tooLongResult
  meter.step(searchSteps(text, separator) + pieces.length)
  return new ArrayList(pieces)
}

function joined([list = null, separator = '']: readonly Value[], meter: Meter): CelOutcome {
  if (!(list instanceof ListValue) || typeof separator !== 'string') return noSuchOverload
  const items = listItems(list)
  if (!items.every((item): item is string => typeof item === 'string')) return noSuchOverload
  const length = items.reduce((sum, item) => sum + item.length + separator.length, 0)
  if (length > longestResult) return tooLongResult
  meter.charge(Math.ceil(length * 2 * traversalFactor))
  meter.step(items.length)
  return items.join(separator)
}

const escapes: { readonly [character: string]: string } = {
  ...{ '\x07': '\\a', '\b': '\\b', '\f': '\\f', '\n': '\\n', '\r': '\\r', '\t': '\\t', '\v': '\\v' },
  ...{ '\\': '\\\\', '"': '\\"' },
}

function quotedText(text: string): string {
  return `"${text.replace(/["\\\p{Cc}]/gu, (character) => escapes[character] ?? character)}"`
}

const ascii = (change: (text: string) => string, letters: RegExp) =>
  ofText((text) => text.replace(letters, (part) => change(part)))

/** What Go's unicode.IsSpace takes for white space, and the byte order mark not. */
const space = '[\\t\\n\\v\\f\\r \\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]'
const leadingSpace = new RegExp(`^${space}+`)

function trimmed(text: string): string {
  let end = text.length
  const isSpace = new RegExp(space)
  while (end > 0 && isSpace.test(text.charAt(end - 1))) end--
  return text.slice(0, end).replace(leadingSpace, '')
}

const searchCost = ([text, part]: readonly Value[]) =>
  Math.ceil(valueSize(text) * traversalFactor) * Math.ceil(valueSize(part) * traversalFactor)
const prefixCost = ([, part]: readonly Value[]) => Math.ceil(valueSize(part) * traversalFactor)
const test = ['string.(string): bool']

/** `indexOf` and `lastIndexOf` are those of lists too: see `lists.ts`. */
export const searches = {
  indexOf: ofText(searched((text, part, from) => text.indexOf(part, from))),
  lastIndexOf: ofText(searched((text, part, from) => text.lastIndexOf(part, from))),
}

export const texts: FunctionTable = {
  contains: {
    overloads: test,
    cost: searchCost,
    call: ofTexts((text, part, meter) => {
      meter.step(searchSteps(text, part))
      return text.includes(part)
    }),
  },
  startsWith: { overloads: test, cost: prefixCost, call: ofTexts((text, part) => text.startsWith(part)) },
  endsWith: { overloads: test, cost: prefixCost, call: ofTexts((text, part) => text.endsWith(part)) },
  matches: {
    overloads: [...test, '(string, string): bool'],
    cost: patternCost,
    call: ofTexts(matchesPattern),
  },
  charAt: { overloads: ['string.(int): string'], call: ofText(charAt) },
  substring: {
    overloads: ['string.(int): string', 'string.(int, int): string'],
    cost: traversal(),
    call: ofText(substring),
  },
  lowerAscii: {
    overloads: ['string.(): string'],
    cost: traversal(),
    call: ascii((text) => text.toLowerCase(), /[A-Z]+/g),
  },
  upperAscii: {
    overloads: ['string.(): string'],
    cost: traversal(),
    call: ascii((text) => text.toUpperCase(), /[a-z]+/g),
  },
  trim: { overloads: ['string.(): string'], cost: traversal(), call: ofText(trimmed) },
  replace: {
    overloads: ['string.(string, string): string', 'string.(string, string, int): string'],
    cost: traversal(2),
    call: ofText(replace),
  },
  split: {
    overloads: ['string.(string): list<string>', 'string.(string, int): list<string>'],
    cost: traversal(2),
    call: ofText(split),
  },
  join: {
    overloads: ['list<string>.(): string', 'list<string>.(string): string'],
    cost: () => 0,
    call: joined,
  },
  'strings.quote': { overloads: ['(string): string'], cost: traversal(), call: ofText(quotedText) },
  format: {
    overloads: ['string.(list<dyn>): string'],
    cost: traversal(),
    call: ofText((text, [args], meter) =>
      args instanceof ListValue ? formatted(text, listItems(args), meter) : noSuchOverload,
    ),
  },
}
