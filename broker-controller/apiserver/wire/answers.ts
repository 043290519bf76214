/** What a request is answered with, before it becomes bytes. */
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
  /** Too long for one string. */
  | {
      readonly kind: 'pieces'
      readonly code: number
      readonly contentType: string
      readonly pieces: AsyncIterable<string>
    }
  /** A watch: each piece is sent at once; the answer ends with the iteration. */
  | { readonly kind: 'stream'; readonly pieces: AsyncIterable<string | Uint8Array> }

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
