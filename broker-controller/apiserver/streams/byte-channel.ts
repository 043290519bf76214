/** A connection of a client as pieces of bytes: they are taken one at a time, and little waits for a client that does not read. */
import type { Duplex } from 'node:stream'

/**
 * A connection whose data is not taken is not read either, so that its end is not seen. What is sent to a client that is gone is
 * refused: after the second ping at the latest the connection closes.
 */
const clientPingMs = 15_000
/** Where the client's data is not taken at the moment. */
const heldPingMs = 2_000

/** Bytes for one client: enough to keep the connection busy while the next piece comes. */
const mostUnsent = 128 * 1024

/** Calls `ping` each `clientPingMs`, and more often while the client is not read. Returns how to stop. */
export function pingEach(isHeld: () => boolean, ping: () => void): () => void {
  let quietMs = 0
  const timer = setInterval(() => {
    quietMs += heldPingMs
    if (quietMs + heldPingMs <= clientPingMs && !isHeld()) return
    quietMs = 0
    ping()
  }, heldPingMs).unref()
  return () => clearInterval(timer)
}

export interface ByteChannel {
  /** The next piece; undefined: the client is gone. Meanwhile the connection is read no further. */
  next(): Promise<Buffer | undefined>
  /** Resolves when more can be sent; rejects where the client is gone. */
  send(bytes: Uint8Array): Promise<void>
  /** Resolves when the system has taken all that was sent, or the client is gone. */
  flushed(): Promise<void>
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
  const { send, flushed } = sendWindow(() => (socket.writable ? socket.writableLength : undefined))
  const pieces: AsyncIterator<Buffer> = socket.iterator({ destroyOnReturn: false })
  return {
    async next() {
      const { value, done } = await pieces.next().catch(() => ({ value: undefined, done: true }))
      return done ? undefined : value
    },
    send: (bytes) => send((done) => void socket.write(bytes, done)),
    flushed,
    closed: closed.signal,
    close: () => void socket.end(),
    destroy: () => void socket.destroy(),
  }
}

/**
 * Waits for a write only where much is unsent: waiting for each costs a turn of the loop and a packet of its own. `unsent` gives
 * the bytes that wait; undefined: the connection is closed, and its writes fail.
 */
export function sendWindow(unsent: () => number | undefined) {
  let last: Promise<void> = Promise.resolve()
  return {
    send(write: (done: (error?: Error | null) => void) => void): Promise<void> {
      const written = new Promise<void>((resolve, reject) => {
        write((error) => (error ? reject(error) : resolve()))
      })
      last = written.catch(() => undefined)
      return (unsent() ?? mostUnsent) < mostUnsent ? Promise.resolve() : written
    },
    flushed: () => last,
  }
}
