/** The bytes of a session as a stream: one channel of its frames in each direction. */
import { Duplex } from 'node:stream'
import { sessionChannels } from '../../api/sessions.ts'
import type { SessionFrame } from './frame-decoder.ts'
import type { SessionFrames } from './session-frames.ts'

export type DuplexChannels = {
  /** What is read; the stream also ends where the other end announces the end of this channel. */
  readonly receive: number
  /** What is written; its end is announced. */
  readonly send: number
  /** A frame of another channel came. Gives `ended` where nothing follows; throws where the other end reports a failure. */
  readonly other?: (frame: SessionFrame) => 'ended' | undefined
}

/**
 * It takes a frame when there is room for it, and sends no faster than the other end reads. Destroying it destroys the frames.
 */
export function sessionDuplex(frames: SessionFrames, { receive, send, other }: DuplexChannels): Duplex {
  let isWanted = false
  let isReading = false
  const endsWith = (frame: SessionFrame): boolean => {
    if (frame.channel === receive) return false
    const isEnd = frame.channel === sessionChannels.end && frame.payload[0] === receive
    return isEnd || other?.(frame) === 'ended'
  }
  const endReading = () => {
    if (!stream.destroyed) stream.push(null)
  }
  const pass = async (): Promise<void> => {
    isReading = true
    while (isWanted) {
      const frame = await frames.next()
      if (frame === undefined || endsWith(frame)) {
        // isReading stays true: nothing is read after the end.
        endReading()
        return
      }
      // An empty piece would end the turn of the reader.
      if (frame.channel !== receive || frame.payload.length === 0) continue
      isWanted = false
      // The reader may call for more from within.
      if (stream.push(frame.payload)) isWanted = true
    }
    isReading = false
  }
  const stream: Duplex = new Duplex({
    allowHalfOpen: true,
    read() {
      isWanted = true
      if (!isReading) pass().catch((error: Error) => void stream.destroy(error))
    },
    write(chunk: Buffer, _, done) {
      frames.send(send, chunk).then(() => done(), done)
    },
    writev(chunks, done) {
      const all = Buffer.concat(chunks.map(({ chunk }) => chunk as Buffer))
      frames.send(send, all).then(() => done(), done)
    },
    final(done) {
      frames.send(sessionChannels.end, Buffer.of(send)).then(() => done(), done)
    },
    destroy(error, done) {
      frames.destroy()
      done(error)
    },
  })
  return stream
}
