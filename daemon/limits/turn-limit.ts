/** Long work takes several turns of the event loop, so that requests and messages do not wait for all of it. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Steps } from '../watchdog/steps.ts'

/** A tenth of what a request may hold the event loop: what follows the last look at the clock comes on top. */
const longestMs = 10

let startedMs: number | undefined
let nowMs = () => performance.now()

/**
 * Measures turns by this clock until the function that it returns is called. One that stands still during a turn divides no work, so a
 * simulation repeats the order of everything.
 */
export function measureTurnsBy(monotonicMs: () => number): () => void {
  const before = nowMs
  nowMs = monotonicMs
  startedMs = undefined
  return () => {
    nowMs = before
    startedMs = undefined
  }
}

/**
 * Resolves at once in a turn that is short so far, else in one of the next: resolved promises alone never end a turn. A turn counts
 * from the first call in it by any loop, so that loops which alternate share one limit.
 */
export async function yieldTurn(): Promise<void> {
  while (turnMs() >= longestMs) await nextTurn()
}

/** Calls `act` with each item, in several turns where there are many; `items` must not change meanwhile. */
export async function eachInTurns<T>(items: Iterable<T>, act: (item: T) => void): Promise<void> {
  for (const item of items) {
    if (turnMs() >= longestMs) await yieldTurn()
    act(item)
  }
}

/** The result of the steps, in several turns where they are long; what they read must not change meanwhile. */
export async function finishedInTurns<T>(steps: Steps<T>): Promise<T> {
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
    if (turnMs() >= longestMs) await yieldTurn()
  }
}

function turnMs(): number {
  const now = nowMs()
  if (startedMs === undefined) {
    startedMs = now
    // Due before anything of the next turn. A setImmediate comes after those that were there first: they would have a limit of their own.
    setTimeout(() => {
      startedMs = undefined
    }, 1).unref()
  }
  return now - startedMs
}
