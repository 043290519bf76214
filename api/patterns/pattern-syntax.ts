/**
 * The syntax of patterns in schemas: RE2, as Go's regexp (https://pkg.go.dev/regexp/syntax). There are no references to groups and no
 * assertions about what stands around a place, so a pattern can be matched in time that is linear in the text.
 */
import { clipped } from '../problem.ts'
import {
  anyOfSets,
  type CharacterSet,
  everyCharacter,
  foldedSet,
  oneCharacter,
  otherThan,
  perlClass,
  posixClass,
  rangeSet,
  unicodeClass,
} from './pattern-classes.ts'

export type Assertion = 'textStart' | 'textEnd' | 'lineStart' | 'lineEnd' | 'wordBoundary' | 'noWordBoundary'

export type PatternNode =
  | { readonly kind: 'character'; readonly set: CharacterSet }
  | { readonly kind: 'assertion'; readonly assertion: Assertion }
  /** One after the other. */
  | { readonly kind: 'sequence'; readonly parts: readonly PatternNode[] }
  | { readonly kind: 'choice'; readonly branches: readonly PatternNode[] }
  | Repeat

/** `most` undefined: any number. `prefersFew`: as `a*?`, which matches as little as it can. */
export type Repeat = {
  readonly kind: 'repeat'
  readonly part: PatternNode
  readonly least: number
  readonly most: number | undefined
  readonly prefersFew: boolean
}

/** What is wrong with a pattern, in Go's words. */
export class PatternError extends Error {
  constructor(problem: string, part: string) {
    super(`error parsing regexp: ${problem}: \`${part}\``)
  }
}

type Flags = { readonly i: boolean; readonly m: boolean; readonly s: boolean }

const mostRepeats = 1000
const deepestGroup = 250
const longestPart = 64

/** Throws PatternError. */
export function parsePattern(pattern: string): PatternNode {
  const parser = new Parser(pattern)
  const node = parser.choice({ i: false, m: false, s: false }, 0)
  if (!parser.isAtEnd()) throw new PatternError('unexpected )', clipped(pattern))
  return node
}

const controls: ReadonlyMap<string, number> = new Map([
  ['a', 0x07],
  ['f', 0x0c],
  ['n', 0x0a],
  ['r', 0x0d],
  ['t', 0x09],
  ['v', 0x0b],
])

class Parser {
  readonly #pattern: string
  #at = 0

  constructor(pattern: string) {
    this.#pattern = pattern
  }

  isAtEnd(): boolean {
    return this.#at >= this.#pattern.length
  }

  /** Up to the end of the group, or of the pattern. Flags that a group sets hold to its end. */
  choice(given: Flags, depth: number): PatternNode {
    if (depth > deepestGroup) throw new PatternError('expression nests too deeply', clipped(this.#pattern))
    let flags = given
    const branches: PatternNode[] = []
    let parts: PatternNode[] = []
    for (;;) {
      const next = this.#peek()
      if (next === undefined || next === ')') break
      if (next === '|') {
        this.#at++
        branches.push({ kind: 'sequence', parts })
        parts = []
        continue
      }
      if (next === '(') {
        const group = this.#group(flags, depth)
        if ('flags' in group) {
          flags = group.flags
          continue
        }
        parts.push(this.#repeated(group.node))
        continue
      }
      if (this.#takeText('\\Q')) {
        parts.push(...this.#literalText(flags))
        continue
      }
      parts.push(this.#repeated(this.#single(flags)))
    }
    const last: PatternNode = { kind: 'sequence', parts }
    return branches.length === 0 ? last : { kind: 'choice', branches: [...branches, last] }
  }

  /** A whole character, also one of two code units. */
  #peek(): string | undefined {
    const code = this.#pattern.codePointAt(this.#at)
    return code === undefined ? undefined : String.fromCodePoint(code)
  }

  #next(): string | undefined {
    const character = this.#peek()
    this.#at += character?.length ?? 0
    return character
  }

  #takeText(text: string): boolean {
    if (!this.#pattern.startsWith(text, this.#at)) return false
    this.#at += text.length
    return true
  }

  /** What follows a place, as far as one part of the syntax reaches. */
  #rest(from: number): string {
    return this.#pattern.slice(from, from + longestPart)
  }

  /** `(?i)` sets flags for what follows in the group around it. */
  #group(flags: Flags, depth: number): { readonly node: PatternNode } | { readonly flags: Flags } {
    const from = this.#at
    this.#at++
    let inner = flags
    if (this.#takeText('?P<') || this.#takeText('?<')) {
      const name = /^([A-Za-z0-9_]+)>/.exec(this.#rest(this.#at))?.[1]
      if (name === undefined) throw new PatternError('invalid named capture', this.#rest(from))
      this.#at += name.length + 1
    } else if (this.#takeText('?')) {
      const given = this.#flags(flags, from)
      if (given.isAlone) return { flags: given.flags }
      inner = given.flags
    }
    const node = this.choice(inner, depth + 1)
    if (!this.#takeText(')')) throw new PatternError('missing closing )', clipped(this.#pattern))
    return { node }
  }

  #flags(flags: Flags, from: number): { readonly flags: Flags; readonly isAlone: boolean } {
    const [text, on = '', off, end] = /^([imsU]*)(?:-([imsU]+))?([:)])/.exec(this.#rest(this.#at)) ?? []
    if (text === undefined) throw new PatternError('invalid or unsupported Perl syntax', this.#rest(from).slice(0, 3))
    this.#at += text.length
    const isOn = (flag: string, before: boolean) => (on.includes(flag) || before) && !off?.includes(flag)
    const set = { i: isOn('i', flags.i), m: isOn('m', flags.m), s: isOn('s', flags.s) }
    return { flags: set, isAlone: end === ')' }
  }

  /** Between `\Q` and `\E`. */
  #literalText(flags: Flags): readonly PatternNode[] {
    const parts: PatternNode[] = []
    while (!this.isAtEnd() && !this.#takeText('\\E')) parts.push(literal(this.#next() ?? '', flags))
    return parts
  }

  #single(flags: Flags): PatternNode {
    const character = this.#next() ?? ''
    switch (character) {
      case '^':
        return { kind: 'assertion', assertion: flags.m ? 'lineStart' : 'textStart' }
      case '$':
        return { kind: 'assertion', assertion: flags.m ? 'lineEnd' : 'textEnd' }
      case '.':
        return { kind: 'character', set: flags.s ? everyCharacter : otherThan(oneCharacter(0x0a)) }
      case '[':
        return { kind: 'character', set: this.#class(flags) }
      case '*':
      case '+':
      case '?':
        throw new PatternError('missing argument to repetition operator', character)
      case '\\':
        return this.#escape(flags)
      default:
        return literal(character, flags)
    }
  }

  #escape(flags: Flags): PatternNode {
    const assertions: { readonly [letter: string]: Assertion } = {
      ...{ A: 'textStart', z: 'textEnd', b: 'wordBoundary', B: 'noWordBoundary' },
    }
    const letter = this.#peek() ?? ''
    const assertion = Object.hasOwn(assertions, letter) ? assertions[letter] : undefined
    if (assertion !== undefined) {
      this.#at++
      return { kind: 'assertion', assertion }
    }
    const set = this.#classEscape()
    if (set !== undefined) return { kind: 'character', set: flags.i ? foldedSet(set) : set }
    return literal(String.fromCodePoint(this.#characterEscape()), flags)
  }

  /** Behind a backslash; undefined: what follows is not a class. */
  #classEscape(): CharacterSet | undefined {
    const letter = this.#peek() ?? ''
    const perl = perlClass(letter)
    if (perl !== undefined) {
      this.#at++
      return perl
    }
    const [text, sign, short, long] = /^([pP])(?:([A-Za-z])|\{(\^?[A-Za-z_]+)\})/.exec(this.#rest(this.#at)) ?? []
    if (text === undefined) return undefined
    const name = short ?? long ?? ''
    const set = unicodeClass(name.replace(/^\^/, ''))
    if (set === undefined) throw new PatternError('invalid character class range', `\\${text}`)
    this.#at += text.length
    return (sign === 'P') === name.startsWith('^') ? set : otherThan(set)
  }

  /** Behind a backslash. */
  #characterEscape(): number {
    const from = this.#at
    const character = this.#next()
    if (character === undefined) throw new PatternError('trailing backslash at end of expression', '')
    const control = controls.get(character)
    if (control !== undefined) return control
    const numbered = /^(?:x([0-9A-Fa-f]{2})|x\{([0-9A-Fa-f]{1,6})\}|(0[0-7]{0,2}|[1-7][0-7]{1,2}))/.exec(
      this.#rest(from),
    )
    const [text, short, long, octal] = numbered ?? []
    if (text !== undefined) {
      this.#at = from + text.length
      const code = octal === undefined ? Number.parseInt(short ?? long ?? '', 16) : Number.parseInt(octal, 8)
      if (code <= 0x10ffff) return code
    } else if (/^[!-/:-@[-`{-~]$/.test(character)) return character.codePointAt(0) ?? 0
    throw new PatternError('invalid escape sequence', `\\${character}`)
  }

  /** Behind `[`. */
  #class(flags: Flags): CharacterSet {
    const from = this.#at - 1
    const isNegated = this.#takeText('^')
    const sets: CharacterSet[] = []
    for (let isFirst = true; isFirst || this.#peek() !== ']'; isFirst = false) {
      if (this.isAtEnd()) throw new PatternError('missing closing ]', this.#rest(from))
      sets.push(this.#classItem(from))
    }
    this.#at++
    const set = anyOfSets(sets)
    const folded = flags.i ? foldedSet(set) : set
    return isNegated ? otherThan(folded) : folded
  }

  #classItem(classStart: number): CharacterSet {
    const from = this.#at
    const [posix, name] = /^\[:(\^?[a-z]+):\]/.exec(this.#rest(from)) ?? []
    if (posix !== undefined && name !== undefined) {
      const set = posixClass(name)
      if (set === undefined) throw new PatternError('invalid character class range', posix)
      this.#at += posix.length
      return set
    }
    if (this.#takeText('\\')) {
      const set = this.#classEscape()
      if (set !== undefined) return set
      this.#at = from
    }
    const first = this.#classCharacter(classStart)
    const [sign, end] = [this.#pattern[this.#at], this.#pattern[this.#at + 1]]
    if (sign !== '-' || end === ']' || end === undefined) return oneCharacter(first)
    this.#at++
    const last = this.#classCharacter(classStart)
    if (last < first) {
      throw new PatternError('invalid character class range', this.#pattern.slice(from, this.#at))
    }
    return rangeSet([[first, last]])
  }

  #classCharacter(classStart: number): number {
    if (this.#takeText('\\')) return this.#characterEscape()
    const character = this.#next()
    if (character === undefined) throw new PatternError('missing closing ]', this.#rest(classStart))
    return character.codePointAt(0) ?? 0
  }

  /** With the repetition that follows. */
  #repeated(part: PatternNode): PatternNode {
    const start = this.#at
    const bounds = this.#repetition()
    if (bounds === undefined) return part
    const prefersFew = this.#takeText('?')
    const operator = this.#pattern.slice(start, this.#at)
    const { least, most } = bounds
    if (least > mostRepeats || (most ?? 0) > mostRepeats || (most !== undefined && most < least)) {
      throw new PatternError('invalid repeat count', operator)
    }
    if (this.#isRepetition()) throw new PatternError('invalid nested repetition operator', this.#rest(start))
    return { kind: 'repeat', part, least, most, prefersFew }
  }

  #isRepetition(): boolean {
    const at = this.#at
    const found = this.#repetition() !== undefined
    this.#at = at
    return found
  }

  /** A brace that states no number is a character. */
  #repetition(): { readonly least: number; readonly most: number | undefined } | undefined {
    if (this.#takeText('*')) return { least: 0, most: undefined }
    if (this.#takeText('+')) return { least: 1, most: undefined }
    if (this.#takeText('?')) return { least: 0, most: 1 }
    if (this.#peek() !== '{') return undefined
    const [text, least, comma, most] = /^\{(\d{1,9})(,?)(\d{0,9})\}/.exec(this.#rest(this.#at)) ?? []
    if (text === undefined || (comma === '' && most !== '')) return undefined
    this.#at += text.length
    const fewest = Number(least)
    return { least: fewest, most: comma === '' ? fewest : most === '' ? undefined : Number(most) }
  }
}

function literal(character: string, { i }: Flags): PatternNode {
  const set = oneCharacter(character.codePointAt(0) ?? 0)
  return { kind: 'character', set: i ? foldedSet(set) : set }
}
