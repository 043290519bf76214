/** A connection of a client as pieces of bytes: they are taken one at a time, and sent no faster than the client reads. */
import type { Duplex } from 'node:stream'

/**
 * A connection whose data is not taken is not read either, so that its end is not seen. What is sent to a client that is gone is
 * refused: after the second ping at the latest the connection closes.
 */
export const clientPingMs = 15_000

export interface ByteChannel {
  /** The next piece; undefined: the client is gone. Meanwhile the connection is read no further. */
  next(): Promise<Buffer | undefined>
  /** Resolves when more can be sent; rejects where the client is gone. */
  send(bytes: Uint8Array): Promise<void>
  /** Aborts when the connection is closed, by either side, also where nothing is read of it. */
  readonly closed: AbortSignal
  /** Sends what waits, and ends the connection. */
  close(): void
  destroy(): void
}

/** The connection itself, which becomes the property of the channel. */
export function socketChannel(socket: Duplex, head: Buffer): ByteChannel {
  if (head.length > 0) socket.unshift(head)
  const closed = new AbortController()
  socket.once('close', () => closed.abort('closed'))
  if (socket.destroyed) closed.abort('closed')
  const pieces: AsyncIterator<Buffer> = socket.iterator({ destroyOnReturn: false })
  return {
    async next() {
      const { value, done } = await pieces.next().catch(() => ({ value: undefined, done: true }))
      return done ? undefined : value
    },
    send: (bytes) =>
      new Promise((resolve, reject) => {
        socket.write(bytes, (error) => (error ? reject(error) : resolve()))
      }),
    closed: closed.signal,
    close: () => void socket.end(),
    destroy: () => void socket.destroy(),
  }
}
