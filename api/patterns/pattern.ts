/**
 * Patterns of schemas, matched without backtracking: all ways through a pattern are followed at the same time, one character of the text
 * after the other (Thompson's simulation). JavaScript's own engine needs exponential time for `^(a+)+$`, and does not read RE2's syntax.
 */
import { clipped } from '../problem.ts'
import type { CharacterSet } from './pattern-classes.ts'
import { type Instruction, type Jump, type KnownSet, Places, runProgram, type Split } from './pattern-program.ts'
import { type MatchPlace, searchedProgram } from './pattern-search.ts'
import { PatternError, type PatternNode, parsePattern, type Repeat } from './pattern-syntax.ts'

export interface Pattern {
  /** What compiled patterns cost in memory and time. */
  readonly size: number
  /** Whether it matches anywhere in the text. Each step through the pattern takes one of `steps`; undefined: they are used up. */
  matches(text: string, steps: { left: number }): boolean | undefined
  /** The first match that begins at `from` or later, of those the one that Go prefers. undefined: the steps are used up. */
  search(text: string, from: number, steps: { left: number }): MatchPlace | 'none' | undefined
}

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
      return runProgram(program, places, text, steps)
    },
    search: (text, from, steps) => searchedProgram(program, text, from, steps),
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

  #writeRepeat({ part, least, most, prefersFew }: Repeat): void {
    for (let count = 0; count < least; count++) this.write(part)
    const start = this.program.length
    const splits: Split[] = []
    for (let count = least; count < (most ?? least + 1); count++) {
      splits.push(this.#split(prefersFew))
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

  #split(prefersOther = false): Split {
    const split: Split = { op: 'split', other: 0, prefersOther }
    this.program.push(split)
    return split
  }
}
