/** Writes in batches that double as long as they succeed: a refusal that concerns all of them is met once, not a thousand times. */

import { inParallel } from '../../../daemon/in-parallel.ts'
import { yieldTurn } from '../../../daemon/limits/turn-limit.ts'

/** What the admission of this many pods takes is a turn of the event loop. */
const startedAtOnce = 16

export type SlowStartResult = {
  readonly done: number
  /** The first error of the batch that was the last; undefined: all were done. */
  readonly error: unknown
}

/**
 * Calls `act` up to `count` times; the calls of one batch are made together (slowStartBatch in pkg/controller/replicaset). `act`
 * resolves to false where nothing can be done, which is not an error: the batch is then the last.
 */
export async function slowStart(count: number, act: (index: number) => Promise<boolean>): Promise<SlowStartResult> {
  let done = 0
  for (let batch = Math.min(count, 1); batch > 0; batch = Math.min(2 * batch, count - done)) {
    const first = done
    const errors = new Map<number, unknown>()
    let useless = 0
    await inParallel(Array(batch).keys(), startedAtOnce, async (index) => {
      await yieldTurn()
      try {
        if (!(await act(first + index))) useless += 1
      } catch (error) {
        errors.set(index, error)
      }
    })
    done += batch - errors.size - useless
    if (errors.size > 0) return { done, error: errors.get(Math.min(...errors.keys())) }
    if (useless > 0) break
  }
  return { done, error: undefined }
}
