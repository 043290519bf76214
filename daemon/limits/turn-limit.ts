/** Long work takes several turns of the event loop, so that requests and messages do not wait for all of it. */
import { setImmediate as nextTurn } from 'node:timers/promises'

/** A quarter of what a request may hold the event loop. */
const longestMs = 25

let startedMs: number | undefined

/**
 * Resolves at once in a turn that is short so far, else in one of the next: resolved promises alone never end a turn. A turn counts
 * from the first call in it by any loop, so that loops which alternate share one limit.
 */
export async function yieldTurn(): Promise<void> {
  while (turnMs() >= longestMs) await nextTurn()
}

function turnMs(): number {
  const now = performance.now()
  if (startedMs === undefined) {
    startedMs = now
    setImmediate(() => {
      startedMs = undefined
    })
  }
  return now - startedMs
}
