/** Reads a stream of bytes in larger pieces where its sender writes small ones: each costs a turn of the event loop and a frame. */
import type { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'

/** A piece that comes so soon after the one before was taken is part of a longer text or file; answers to a client take longer. */
const followsWithinMs = 2
/** What the sender writes meanwhile waits in the socket, and is read at once. */
const gatherMs = 1
/** Half of what Node.js reads at a time: there is little to gain with more. */
const largeBytes = 32 * 1024

/** `wait` resolves after `gatherMs`. */
export type GatherTime = { readonly nowMs: () => number; readonly wait: () => Promise<void> }
const realTime: GatherTime = { nowMs: () => performance.now(), wait: () => delay(gatherMs) }

/**
 * The pieces until the stream ends; rejects with its error. The first ones are given as they come, so that a single answer is not
 * delayed. The stream is not destroyed when the reader stops.
 */
export function gatheredPieces(stream: Readable, time?: GatherTime): AsyncGenerator<Buffer> {
  return gathered(stream.iterator({ destroyOnReturn: false }), time)
}

/** The same, of pieces that are read one at a time. */
export async function* gathered(
  pieces: AsyncIterable<Buffer>,
  { nowMs, wait }: GatherTime = realTime,
): AsyncGenerator<Buffer> {
  let askedMs = Number.NEGATIVE_INFINITY
  for await (const piece of pieces) {
    const isFollowing = nowMs() - askedMs < followsWithinMs
    yield piece
    if (isFollowing && piece.length < largeBytes) await wait()
    askedMs = nowMs()
  }
}
