/** Compiled patterns, and whether they match a text. */
import { type CharacterSet, isWordCharacter } from './pattern-classes.ts'
import type { Assertion } from './pattern-syntax.ts'

/** An instruction of the simulation. */
export type Instruction =
  | { readonly op: 'character'; readonly set: KnownSet }
  | { readonly op: 'assertion'; readonly assertion: Assertion }
  | Split
  | Jump
  | { readonly op: 'match' }
/** A set of characters, which many instructions may have. `ascii`: what is known of it, by code: 0 nothing, 1 in it, 2 not in it. */
export type KnownSet = { readonly set: CharacterSet; readonly ascii: Uint8Array }
/** Continues at the next instruction and at another one, which comes first where `prefersOther`. */
export type Split = { readonly op: 'split'; other: number; readonly prefersOther: boolean }
export type Jump = { readonly op: 'jump'; to: number }

/** The largest number that `Places` can keep for a place. */
const mostRounds = 2 ** 32 - 1

/** The places of a program that are reached at one place of the text. */
export class Places {
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

/** Whether the program matches anywhere in the text; undefined: the steps are used up. The places may have been used before. */
export function runProgram(
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
    readCharacter(program, present.found, code, next.found, steps)
    if (steps.left < 0) return undefined
    steps.left -= present.found.length + 1
    before = code
    at += code > 0xffff ? 2 : 1
  }
}

/** Adds the places after the character to `onward`, until the steps are used up. */
function readCharacter(
  program: readonly Instruction[],
  places: readonly number[],
  code: number,
  onward: number[],
  steps: { left: number },
): void {
  for (const place of places) {
    const instruction = program[place]
    if (instruction?.op !== 'character') continue
    if (isIn(instruction.set, code, steps)) onward.push(place + 1)
    if (steps.left < 0) return
  }
}

/** A class may have thousands of ranges: what it costs to look through them is paid in steps. */
export function isIn({ set, ascii }: KnownSet, code: number, steps: { left: number }): boolean {
  const known = code < 128 ? ascii[code] : 0
  if (known !== 0) return known === 1
  steps.left -= set.cost
  const isThere = set.has(code)
  if (code < 128) ascii[code] = isThere ? 1 : 2
  return isThere
}

/** The characters around a place. */
export type Around = { readonly before: number | undefined; readonly after: number | undefined }

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

/** Whether the assertion is true of a place. */
export function holds(assertion: Assertion, { before, after }: Around): boolean {
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
