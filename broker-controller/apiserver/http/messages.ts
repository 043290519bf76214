/** A request and what its answer is written to, of HTTP/1.1 or of HTTP/2. */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { pieceMeter } from '../../../daemon/http/collected-bytes.ts'
import type { Drain } from './slow-readers.ts'

export type Incoming = {
  readonly method?: string | undefined
  /** With the query. */
  readonly url?: string | undefined
  readonly headers: IncomingHttpHeaders
  /** Each line of a header by itself. */
  readonly headersDistinct: NodeJS.Dict<string[]>
  /** Names and values in turn. */
  readonly rawHeaders: readonly string[]
  /** Its connection, for who the client is: nothing is read from it. */
  readonly socket: Socket
}

export type Outgoing = Drain & {
  readonly destroyed: boolean
  readonly headersSent: boolean
  /** `write` makes a chunk of HTTP/1.1 of what it is given. undefined: HTTP/2. */
  chunkedEncoding?: boolean
  /** All is given to the system, and the client has not given up. */
  readonly writableFinished: boolean
  setHeader(name: string, value: string | readonly string[]): unknown
  writeHead(code: number, headers?: { readonly [name: string]: string | number }): unknown
  writeHead(code: number, reason: string, headers: string[]): unknown
  flushHeaders(): void
  /** false: wait for `drain` before the next. */
  write(bytes: Uint8Array): boolean
  end(bytes?: Uint8Array): unknown
  once(event: 'close' | 'drain', listener: () => void): unknown
  on(event: 'error', listener: () => void): unknown
}

export type HttpMessages = {
  readonly incoming: Incoming
  readonly body: Readable
  readonly outgoing: Outgoing
  /** Reads what is left of the body, and throws it away. undefined: HTTP/2, whose client sends no more than is read. */
  readonly dropBody?: () => void
  /** What was written so far for this request, or on its connection. */
  readonly sentBytes: () => number
  /** No further request is accepted on the connection. undefined: HTTP/1.1, which serves one at a time. */
  readonly closeConnection?: () => void
}

export function messagesOf(incoming: IncomingMessage, outgoing: ServerResponse): HttpMessages {
  return {
    incoming,
    body: incoming,
    outgoing,
    dropBody: () => dropBody(incoming),
    sentBytes: () => incoming.socket.bytesWritten,
  }
}

/** Node.js does that after the answer (`resOnFinish` in lib/_http_server.js), for as long as the client sends pieces of any size. */
function dropBody(incoming: IncomingMessage): void {
  if (incoming.complete || incoming.readableFlowing !== null) return
  const isFine = pieceMeter()
  incoming.on('data', (piece: Buffer) => {
    if (!isFine(piece.length)) incoming.destroy()
  })
}
