/** Deadlines of outgoing calls. Every call has one; see CONTRIBUTING. */
import { withOwnSignal } from './aborted.ts'
import { type Clock, longestTimerMs, systemClock } from './clock.ts'

/** A deadline has passed. `code` as of a socket that got no answer. */
export class TooLate extends Error {
  readonly code = 'ETIMEDOUT'
}

/**
 * `work` with a signal that aborts with `signal`, and after `ms`. It then rejects with a `TooLate` that reads
 * `WHAT within N s`, also where the work does not react to its signal.
 */
export function withDeadline<T>(
  ms: number,
  signal: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<T>,
  what = 'Not done',
): Promise<T> {
  return withOwnSignal(signal, async (own) => {
    // Made when it is needed: an error costs as much as the rest, for its stack.
    let late: TooLate | undefined
    let timer: NodeJS.Timeout | undefined
    const deadline = new Promise<never>((_, reject) => {
      const giveUp = () => {
        late = tooLate(ms, what)
        reject(late)
        own.abort(late)
      }
      timer = setTimeout(giveUp, Math.min(ms, longestTimerMs))
    })
    try {
      return await Promise.race([work(own.signal), deadline])
    } catch (error) {
      throw late !== undefined && own.signal.reason === late ? late : error
    } finally {
      clearTimeout(timer)
    }
  })
}

/** For work that cannot be aborted: rejects with a `TooLate` after `ms`. The work continues, and its result is dropped. */
export async function within<T>(ms: number, what: string, work: Promise<T>, clock?: Pick<Clock, 'sleep'>): Promise<T> {
  const late = Symbol('late')
  const result = await withinOr(ms, late, work, clock)
  if (result === late) throw tooLate(ms, what)
  return result
}

/** The same, with `otherwise` in the place of an error. What `work` rejects with is passed on. */
export async function withinOr<T, O>(
  ms: number,
  otherwise: O,
  work: Promise<T>,
  clock: Pick<Clock, 'sleep'> = systemClock,
): Promise<T | O> {
  const over = new AbortController()
  try {
    return await Promise.race([work, clock.sleep(ms, over.signal).then(() => otherwise)])
  } finally {
    over.abort('done')
  }
}

/**
 * A call that hangs holds a thread. While one is under way, more callers for the same path wait for its result instead of
 * taking another thread.
 */
export function onceAtATime<T>(call: (path: string) => Promise<T>): (path: string) => Promise<T> {
  const underWay = new Map<string, Promise<T>>()
  return (path) => {
    const result = underWay.get(path) ?? call(path).finally(() => underWay.delete(path))
    underWay.set(path, result)
    return result
  }
}

function tooLate(ms: number, what: string): TooLate {
  return new TooLate(`${what} within ${ms / 1000} s`)
}
