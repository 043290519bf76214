/** Keys to visit. A key added many times before its visit is visited once; a key is never visited twice at a time. */
import { backoffMs } from './backoff.ts'
import type { Clock } from './clock.ts'
import { dueTimes } from './due-times.ts'

export interface WorkQueue {
  /** Visit this key soon. While it is being visited: once more afterwards. */
  add(key: string): void
  /** Visit it after `ms`, or at its earlier time. */
  addAfter(key: string, ms: number): void
  /** Keys as they come due, until `signal` aborts. Every key given must be ended by `done` or `failed`. */
  keys(signal: AbortSignal): AsyncIterable<string>
  done(key: string, requeueAfterMs?: number): void
  /** Puts the key back with a growing wait, and returns it. */
  failed(key: string): number
  /** Keys that are ready for a visit. */
  readonly depth: number
  /** Keys added, without those that waited already; visits that failed. */
  readonly adds: number
  readonly retries: number
  /** How long the key that was taken last had waited. */
  readonly lastWaitMs: number
}

const retry = { firstMs: 200, maxMs: 30_000 }

/** Why a timer ended. It is never read: without a reason Node.js makes an error for each abort, with its stack. */
const replaced = 'replaced'

export function workQueue(clock: Clock, random: () => number = clock.random ?? Math.random): WorkQueue {
  /** Since when, on the monotonic clock. */
  const ready = new Map<string, number>()
  const visiting = new Set<string>()
  const again = new Set<string>()
  const failures = new Map<string, number>()
  const planned = plannedKeys(clock, (key) => add(key))
  const counts = { adds: 0, retries: 0, lastWaitMs: 0 }
  let wake: () => void = () => undefined

  /** Nothing is left to plan: it is visited soon, or once more after its visit. */
  const makeDue = (key: string) => {
    planned.delete(key)
    if (visiting.has(key)) again.add(key)
    else if (!ready.has(key)) ready.set(key, clock.monotonicMs())
    wake()
  }

  const add = (key: string) => {
    if (!ready.has(key) && !again.has(key)) counts.adds++
    makeDue(key)
  }

  const addAfter = (key: string, ms: number) => {
    if (ms <= 0) return add(key)
    if (ready.has(key)) return
    // A date that cannot be read must hold back its own key only: among the due times it would be neither before nor after the others.
    planned.add(key, Number.isNaN(ms) ? retry.maxMs : ms)
  }

  const ended = (key: string) => {
    visiting.delete(key)
    if (again.delete(key)) makeDue(key)
  }

  return {
    add,
    addAfter,
    async *keys(signal) {
      const stop = () => {
        planned.clear()
        wake()
      }
      signal.addEventListener('abort', stop, { once: true })
      try {
        // One iterator for many keys: a new one would pass over all places of keys that were taken before.
        let order = ready.keys()
        while (!signal.aborted) {
          const { value: key, done } = order.next()
          if (done === true) {
            if (ready.size === 0) {
              await new Promise<void>((resolve) => {
                wake = resolve
              })
            }
            order = ready.keys()
            continue
          }
          counts.lastWaitMs = clock.monotonicMs() - (ready.get(key) ?? 0)
          ready.delete(key)
          visiting.add(key)
          yield key
        }
      } finally {
        signal.removeEventListener('abort', stop)
        stop()
      }
    },
    done(key, requeueAfterMs) {
      failures.delete(key)
      ended(key)
      if (requeueAfterMs !== undefined) addAfter(key, requeueAfterMs)
    },
    failed(key) {
      counts.retries++
      const count = failures.get(key) ?? 0
      failures.set(key, count + 1)
      const ms = backoffMs(count, retry, random)
      ended(key)
      addAfter(key, ms)
      return Math.round(ms)
    },
    get depth() {
      return ready.size
    },
    get adds() {
      return counts.adds
    },
    get retries() {
      return counts.retries
    },
    get lastWaitMs() {
      return counts.lastWaitMs
    },
  }
}

/** Keys with a due time, behind one timer: thousands are planned together when a fleet connects. `due` is called with each. */
function plannedKeys(clock: Clock, due: (key: string) => void) {
  const times = dueTimes()
  /** For the first of the times, or an earlier one. */
  let timer: { readonly dueMs: number; readonly cancel: AbortController } | undefined

  const setTimer = () => {
    const dueMs = times.nextMs()
    if (dueMs === undefined || (timer !== undefined && timer.dueMs <= dueMs)) return
    timer?.cancel.abort(replaced)
    const own = { dueMs, cancel: new AbortController() }
    timer = own
    void clock.sleep(dueMs - clock.monotonicMs(), own.cancel.signal).then(() => {
      if (timer !== own) return
      timer = undefined
      for (const key of times.take(clock.monotonicMs())) due(key)
      setTimer()
    })
  }

  return {
    /** The key is due after `ms`, or at its earlier time. */
    add(key: string, ms: number) {
      times.advance(key, clock.monotonicMs() + ms)
      setTimer()
    },
    delete: times.delete,
    clear() {
      times.take(Number.POSITIVE_INFINITY)
      timer?.cancel.abort(replaced)
      timer = undefined
    },
  }
}
