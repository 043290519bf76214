/** The frames of a session (`api/sessions.ts`) on a stream: sent no faster than the other end reads, and read one at a time. */
import type { Duplex } from 'node:stream'
import { longestFrame, sessionChannels } from '../../api/sessions.ts'

export type SessionFrame = { readonly channel: number; readonly payload: Buffer }

export interface SessionFrames {
  /** The next frame that is no ping; undefined: the stream ended between two frames. Rejects where it was cut, or carries no frames. */
  next(): Promise<SessionFrame | undefined>
  /** Resolves when more may be sent. Long payloads go out in several frames. Rejects when the stream is gone. */
  send(channel: number, payload: Uint8Array): Promise<void>
  sendText(channel: number, text: string): Promise<void>
  /** Sends what waits, and ends this side of the stream. */
  end(): void
  /** Ends the stream at once. */
  destroy(): void
}

const headBytes = 4
/** Bytes that wait to be sent: enough to keep the connection busy while the next frame comes. */
const mostUnsent = 2 * longestFrame.data

/** It becomes the only reader and the only writer of the stream. */
export function sessionFrames(stream: Duplex): SessionFrames {
  // Ends of the stream are seen by the pending read or write.
  stream.on('error', () => undefined)
  const incoming = framesOf(stream)

  const write = async (channel: number, payload: Uint8Array) => {
    if (stream.destroyed || stream.writableEnded) throw new Error('The stream of the session is closed')
    const head = Buffer.alloc(headBytes)
    head.writeUInt32BE(payload.length)
    head.writeUInt8(channel)
    stream.cork()
    stream.write(head)
    if (payload.length > 0) stream.write(payload)
    stream.uncork()
    if (stream.writableLength >= mostUnsent && stream.writableNeedDrain) await drained(stream)
  }

  return {
    async next() {
      for (;;) {
        const { value, done } = await incoming.next()
        if (done) return undefined
        if (value.channel !== sessionChannels.ping) return value
      }
    },
    async send(channel, payload) {
      const most = longestOf(channel)
      for (let at = 0; at === 0 || at < payload.length; at += most) {
        await write(channel, payload.subarray(at, at + most))
      }
    },
    sendText: (channel, text) => write(channel, Buffer.from(text)),
    end: () => void stream.end(),
    destroy: () => void stream.destroy(),
  }
}

function longestOf(channel: number): number {
  return channel === sessionChannels.request ? longestFrame.request : longestFrame.data
}

function drained(stream: Duplex): Promise<void> {
  return new Promise((resolve, reject) => {
    const drain = () => {
      stream.off('close', close)
      resolve()
    }
    const close = () => {
      stream.off('drain', drain)
      reject(new Error('The stream of the session was closed'))
    }
    stream.once('drain', drain)
    stream.once('close', close)
  })
}

/** Holds no more than one frame and one piece of the stream. */
async function* framesOf(stream: Duplex): AsyncGenerator<SessionFrame, undefined> {
  const pieces: AsyncIterator<Buffer> = stream.iterator({ destroyOnReturn: false })
  let held: Buffer[] = []
  let length = 0
  /** undefined: the stream ended, and nothing was held. */
  const take = async (bytes: number): Promise<Buffer | undefined> => {
    while (length < bytes) {
      const { value, done } = await pieces.next()
      if (done) {
        if (length === 0) return undefined
        throw new Error('The stream of the session ended within a frame')
      }
      held.push(value)
      length += value.length
    }
    const all = held.length === 1 && held[0] !== undefined ? held[0] : Buffer.concat(held)
    held = all.length === bytes ? [] : [all.subarray(bytes)]
    length -= bytes
    return all.subarray(0, bytes)
  }
  for (;;) {
    const head = await take(headBytes)
    if (head === undefined) return
    const channel = head.readUInt8(0)
    const size = head.readUIntBE(1, 3)
    if (size > longestOf(channel))
      throw new Error(`A frame of ${size} bytes is longer than ${longestOf(channel)} bytes`)
    const payload = size === 0 ? Buffer.alloc(0) : await take(size)
    if (payload === undefined) throw new Error('The stream of the session ended within a frame')
    yield { channel, payload }
  }
}
