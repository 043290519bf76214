/** Runs a program's loops together: the first failure, or the signal, ends all of them. */
import { setMaxListeners } from 'node:events'
import { withOwnSignal } from './aborted.ts'
import type { Log } from './log.ts'

export type Loop = { readonly name: string; readonly run: (signal: AbortSignal) => Promise<void> }

/** Loops that run already. `running` rejects when one of them fails. */
export type StartedLoops = {
  readonly running: Promise<void>
  /** Ends them with `signal`, as a loop that stands for all of them. */
  readonly run: Loop['run']
}

/** Starts loops that have to read something before the other loops of the program start. */
export function startLoops(loops: readonly Loop[], log: Log): StartedLoops {
  const stopping = new AbortController()
  const running = runLoops(loops, stopping.signal, log)
  running.catch(() => undefined) // `run`, which is called later, rejects with it
  return {
    running,
    async run(signal) {
      const stop = () => stopping.abort()
      if (signal.aborted) stop()
      signal.addEventListener('abort', stop, { once: true })
      try {
        await running
      } finally {
        signal.removeEventListener('abort', stop)
      }
    },
  }
}

/**
 * Resolves when every loop has ended after `signal`; rejects with the first loop's error after the others have ended.
 * A loop that ends by itself while nothing asked it to is a failure too.
 */
export async function runLoops(loops: readonly Loop[], signal: AbortSignal, log: Log): Promise<void> {
  let first: Error | undefined
  // Not AbortSignal.any: Node 20 keeps such a signal while it has listeners, and with it all that the loops refer to.
  await withOwnSignal(signal, async (together) => {
    setMaxListeners(0, together.signal) // every loop listens: many are not a leak
    await Promise.all(
      loops.map(async ({ name, run }) => {
        try {
          // A signal of its own: Node walks through all listeners of a signal to add one, and every wait of a loop adds one.
          await withOwnSignal(together.signal, ({ signal: own }) => {
            setMaxListeners(0, own)
            return run(own)
          })
          if (!together.signal.aborted) throw new Error('It ended by itself')
        } catch (cause) {
          first ??= new Error(`Loop ${name} failed`, { cause })
          together.abort()
        }
        log.debug('Loop ended', { loop: name })
      }),
    )
  })
  if (first !== undefined) throw first
}
