/** The frames of a session (`api/sessions.ts`) on a stream: sent no faster than the other end reads, and read no faster than they are taken. */
import type { Duplex } from 'node:stream'
import { longestFrame, sessionChannels } from '../../api/sessions.ts'
import { frameDecoder, type SessionFrame } from './frame-decoder.ts'

export interface SessionFrames {
  /** The next frame that is not a ping; undefined: the stream ended between two frames. Rejects where it was cut, or carries no frames. */
  next(): Promise<SessionFrame | undefined>
  /** The stream is not read, because what came is not taken: its end would not be seen. */
  readonly isHeld: boolean
  /** Resolves when more may be sent. Long payloads go out in several frames. Rejects when the stream is gone. */
  send(channel: number, payload: Uint8Array): Promise<void>
  sendText(channel: number, text: string): Promise<void>
  /** Sends what waits, and ends this side of the stream. */
  end(): void
  /** Ends the stream at once. */
  destroy(): void
}

const headBytes = 4
/**
 * Data that is longer is sent in equal parts. The other end keeps a frame in one piece, and the launcher of the controller has the
 * allocator map larger ones apart: that took a sixth of the CPU time of a stream.
 */
const longestSent = 60 * 1024
/** Bytes of data: what Node.js reads of a socket at a time. */
const sentTogether = 64 * 1024
/** Bytes that wait to be sent: enough to keep the connection busy while the next frame comes. */
const mostUnsent = 2 * longestFrame.data
/**
 * Bytes that wait to be taken: little more than a frame. What waits longer is collected later, and buffers of sockets count for much in
 * the garbage collector: twice as much took half as much CPU time again.
 */
const mostHeld = longestFrame.data
/** Memory of a frame beside its payload, so that many empty frames count like a few with data. */
const frameBytes = 128

/** It becomes the only reader and the only writer of the stream. */
export function sessionFrames(stream: Duplex): SessionFrames {
  const incoming = incomingFrames(stream)

  const frame = (channel: number, payload: Uint8Array, done?: (error?: Error | null) => void) => {
    const head = Buffer.allocUnsafe(headBytes)
    head.writeUInt32BE(payload.length)
    head.writeUInt8(channel)
    if (payload.length === 0) return void stream.write(head, done)
    stream.write(head)
    stream.write(payload, done)
  }
  const write = async (channel: number, payload: Uint8Array) => {
    if (stream.destroyed || stream.writableEnded) throw new Error('The stream of the session is closed')
    const most = partOf(channel, payload.length)
    // They are encrypted and sent together.
    stream.cork()
    for (let at = 0; at === 0 || at < payload.length; at += most) frame(channel, payload.subarray(at, at + most))
    stream.uncork()
    if (stream.writableLength >= mostUnsent && stream.writableNeedDrain) await drained(stream)
  }
  /** Who has sent the end may destroy the stream, which drops what is not written. */
  const writeEnd = (payload: Uint8Array) => {
    if (stream.destroyed || stream.writableEnded) throw new Error('The stream of the session is closed')
    return new Promise<void>((resolve, reject) => {
      stream.cork()
      frame(sessionChannels.end, payload, (error) => (error ? reject(error) : resolve()))
      stream.uncork()
    })
  }
  return {
    next: incoming.next,
    get isHeld() {
      return incoming.isHeld()
    },
    async send(channel, payload) {
      if (channel === sessionChannels.end) return writeEnd(payload)
      const most = channel === sessionChannels.request ? longestFrame.request : sentTogether
      for (let at = 0; at === 0 || at < payload.length; at += most) {
        await write(channel, payload.subarray(at, at + most))
      }
    },
    sendText: (channel, text) => write(channel, Buffer.from(text)),
    end: () => void stream.end(),
    destroy: () => void stream.destroy(),
  }
}

/** The bytes of each frame but the last. */
function partOf(channel: number, bytes: number): number {
  if (channel === sessionChannels.request) return longestFrame.request
  const parts = Math.max(1, Math.ceil(bytes / longestSent))
  return Math.max(1, Math.ceil(bytes / parts))
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

/** The frames as they come, of which few wait: the stream is paused meanwhile. */
function incomingFrames(stream: Duplex) {
  const waiting: SessionFrame[] = []
  let heldBytes = 0
  let isHeld = false
  /** End of the stream, after the waiting frames; undefined: not reached. */
  let end: { readonly error: Error | undefined } | undefined
  let wake: () => void = () => undefined
  const decoder = frameDecoder((frame) => {
    waiting.push(frame)
    heldBytes += frame.payload.length + frameBytes
  })
  const endWith = (error: Error | undefined) => {
    end ??= { error }
    wake()
  }
  stream.on('data', (piece: Buffer) => {
    if (end !== undefined) return
    try {
      decoder.push(piece)
    } catch (error) {
      endWith(error as Error)
    }
    if (heldBytes >= mostHeld) {
      isHeld = true
      stream.pause()
    }
    wake()
  })
  stream.once('end', () => {
    const isWhole = decoder.isBetweenFrames()
    endWith(isWhole ? undefined : new Error('The stream of the session ended within a frame'))
  })
  stream.on('error', endWith)
  stream.once('close', () => endWith(new Error('The stream of the session was closed')))
  // Who had the connection before may have paused it.
  stream.resume()
  if (stream.destroyed) endWith(new Error('The stream of the session was closed'))

  return {
    isHeld: () => isHeld,
    async next(): Promise<SessionFrame | undefined> {
      while (waiting.length === 0) {
        if (end?.error !== undefined) throw end.error
        if (end !== undefined) return undefined
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
      const frame = waiting.shift()
      heldBytes -= (frame?.payload.length ?? 0) + frameBytes
      if (isHeld && heldBytes < mostHeld / 2) {
        isHeld = false
        stream.resume()
      }
      return frame
    },
  }
}
