/** Writes in batches that double as long as they succeed: a refusal that concerns all of them is met once, not a thousand times. */

export type SlowStartResult = {
  readonly done: number
  /** The first error of the batch that was the last; undefined: all were done. */
  readonly error: unknown
}

/**
 * Calls `act` up to `count` times; the calls of one batch are made together (slowStartBatch in pkg/controller/replicaset). `act`
 * resolves to false where nothing can be done, which is no error: the batch is then the last.
 */
export async function slowStart(count: number, act: (index: number) => Promise<boolean>): Promise<SlowStartResult> {
  let done = 0
  for (let batch = Math.min(count, 1); batch > 0; batch = Math.min(2 * batch, count - done)) {
    const first = done
    const results = await Promise.allSettled(Array.from({ length: batch }, (_, index) => act(first + index)))
    const failed = results.filter((result) => result.status === 'rejected')
    const useless = results.filter((result) => result.status === 'fulfilled' && !result.value)
    done += batch - failed.length - useless.length
    if (failed[0] !== undefined) return { done, error: failed[0].reason }
    if (useless.length > 0) break
  }
  return { done, error: undefined }
}
