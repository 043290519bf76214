/** Waiting for the world to become as it should: by looking again, never by sleeping and hoping. */
import { setTimeout as pause } from 'node:timers/promises'
import { patience } from './patience.ts'

export type Patience = {
  readonly withinMs?: number
  /** Default: 200, and a sixth of the time that has passed once that is longer, up to a second. */
  readonly everyMs?: number
  /** Thrown at once: looking again would be in vain. */
  readonly giveUp?: (error: unknown) => boolean
}

/**
 * What `look` gives once it gives something. Looks every `everyMs`; after `withinMs` it throws, naming `what` and the
 * last error seen. By default it looks less often the longer it lasts: a look often starts kubectl, a quarter of a
 * second of the CPU time that what is waited for needs too.
 */
export async function eventually<T>(
  what: string,
  look: () => Promise<T | undefined | false> | T | undefined | false,
  { withinMs = 90_000, everyMs, giveUp = () => false }: Patience = {},
): Promise<T> {
  const longestMs = withinMs * patience
  const beganMs = performance.now()
  let last: unknown
  let passedMs = 0
  do {
    try {
      const seen = await look()
      if (seen !== undefined && seen !== false) return seen
      last = undefined
    } catch (error) {
      if (giveUp(error)) throw error
      last = error
    }
    passedMs = performance.now() - beganMs
    await pause(everyMs ?? Math.min(1_000, Math.max(200, passedMs / 6)))
  } while (passedMs < longestMs)
  const because = last instanceof Error ? ` (${last.message})` : ''
  throw new Error(`Waited ${longestMs} ms in vain: ${what}${because}`, { cause: last })
}
