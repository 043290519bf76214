/** Decides how long changes are collected before they are published to all nodes. */

/** When a message was published last, in milliseconds of the monotonic clock, and how long its changes were collected. */
export type Published = { readonly atMs: number; readonly waitedMs: number }

/** The pods of a Deployment become ready one after the other. */
const leastMs = 200
/** Each message is sent to every node: under lasting churn one in two seconds, unless the fleet and the message are small. */
const mostMs = 2_000
/** With the time that a node needs to apply a message, the last change is in place within a second. */
const leastMostMs = 700
/** Under lasting churn waits grow above 10 MB/s: less than a tenth of the link of a Raspberry Pi 4. */
const bytesPerMs = 10_000
/** After so long without a message the churn is over. */
const calmMs = 5_000

/**
 * How long to wait from now on: twice as long as before the last message, unless that is some time ago. `longestMs`: at the most, while
 * changes last.
 */
export function publishWaitMs(last: Published | undefined, nowMs: number, longestMs = mostMs): number {
  if (last === undefined || nowMs - last.atMs >= calmMs) return leastMs
  return Math.min(longestMs, Math.max(leastMs, last.waitedMs * 2))
}

/** The longest wait of messages that together have so many bytes, where each of so many nodes gets all of them. */
export function longestWaitMs(nodes: number, bytes: number): number {
  return Math.min(mostMs, Math.max(leastMostMs, (nodes * bytes) / bytesPerMs))
}
