/** What one validation of an object by its schema may cost, and what it has found. */
import { mostProblems, type Problem } from '../../../api/problem.ts'

/** Values times the branches that they are compared with: less than 100 ms on a slow machine. */
const mostValues = 200_000
/** Steps through patterns: of 20 ns each. */
const mostPatternSteps = 2_000_000

/** Thrown by `ValidationRun.take`: the schema has more branches for this object than can be compared in time. */
export class TooCostlyError extends Error {
  constructor() {
    super('the object takes too long to compare with its schema: it has too many values in alternatives, or patterns')
  }
}

/** Bounds the work of one validation: schemas and objects are those of clients. */
export class ValidationRun {
  readonly patternSteps = { left: mostPatternSteps }
  #left = mostValues

  /** Throws TooCostlyError once the values are used up. */
  take(values: number): void {
    this.#left -= values
    if (this.#left < 0) throw new TooCostlyError()
  }
}

/** Adds problems, at most `mostProblems`: more are not named. */
export function addProblems(found: Problem[], more: readonly Problem[]): void {
  for (const problem of more) {
    if (found.length >= mostProblems) return
    found.push(problem)
  }
}
