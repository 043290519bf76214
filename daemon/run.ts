/** Runs a program's loops together: the first failure, or the signal, ends all of them. */
import { setMaxListeners } from 'node:events'
import { withOwnSignal } from './aborted.ts'
import type { Log } from './log.ts'

export type Loop = { readonly name: string; readonly run: (signal: AbortSignal) => Promise<void> }

/**
 * Resolves when every loop has ended after `signal`; rejects with the first loop's error after the others have ended.
 * A loop that ends by itself while nothing asked it to is a failure too.
 */
export async function runLoops(loops: readonly Loop[], signal: AbortSignal, log: Log): Promise<void> {
  const failed = new AbortController()
  const together = AbortSignal.any([signal, failed.signal])
  setMaxListeners(0, together) // every loop listens: many are not a leak
  let first: Error | undefined
  await Promise.all(
    loops.map(async ({ name, run }) => {
      try {
        // A signal of its own: Node walks through all listeners of a signal to add one, and every wait of a loop adds one.
        await withOwnSignal(together, ({ signal: own }) => {
          setMaxListeners(0, own)
          return run(own)
        })
        if (!together.aborted) throw new Error('It ended by itself')
      } catch (cause) {
        first ??= new Error(`Loop ${name} failed`, { cause })
        failed.abort()
      }
      log.debug('Loop ended', { loop: name })
    }),
  )
  if (first !== undefined) throw first
}
