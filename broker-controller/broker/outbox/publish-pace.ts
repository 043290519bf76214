/** Decides how long changes are collected before they are published to all nodes. */

/** When a message was published last, in milliseconds of the monotonic clock, and how long its changes were collected. */
export type Published = { readonly atMs: number; readonly waitedMs: number }

/** The pods of a Deployment become ready one after the other. */
const leastMs = 200
/** Each message is sent to every node: under lasting churn one in two seconds. */
const mostMs = 2_000
/** After so long without a message the churn is over. */
const calmMs = 5_000

/** How long to wait from now on: twice as long as before the last message, unless that is some time ago. */
export function publishWaitMs(last: Published | undefined, nowMs: number): number {
  if (last === undefined || nowMs - last.atMs >= calmMs) return leastMs
  return Math.min(mostMs, Math.max(leastMs, last.waitedMs * 2))
}
