/**
 * Patterns of schemas, matched without backtracking: all ways through a pattern are followed at the same time, one character of the text
 * after the other (Thompson's simulation). JavaScript's own engine needs exponential time for `^(a+)+$`, and does not read RE2's syntax.
 */
import { clipped } from '../problem.ts'
import { type CharacterSet, isWordCharacter } from './pattern-classes.ts'
import { type Assertion, PatternError, type PatternNode, parsePattern } from './pattern-syntax.ts'

export interface Pattern {
  /** What compiled patterns cost in memory and time. */
  readonly size: number
  /** Whether it matches anywhere in the text. Each step through the pattern takes one of `steps`; undefined: they are used up. */
  matches(text: string, steps: { left: number }): boolean | undefined
}

type Instruction =
  | { readonly op: 'character'; readonly set: KnownSet }
  | { readonly op: 'assertion'; readonly assertion: Assertion }
  | Split
  | Jump
  | { readonly op: 'match' }
/** A set of characters, which many instructions may have. `ascii`: what is known of it, by code: 0 nothing, 1 in it, 2 not in it. */
type KnownSet = { readonly set: CharacterSet; readonly ascii: Uint8Array }
/** Continues at the next instruction and at another one. */
type Split = { readonly op: 'split'; other: number }
type Jump = { readonly op: 'jump'; to: number }

/** As RE2's limit on the size of a program, which `(a{1000}){1000}` exceeds. */
const mostInstructions = 10_000
const longestPattern = 10_000

/** Throws PatternError. */
export function compilePattern(source: string): Pattern {
  if (source.length > longestPattern) throw tooLarge(source)
  const writer = new ProgramWriter(source)
  writer.write(parsePattern(source))
  const program: readonly Instruction[] = [...writer.program, { op: 'match' }]
  let places: readonly [Places, Places] | undefined
  return {
    size: program.length,
    matches(text, steps) {
      // Kept: thousands of texts are matched with one pattern.
      places ??= [new Places(program.length), new Places(program.length)]
      return run(program, places, text, steps)
    },
  }
}

function tooLarge(source: string): PatternError {
  return new PatternError('expression too large', clipped(source))
}

class ProgramWriter {
  readonly program: Instruction[] = []
  readonly #source: string
  readonly #sets = new Map<CharacterSet, KnownSet>()
  /** Also those of parts that match nothing, as in `(){1000}`. */
  #parts = 0

  constructor(source: string) {
    this.#source = source
  }

  write(node: PatternNode): void {
    if (++this.#parts > mostInstructions || this.program.length > mostInstructions) throw tooLarge(this.#source)
    switch (node.kind) {
      case 'character':
        this.program.push({ op: 'character', set: this.#known(node.set) })
        return
      case 'assertion':
        this.program.push({ op: 'assertion', assertion: node.assertion })
        return
      case 'sequence':
        for (const part of node.parts) this.write(part)
        return
      case 'choice':
        this.#writeChoice(node.branches)
        return
      case 'repeat':
        this.#writeRepeat(node)
    }
  }

  #writeChoice(branches: readonly PatternNode[]): void {
    const ends: Jump[] = []
    for (const [index, branch] of branches.entries()) {
      if (index === branches.length - 1) {
        this.write(branch)
        break
      }
      const split = this.#split()
      this.write(branch)
      const end: Jump = { op: 'jump', to: 0 }
      this.program.push(end)
      ends.push(end)
      split.other = this.program.length
    }
    for (const end of ends) end.to = this.program.length
  }

  #writeRepeat({ part, least, most }: Extract<PatternNode, { kind: 'repeat' }>): void {
    for (let count = 0; count < least; count++) this.write(part)
    const start = this.program.length
    const splits: Split[] = []
    for (let count = least; count < (most ?? least + 1); count++) {
      splits.push(this.#split())
      this.write(part)
    }
    if (most === undefined) this.program.push({ op: 'jump', to: start })
    for (const split of splits) split.other = this.program.length
  }

  #known(set: CharacterSet): KnownSet {
    const known = this.#sets.get(set) ?? { set, ascii: new Uint8Array(128) }
    this.#sets.set(set, known)
    return known
  }

  #split(): Split {
    const split: Split = { op: 'split', other: 0 }
    this.program.push(split)
    return split
  }
}

/** The largest number that `Places` can keep for a place. */
const mostRounds = 2 ** 32 - 1

/** The places of a program that are reached at one place of the text. */
class Places {
  readonly found: number[] = []
  readonly #seen: Uint32Array
  #round = 0

  constructor(size: number) {
    this.#seen = new Uint32Array(size)
  }

  clear(): void {
    if (this.#round === mostRounds) {
      this.#seen.fill(0)
      this.#round = 0
    }
    this.#round++
    this.found.length = 0
  }

  /** Whether it was not there yet. */
  add(place: number): boolean {
    if (this.#seen[place] === this.#round) return false
    this.#seen[place] = this.#round
    return true
  }
}

function run(
  program: readonly Instruction[],
  places: readonly [Places, Places],
  text: string,
  steps: { left: number },
): boolean | undefined {
  let [present, next] = places
  next.clear()
  let before: number | undefined
  for (let at = 0; ; ) {
    const code = text.codePointAt(at)
    ;[present, next] = [next, present]
    next.clear()
    // A match may begin at each place.
    if (follow(program, present, present.found.splice(0), { before, after: code }, steps)) return true
    if (steps.left < 0) return undefined
    if (code === undefined) return false
    for (const place of present.found) {
      const instruction = program[place]
      if (instruction?.op !== 'character') continue
      if (isIn(instruction.set, code, steps)) next.found.push(place + 1)
      if (steps.left < 0) return undefined
    }
    steps.left -= present.found.length + 1
    before = code
    at += code > 0xffff ? 2 : 1
  }
}

/** A class may have thousands of ranges: what it costs to look through them is paid in steps. */
function isIn({ set, ascii }: KnownSet, code: number, steps: { left: number }): boolean {
  const known = code < 128 ? ascii[code] : 0
  if (known !== 0) return known === 1
  steps.left -= set.cost
  const isThere = set.has(code)
  if (code < 128) ascii[code] = isThere ? 1 : 2
  return isThere
}

type Around = { readonly before: number | undefined; readonly after: number | undefined }

/** Continues from these places, and from the start, to those that read a character. Whether the end was reached. */
function follow(
  program: readonly Instruction[],
  places: Places,
  from: readonly number[],
  around: Around,
  steps: { left: number },
): boolean {
  const waiting = [...from, 0]
  for (let place = waiting.pop(); place !== undefined; place = waiting.pop()) {
    if (!places.add(place)) continue
    steps.left -= 1
    const instruction = program[place]
    switch (instruction?.op) {
      case 'match':
        return true
      case 'character':
        places.found.push(place)
        break
      case 'jump':
        waiting.push(instruction.to)
        break
      case 'split':
        waiting.push(place + 1, instruction.other)
        break
      case 'assertion':
        if (holds(instruction.assertion, around)) waiting.push(place + 1)
    }
  }
  return false
}

function holds(assertion: Assertion, { before, after }: Around): boolean {
  const isWord = (code: number | undefined) => code !== undefined && isWordCharacter(code)
  switch (assertion) {
    case 'textStart':
      return before === undefined
    case 'textEnd':
      return after === undefined
    case 'lineStart':
      return before === undefined || before === 0x0a
    case 'lineEnd':
      return after === undefined || after === 0x0a
    case 'wordBoundary':
      return isWord(before) !== isWord(after)
    case 'noWordBoundary':
      return isWord(before) === isWord(after)
  }
}
