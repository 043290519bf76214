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

const sortedAtOnce = 256

/** The items in order, as `toSorted` gives them. */
export function* sortedInSteps<T extends object | string>(
  items: readonly T[],
  compare: (a: T, b: T) => number,
): Steps<readonly T[]> {
  let runs: (readonly T[])[] = []
  for (let at = 0; at < items.length; at += sortedAtOnce) {
    yield
    runs.push(items.slice(at, at + sortedAtOnce).sort(compare))
  }
  while (runs.length > 1) {
    const longer: (readonly T[])[] = []
    for (let at = 0; at < runs.length; at += 2) longer.push(yield* merged(runs[at] ?? [], runs[at + 1] ?? [], compare))
    runs = longer
  }
  return runs[0] ?? []
}

/** Equal items keep their order: those of `first` come first. */
function* merged<T extends object | string>(
  first: readonly T[],
  second: readonly T[],
  compare: (a: T, b: T) => number,
): Steps<readonly T[]> {
  const result: T[] = []
  let [at, from] = [0, 0]
  for (;;) {
    if (result.length % sortedAtOnce === 0) yield
    const one = first[at]
    const other = second[from]
    if (one === undefined || other === undefined) break
    const isFirst = compare(one, other) <= 0
    result.push(isFirst ? one : other)
    if (isFirst) at++
    else from++
  }
  return result.concat(first.slice(at), second.slice(from))
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
