/**
 * Where a pattern matches: the leftmost match, and of those that begin there the one that a backtracking engine would find first, as Go's
 * regexp. All ways through the pattern are followed in the order of preference, one character after the other (Pike's simulation).
 */
import { type Around, holds, type Instruction, isIn } from './pattern-program.ts'

export type MatchPlace = { readonly start: number; readonly end: number }

/** A way through the program that began at `start`. */
type Way = { readonly at: number; readonly start: number }

/** undefined: the steps are used up. */
export function searchedProgram(
  program: readonly Instruction[],
  text: string,
  from: number,
  steps: { left: number },
): MatchPlace | 'none' | undefined {
  const seen = new Uint32Array(program.length)
  let best: MatchPlace | undefined
  let before = from === 0 ? undefined : codePointBefore(text, from)
  let ways: Way[] = []
  for (let [at, round] = [from, 1]; ; round++) {
    const code = text.codePointAt(at)
    const around = { before, after: code }
    const candidates = best === undefined ? [...ways, { at: 0, start: at }] : ways
    const reached = reachedBy(program, candidates, around, { seen, round, reached: [], steps })
    ways = []
    const matched = readOn(program, reached, code, ways, steps)
    if (steps.left < 0) return undefined
    if (matched !== undefined) best = { start: matched.start, end: at }
    if (code === undefined || (best !== undefined && ways.length === 0)) return best ?? 'none'
    steps.left -= reached.length + 1
    before = code
    at += code > 0xffff ? 2 : 1
  }
}

/** Gives the first way that ends the match: those after it are less preferred. `onward`: where those before it continue after the character. */
function readOn(
  program: readonly Instruction[],
  reached: readonly Way[],
  code: number | undefined,
  onward: Way[],
  steps: { left: number },
): Way | undefined {
  for (const way of reached) {
    const instruction = program[way.at]
    if (instruction?.op === 'match') return way
    if (code === undefined || instruction?.op !== 'character') continue
    if (isIn(instruction.set, code, steps)) onward.push({ at: way.at + 1, start: way.start })
    if (steps.left < 0) return undefined
  }
  return undefined
}

type Reaching = {
  readonly seen: Uint32Array
  readonly round: number
  readonly reached: Way[]
  readonly steps: { left: number }
}

function reachedBy(program: readonly Instruction[], ways: readonly Way[], around: Around, reaching: Reaching) {
  for (const way of ways) follow(program, way, around, reaching)
  return reaching.reached
}

/** Continues to the instructions that read a character or end the match, the preferred ones first. */
function follow(program: readonly Instruction[], { at, start }: Way, around: Around, reaching: Reaching): void {
  const { seen, round, reached, steps } = reaching
  const waiting = [at]
  for (let place = waiting.pop(); place !== undefined; place = waiting.pop()) {
    if (seen[place] === round) continue
    seen[place] = round
    steps.left -= 1
    const instruction = program[place]
    switch (instruction?.op) {
      case 'match':
      case 'character':
        reached.push({ at: place, start })
        break
      case 'jump':
        waiting.push(instruction.to)
        break
      case 'split':
        if (instruction.prefersOther) waiting.push(place + 1, instruction.other)
        else waiting.push(instruction.other, place + 1)
        break
      case 'assertion':
        if (holds(instruction.assertion, around)) waiting.push(place + 1)
    }
  }
}

function codePointBefore(text: string, at: number): number | undefined {
  const code = text.charCodeAt(at - 1)
  const isLow = code >= 0xdc00 && code <= 0xdfff
  return isLow && at >= 2 ? text.codePointAt(at - 2) : code
}
