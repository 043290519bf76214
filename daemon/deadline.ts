/** Deadlines of outgoing calls. Every call has one; see CONTRIBUTING. */
import { withOwnSignal } from './aborted.ts'
import { type Clock, longestTimerMs, systemClock } from './clock.ts'

/** A deadline is waited for in this many steps. */
const steps = 4
/** A step that ends later than by half of it and by this is repeated. */
const usualDelayMs = 20

/**
 * Calls `passed` after `ms`, unless the function that it returns is called before. It is the other side's time: a step in which this
 * process or its machine stood still is repeated, and before `passed` is called sockets are read, since Node.js calls timers that are due
 * first. So an answer that has arrived counts. At most as many steps are repeated as there are: a process that is always late
 * gives up, too.
 */
export function startDeadline(ms: number, passed: () => void, clock: DeadlineClock = systemClock): () => void {
  const timers = clock === systemClock ? systemTimers : timersOf(clock)
  const stepMs = Math.min(Math.ceil(ms / steps), longestTimerMs)
  const toleratedMs = Math.max(stepMs / 2, usualDelayMs)
  let leftMs = ms
  let repeats = steps
  let stop = () => {}
  const next = () => {
    if (leftMs <= 0) {
      stop = afterReading(passed)
      return
    }
    const waitMs = Math.min(leftMs, stepMs)
    const dueMs = timers.nowMs() + waitMs
    stop = timers.start(waitMs, () => {
      if (repeats > 0 && timers.nowMs() - dueMs > toleratedMs) repeats -= 1
      else leftMs -= waitMs
      next()
    })
  }
  next()
  return () => stop()
}

type DeadlineClock = Pick<Clock, 'sleep' | 'monotonicMs'>

/** `start` returns what stops the timer. */
type Timers = { nowMs(): number; start(ms: number, wake: () => void): () => void }

/** Without a promise and a signal for each call. */
const systemTimers: Timers = {
  nowMs: systemClock.monotonicMs,
  start(ms, wake) {
    const timer = setTimeout(wake, ms)
    return () => clearTimeout(timer)
  },
}

function timersOf(clock: DeadlineClock): Timers {
  return {
    nowMs: () => clock.monotonicMs(),
    start(ms, wake) {
      const stopped = new AbortController()
      void clock.sleep(ms, stopped.signal).then(() => {
        if (!stopped.signal.aborted) wake()
      })
      return () => stopped.abort('stopped')
    },
  }
}

/** After two turns of the event loop: in the first one bytes are read, in the second one streams end that they complete. */
function afterReading(act: () => void): () => void {
  let turn = setImmediate(() => {
    turn = setImmediate(act)
  })
  return () => clearImmediate(turn)
}

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
    let stop = () => {}
    const deadline = new Promise<never>((_, reject) => {
      stop = startDeadline(ms, () => {
        late = tooLate(ms, what)
        reject(late)
        own.abort(late)
      })
    })
    try {
      return await Promise.race([work(own.signal), deadline])
    } catch (error) {
      throw late !== undefined && own.signal.reason === late ? late : error
    } finally {
      stop()
    }
  })
}

/** For work that cannot be aborted: rejects with a `TooLate` after `ms`. The work continues, and its result is dropped. */
export async function within<T>(ms: number, what: string, work: Promise<T>, clock?: DeadlineClock): Promise<T> {
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
  clock?: DeadlineClock,
): Promise<T | O> {
  let stop = () => {}
  const over = new Promise<O>((resolve) => {
    stop = startDeadline(ms, () => resolve(otherwise), clock)
  })
  try {
    return await Promise.race([work, over])
  } finally {
    stop()
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
