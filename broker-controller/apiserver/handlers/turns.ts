/** Long work in pieces, so that the event loop has other work done in between. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Clock } from '../../../daemon/clock.ts'

/** Work that took less is not divided: most requests take a millisecond. */
const pieceMs = 10

/** To be awaited between the steps of a request: lets other work be done when they took long since the last pause. */
export function pauses({ monotonicMs }: Pick<Clock, 'monotonicMs'>): () => Promise<void> {
  let sinceMs = monotonicMs()
  return async () => {
    if (monotonicMs() - sinceMs < pieceMs) return
    await nextTurn()
    sinceMs = monotonicMs()
  }
}

/** Does work that stops now and then, with a pause where it has taken long since the last one. */
export async function inPieces<T>(work: Generator<undefined, T>, clock: Pick<Clock, 'monotonicMs'>): Promise<T> {
  const pause = pauses(clock)
  for (;;) {
    const step = work.next()
    if (step.done) return step.value
    await pause()
  }
}

/** Many waiting readers, resumed a few at a time: calls each function that it is given once, in order, at most `atOnce` in one turn of the event loop. */
export function inTurns(atOnce: number): (resume: () => void) => void {
  const waiting = new Set<() => void>()
  const takeTurn = () => {
    let left = atOnce
    for (const resume of waiting) {
      if (left === 0) break
      left -= 1
      waiting.delete(resume)
      resume()
    }
    if (waiting.size > 0) setImmediate(takeTurn)
  }
  return (resume) => {
    if (waiting.size === 0) setImmediate(takeTurn)
    waiting.add(resume)
  }
}
