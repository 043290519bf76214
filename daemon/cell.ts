/** A value that loops share: one of them writes it, any number read it and are notified of changes. */
import type { Clock } from './clock.ts'

export interface Reader<T> {
  get(): T
  /** Calls `listener` after each change, synchronously and in the order of registration. Returns the function that removes it. */
  onChange(listener: (value: T) => void): () => void
  /** Calls `listener` with the current value at once, then as `onChange`. */
  subscribe(listener: (value: T) => void): () => void
}

/** Held by the one writer; everyone else holds the `Reader`. */
export interface Cell<T> extends Reader<T> {
  /** Stores the value. Listeners are called if it differs from the last one. An error of a listener is thrown to the writer. */
  set(value: T): void
}

/** `isSame` decides whether listeners are called; default: identity. The new value is stored in either case. */
export function cell<T>(initial: T, isSame: (before: T, after: T) => boolean = Object.is): Cell<T> {
  let value = initial
  const listeners = new Set<(value: T) => void>()

  const onChange = (listener: (value: T) => void) => {
    // A function of its own: the same listener may be registered twice.
    const own = (next: T) => listener(next)
    listeners.add(own)
    return () => void listeners.delete(own)
  }

  return {
    get: () => value,
    set(next) {
      const before = value
      value = next
      if (isSame(before, next)) return
      for (const listener of [...listeners]) listener(value)
    },
    onChange,
    subscribe(listener) {
      listener(value)
      return onChange(listener)
    },
  }
}

/** Resolves with the first value that is not undefined. */
export function firstValue<T>(reader: Reader<T | undefined>): Promise<T> {
  return new Promise((resolve) => {
    let stop = () => {}
    const take = (value: T | undefined) => {
      if (value === undefined) return
      stop()
      resolve(value)
    }
    stop = reader.onChange(take)
    take(reader.get())
  })
}

/** Resolves at the first change of one of these after which `isDone`, and after `ms` in any case. No listener is left then. */
export async function changeWithin(
  ms: number,
  readers: readonly { onChange(listener: () => void): () => void }[],
  isDone: () => boolean,
  clock: Pick<Clock, 'sleep'>,
): Promise<void> {
  const enough = new AbortController()
  const stops = readers.map((reader) => reader.onChange(() => isDone() && enough.abort('done')))
  await clock.sleep(ms, enough.signal)
  for (const stop of stops) stop()
}
