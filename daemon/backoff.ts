/** How long to wait before trying again. */

export type BackoffSettings = { readonly firstMs: number; readonly maxMs: number }

/**
 * The wait before try number `failures` + 1: anything from nothing to twice as long each time, up to `maxMs` (full
 * jitter), so that a fleet that lost its controller does not come back in one moment.
 */
export function backoffMs(failures: number, { firstMs, maxMs }: BackoffSettings, random: () => number): number {
  return random() * Math.min(maxMs, firstMs * 2 ** Math.min(failures, 30))
}
