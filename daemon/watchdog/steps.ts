/** Long work without I/O in steps: who runs it lets other work be done between two of them. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Clock } from '../clock.ts'

/** Yields where a pause is possible, and returns the result. */
export type Steps<T> = Generator<undefined, T, undefined>

/** The result of all steps, without a pause. */
export function finished<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
  }
}

export interface Slices {
  /** Other work was done just now: the next pause is due after a whole slice. */
  begin(): void
  /** Pauses between two steps when those since the last pause took a slice. */
  run<T>(steps: Steps<T>): Promise<T>
}

export function slices(sliceMs: number, { monotonicMs }: Pick<Clock, 'monotonicMs'>): Slices {
  let sinceMs = monotonicMs()
  const begin = () => {
    sinceMs = monotonicMs()
  }
  return {
    begin,
    async run(steps) {
      for (;;) {
        const { done, value } = steps.next()
        if (done === true) return value
        if (monotonicMs() - sinceMs < sliceMs) continue
        await nextTurn()
        begin()
      }
    },
  }
}
