/** Waiting for the world to become as it should: by looking again, never by sleeping and hoping. */
import { setTimeout as pause } from 'node:timers/promises'
import { patience } from './patience.ts'

export type Patience = {
  readonly withinMs?: number
  readonly everyMs?: number
  /** Thrown at once: looking again would be in vain. */
  readonly giveUp?: (error: unknown) => boolean
}

/**
 * What `look` gives once it gives something. Looks every `everyMs`; after `withinMs` it throws, naming `what` and the
 * last error seen.
 */
export async function eventually<T>(
  what: string,
  look: () => Promise<T | undefined | false> | T | undefined | false,
  { withinMs = 90_000, everyMs = 200, giveUp = () => false }: Patience = {},
): Promise<T> {
  const longestMs = withinMs * patience
  const end = performance.now() + longestMs
  let last: unknown
  do {
    try {
      const seen = await look()
      if (seen !== undefined && seen !== false) return seen
      last = undefined
    } catch (error) {
      if (giveUp(error)) throw error
      last = error
    }
    await pause(everyMs)
  } while (performance.now() < end)
  const because = last instanceof Error ? ` (${last.message})` : ''
  throw new Error(`Waited ${longestMs} ms in vain: ${what}${because}`, { cause: last })
}
