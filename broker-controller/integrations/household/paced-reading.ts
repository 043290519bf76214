/** What a household's broker may send in a time: any client of it can flood the topics that the controller subscribes to. */
import { Duplex, Transform, type TransformCallback } from 'node:stream'
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'

export type Pace = {
  /** What retained messages of a large fleet have together. */
  readonly burstBytes: number
  readonly bytesPerSecond: number
  /** In one turn of the event loop: hundreds of the smallest messages. */
  readonly bytesAtOnce: number
  /** That a message counts as, beside its own: it costs more to take in than to read. */
  readonly bytesPerMessage: number
}

export const householdPace: Pace = {
  burstBytes: 16 * 1024 ** 2,
  bytesPerSecond: 256 * 1024,
  bytesAtOnce: 16 * 1024,
  bytesPerMessage: 256,
}

export type PacedReading = {
  readonly stream: Duplex
  /** A message was read. */
  arrived(): void
}

/** The stream, which is read no faster than `pace`. More waits at the other side. */
export function pacedReading(stream: Duplex, pace: Pace = householdPace): PacedReading {
  let left = pace.burstBytes
  let countedMs = performance.now()
  const allow = async (bytes: number) => {
    const now = performance.now()
    left = Math.min(pace.burstBytes, left + ((now - countedMs) * pace.bytesPerSecond) / 1000)
    countedMs = now
    left -= bytes
    if (left < 0) await pause((-left / pace.bytesPerSecond) * 1000, undefined, { ref: false })
    else await nextTurn()
  }
  const paced: Transform = new Transform({
    readableHighWaterMark: pace.bytesAtOnce,
    writableHighWaterMark: pace.bytesAtOnce,
    transform(chunk: Buffer, _encoding, done) {
      void inPieces(chunk, done)
    },
  })
  const inPieces = async (chunk: Buffer, done: TransformCallback) => {
    for (let start = 0; start < chunk.length && !paced.destroyed; start += pace.bytesAtOnce) {
      const piece = chunk.subarray(start, start + pace.bytesAtOnce)
      await allow(piece.length)
      if (!paced.destroyed) paced.push(piece)
    }
    done()
  }
  stream.pipe(paced)
  stream.once('close', () => paced.destroy())
  const both = Duplex.from({ readable: paced, writable: stream })
  // The stream that is paced reports its own end.
  both.on('error', () => undefined)
  return {
    stream: both,
    arrived() {
      left -= pace.bytesPerMessage
    },
  }
}
