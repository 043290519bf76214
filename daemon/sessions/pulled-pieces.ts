/** A connection that is read when a piece is wanted, and not before: what comes meanwhile waits in the system. */
import type { ConnectOpts, Socket } from 'node:net'
import { type GatherTime, gathered } from './gathered-pieces.ts'

/** Somewhat less than 64 KiB: with its head it is one frame of a session. */
const readBytes = 60 * 1024

export type PulledReads = {
  /** For `connect` of `node:net`. */
  readonly onread: NonNullable<ConnectOpts['onread']>
  /**
   * The pieces until the connection ends, of 60 KiB at most; rejects with its error, and where it is closed before its end. They are gathered as by
   * `gatheredPieces`. Each belongs to the caller.
   */
  pieces(socket: Socket, time?: GatherTime): AsyncGenerator<Buffer>
}

/**
 * For one connection. A stream of Node.js reads on until it holds 16 KiB: where a line comes at a time, it reads each by itself, also while
 * `gatheredPieces` waits for more of them. That took a fifth of the CPU time of a log.
 */
export function pulledReads(): PulledReads {
  let buffer: Buffer | undefined
  let piece: Buffer | undefined
  let wake: () => void = () => undefined

  /** Resolves with the next piece, or with the end. */
  const more = (socket: Socket) => {
    socket.resume()
    return new Promise<void>((resolve) => {
      wake = resolve
    })
  }

  async function* read(socket: Socket): AsyncGenerator<Buffer> {
    let end: { readonly error: Error | undefined } | undefined
    const endWith = (error?: Error) => {
      end ??= { error }
      wake()
    }
    watchEnd(socket, endWith)
    for (;;) {
      while (piece === undefined && end === undefined) await more(socket)
      const taken = piece
      piece = undefined
      if (taken !== undefined) yield taken
      else if (end?.error !== undefined) throw end.error
      else return
    }
  }
  return {
    onread: {
      buffer() {
        buffer ??= Buffer.allocUnsafeSlow(readBytes)
        return buffer
      },
      callback(bytes, read) {
        // A line that waits to be sent must not keep all of the buffer in memory.
        const isLarge = bytes > readBytes / 2
        piece = isLarge ? Buffer.from(read.buffer, read.byteOffset, bytes) : Buffer.from(read.subarray(0, bytes))
        if (isLarge) buffer = undefined
        wake()
        return false
      },
    },
    pieces: (socket, time) => gathered(read(socket), time),
  }
}

/** Also if it has ended before. */
function watchEnd(socket: Socket, endWith: (error?: Error) => void): void {
  const closed = () => endWith(socket.errored ?? new Error('The connection was closed'))
  socket.once('end', () => endWith())
  socket.once('close', closed)
  if (socket.readableEnded) endWith()
  else if (socket.destroyed) closed()
}
