/** The types of answers to a request, before they are encoded. */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { AnswerEncoding } from './content-negotiation.ts'

export type ApiResponse =
  | {
      readonly kind: 'object'
      readonly code: number
      readonly body: unknown
      readonly contentType?: string
      /** undefined: JSON. */
      readonly encoding?: AnswerEncoding
      /** Warning headers (RFC 9110): kubectl prints each on a line. */
      readonly warnings?: readonly string[]
      /** The client may ask again then; client libraries do so by themselves. */
      readonly retryAfterSeconds?: number
    }
  | { readonly kind: 'text'; readonly code: number; readonly text: string; readonly contentType: string }
  /** Bytes that are kept, which a client keeps too under their tag. 304: it has them. `isImmutable`: it need not ask again. */
  | {
      readonly kind: 'document'
      readonly code: 200 | 304
      readonly bytes: Buffer
      /** undefined: the bytes are as they are. */
      readonly encoding?: 'gzip'
      readonly contentType: string
      /** In quotes. */
      readonly etag: string
      readonly isImmutable: boolean
    }
  /** Bytes with all their headers. */
  | {
      readonly kind: 'plain'
      readonly code: number
      readonly headers: { readonly [name: string]: string }
      readonly bytes: Buffer
    }
  /** Too long for one string. */
  | {
      readonly kind: 'pieces'
      readonly code: number
      readonly contentType: string
      readonly pieces: AsyncIterable<string>
    }
  /** A watch: each piece is sent at once; the answer ends with the iteration. */
  | { readonly kind: 'stream'; readonly pieces: AsyncIterable<string | Uint8Array> }
  /** A log: each piece is sent when the reader took the one before, however long it takes. The iteration holds little. */
  | { readonly kind: 'flow'; readonly contentType: string; readonly pieces: AsyncIterable<Uint8Array> }
  /** A large file, or what is left of it, with all its headers. It goes no faster than the client reads. */
  | {
      readonly kind: 'file'
      readonly code: 200 | 206
      readonly headers: { readonly [name: string]: string }
      readonly pieces: AsyncIterable<Uint8Array>
    }
  /** The answer of another server, with its headers: names and values in turn. Its body goes no faster than the client reads. */
  | {
      readonly kind: 'proxied'
      readonly code: number
      /** The text behind the code. */
      readonly reason: string
      readonly headers: readonly string[]
      readonly pieces: AsyncIterable<Uint8Array>
    }
  /** The connection is taken out of HTTP: only where the request asked for it (`offered` in ResourceRequest). */
  | { readonly kind: 'connection'; readonly take: (connection: TakenConnection) => Promise<void> }

/** A connection whose request asked to leave HTTP. `socket` has no reader any more; `head` is what came behind the request. */
export type TakenConnection = {
  readonly incoming: IncomingMessage
  readonly socket: Duplex
  readonly head: Buffer
  /** Aborts when the client is gone or the server closes. */
  readonly signal: AbortSignal
}

export function objectAnswer(
  body: unknown,
  code = 200,
  warnings: readonly string[] = [],
): ApiResponse & { readonly kind: 'object' } {
  return { kind: 'object', code, body, warnings }
}

export function textAnswer(text: string, code = 200): ApiResponse {
  return { kind: 'text', code, text, contentType: 'text/plain; charset=utf-8' }
}
