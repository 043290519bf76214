/** The wait before an operation is retried. */

export type BackoffSettings = { readonly firstMs: number; readonly maxMs: number }

/** Twice as long after each failure, up to `maxMs`. */
export function longestBackoffMs(failures: number, { firstMs, maxMs }: BackoffSettings): number {
  return Math.min(maxMs, firstMs * 2 ** Math.min(failures, 30))
}

/**
 * The wait before attempt number `failures` + 1: anything from nothing to the longest (full jitter), so that the nodes of a
 * fleet that lost its controller do not come back in one moment.
 */
export function backoffMs(failures: number, settings: BackoffSettings, random: () => number): number {
  return random() * longestBackoffMs(failures, settings)
}
