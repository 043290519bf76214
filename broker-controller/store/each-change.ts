/** The changes at a cursor, one after another, as an iteration that waits for the next. */
import type { ChangeCursor } from './store.ts'

/** Ends without an error when `signal` aborts or the store closes. Throws what the cursor throws. */
export async function* eachChange<Event>(cursor: ChangeCursor<Event>, signal: AbortSignal): AsyncGenerator<Event> {
  const wait = cursorWait(signal)
  try {
    while (!signal.aborted) {
      const change = cursor.next()
      if (change !== undefined) {
        yield change
        continue
      }
      if (cursor.ended) return
      await wait.ready(cursor)
    }
  } finally {
    wait.end()
  }
}

export interface CursorWait {
  /** Resolves when the cursor has a change or an error, at its end, and when the signal aborts. One at a time. */
  ready(cursor: ChangeCursor<unknown>): Promise<void>
  end(): void
}

/** Waits with one listener of `signal` until `end`: a fleet that connects wakes thirty loops hundreds of times a second. */
export function cursorWait(signal: AbortSignal): CursorWait {
  let resume = () => {}
  const aborted = () => resume()
  signal.addEventListener('abort', aborted, { once: true })
  return {
    async ready(cursor) {
      if (signal.aborted) return
      let cancel = () => {}
      await new Promise<void>((resolve) => {
        resume = resolve
        cancel = cursor.onReady(resolve)
      })
      cancel()
    },
    end: () => signal.removeEventListener('abort', aborted),
  }
}
