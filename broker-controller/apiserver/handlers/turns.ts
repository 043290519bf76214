/** Many waiting readers, resumed a few at a time, so that the event loop has other work done in between. */

/** Calls each function that it is given once, in order, at most `atOnce` in one turn of the event loop. */
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
