/** The changes at a cursor, one after another, as an iteration that waits for the next. */
import type { ChangeCursor } from './store.ts'

/** Ends without an error when `signal` aborts or the store closes. Throws what the cursor throws. */
export async function* eachChange<Event>(cursor: ChangeCursor<Event>, signal: AbortSignal): AsyncGenerator<Event> {
  let resume = () => {}
  const aborted = () => resume()
  signal.addEventListener('abort', aborted, { once: true })
  try {
    while (!signal.aborted) {
      const change = cursor.next()
      if (change !== undefined) {
        yield change
        continue
      }
      if (cursor.ended) return
      let cancel = () => {}
      await new Promise<void>((resolve) => {
        resume = resolve
        cancel = cursor.onReady(resolve)
      })
      cancel()
    }
  } finally {
    signal.removeEventListener('abort', aborted)
  }
}

/** Resolves when the cursor has a change or an error, at its end, and when `signal` aborts. */
export async function readyAt(cursor: ChangeCursor<unknown>, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  let cancel = () => {}
  let resume = () => {}
  await new Promise<void>((resolve) => {
    resume = resolve
    signal.addEventListener('abort', resume, { once: true })
    cancel = cursor.onReady(resume)
  })
  signal.removeEventListener('abort', resume)
  cancel()
}
