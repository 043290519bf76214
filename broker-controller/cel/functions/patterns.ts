/** Regular expressions in expressions: RE2, in time that is linear in the text. */
import { compilePattern, type Pattern } from '../../../api/patterns/pattern.ts'
import { PatternError } from '../../../api/patterns/pattern-syntax.ts'
import { CostExceededError, type Meter } from '../values/meter.ts'
import { ArrayList, type CelOutcome, noSuchOverload, type Value } from '../values/value.ts'
import { type FunctionTable, fail, patternCost } from './definition.ts'

/** Steps of the pattern for each step of the expression. */
const stepsPerStep = 2
/** One call holds the event loop no longer than that: 20 ns each. */
const mostSteps = 500_000

const known = new Map<string, Pattern>()
/** Parts of all patterns that are kept: some megabytes. */
const mostParts = 20_000
let parts = 0

/** Throws PatternError. */
export function knownPattern(source: string): Pattern {
  const found = known.get(source)
  if (found !== undefined) return found
  const pattern = compilePattern(source)
  if (parts + pattern.size > mostParts) {
    known.clear()
    parts = 0
  }
  known.set(source, pattern)
  parts += pattern.size
  return pattern
}

/** Calls `act` with a pattern, and takes the steps that it needs. `act` gives undefined when they are used up. */
function withPattern<T extends CelOutcome>(
  source: string,
  meter: Meter,
  act: (pattern: Pattern, steps: { left: number }) => T | undefined,
): CelOutcome {
  const pattern = compiled(source)
  if (pattern instanceof PatternError) return fail(pattern.message)
  const steps = { left: Math.min(mostSteps, meter.stepsLeft * stepsPerStep) }
  const before = steps.left
  const result = act(pattern, steps)
  if (result === undefined) throw new CostExceededError()
  meter.step((before - steps.left) / stepsPerStep)
  return result
}

function compiled(source: string): Pattern | PatternError {
  try {
    return knownPattern(source)
  } catch (error) {
    if (error instanceof PatternError) return error
    throw error
  }
}

/** Whether the pattern is anywhere in the text. */
export function matchesPattern(text: string, source: string, meter: Meter): CelOutcome {
  return withPattern(source, meter, (pattern, steps) => pattern.matches(text, steps))
}

function found([text, source]: readonly Value[], meter: Meter): CelOutcome {
  if (typeof text !== 'string' || typeof source !== 'string') return noSuchOverload
  return withPattern(source, meter, (pattern, steps) => {
    const place = pattern.search(text, 0, steps)
    if (place === undefined) return undefined
    return place === 'none' ? '' : text.slice(place.start, place.end)
  })
}

/** A character beyond the first 65,536 takes two places. */
function afterCharacter(text: string, at: number): number {
  return at + ((text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1)
}

function allFound([text, source, most]: readonly Value[], meter: Meter): CelOutcome {
  if (typeof text !== 'string' || typeof source !== 'string') return noSuchOverload
  if (most !== undefined && typeof most !== 'number') return noSuchOverload
  const limit = most === undefined || most < 0 ? Number.POSITIVE_INFINITY : most
  return withPattern(source, meter, (pattern, steps) => piecesIn(text, limit, (at) => pattern.search(text, at, steps)))
}

type Match = { readonly start: number; readonly end: number }

function piecesIn(
  text: string,
  limit: number,
  search: (at: number) => Match | 'none' | undefined,
): ArrayList | undefined {
  const pieces: string[] = []
  // An empty match that follows another one directly is left out, as in Go's FindAllString.
  let before = -1
  for (let at = 0; at <= text.length && pieces.length < limit; ) {
    const place = search(at)
    if (place === undefined) return undefined
    if (place === 'none') break
    const isEmpty = place.start === place.end
    if (!isEmpty || place.end !== before) pieces.push(text.slice(place.start, place.end))
    before = place.end
    at = isEmpty ? afterCharacter(text, place.end) : place.end
  }
  return new ArrayList(pieces)
}

export const patterns: FunctionTable = {
  find: { overloads: ['string.(string): string'], cost: patternCost, call: found },
  findAll: {
    overloads: ['string.(string): list<string>', 'string.(string, int): list<string>'],
    cost: patternCost,
    call: allFound,
  },
}
