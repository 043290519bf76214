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

export interface ConnectionFailures {
  /** For the wait before the next attempt. */
  readonly count: number
  /** An attempt failed. */
  refused(): void
  /** A connection ended after this time. */
  ended(lastedMs: number): void
  reset(): void
}

/**
 * The failures of a connection that is opened again each time. Those of attempts count until one succeeds: otherwise the second restart
 * of a server within seconds would begin with the wait to which the first one had led. A connection that ends before `stableMs` counts
 * until one lasts longer, so that a server that closes each one at once gets fewer and fewer attempts.
 */
export function connectionFailures(stableMs: number): ConnectionFailures {
  let attempts = 0
  let short = 0
  return {
    get count() {
      return attempts + short
    },
    refused() {
      attempts++
    },
    ended(lastedMs) {
      attempts = 0
      short = lastedMs >= stableMs ? 0 : short + 1
    },
    reset() {
      attempts = 0
      short = 0
    },
  }
}
