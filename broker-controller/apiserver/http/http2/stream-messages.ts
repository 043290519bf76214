/** A stream of HTTP/2 as a request and what its answer is written to. */
import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import type { HttpMessages, Incoming, Outgoing } from '../messages.ts'

export type StreamHead = {
  readonly headers: IncomingHttpHeaders
  /** Names and values in turn. */
  readonly rawHeaders: readonly string[]
}

/** What a stream needs of its session. */
export type StreamSession = {
  /** The connection, for who the client is. */
  readonly socket: Socket
  /** No further stream is accepted. */
  readonly close: () => void
  /** Called when the answer is cut short: its client did not take it, or it failed. */
  readonly gaveUp: () => void
}

export function streamMessages(
  stream: ServerHttp2Stream,
  head: StreamHead,
  { socket, close, gaveUp }: StreamSession,
): HttpMessages {
  const { outgoing, sentBytes } = streamAnswer(stream, gaveUp)
  return {
    incoming: streamRequest(head, socket, !stream.endAfterHeaders),
    body: stream,
    outgoing,
    sentBytes,
    closeConnection: close,
  }
}

/**
 * Its raw headers are those of HTTP/1.1 (RFC 9113, 8.2.3 and 8.3.1): who passes the request on finds the host, one line of cookies and
 * how the body is framed. Without its frame a body would be read as another request.
 */
function streamRequest({ headers, rawHeaders }: StreamHead, socket: Socket, hasBody: boolean): Incoming {
  const authority = headers[':authority']
  const lines = () => [
    ...(authority === undefined ? [] : ['host', authority]),
    ...pairsOf(rawHeaders)
      .filter(([name]) => !name.startsWith(':') && name !== 'cookie' && (name !== 'host' || authority === undefined))
      .flat(),
    ...(headers.cookie === undefined ? [] : ['cookie', headers.cookie]),
    ...(hasBody && headers['content-length'] === undefined ? ['transfer-encoding', 'chunked'] : []),
  ]
  return {
    method: headers[':method'],
    url: headers[':path'],
    headers,
    socket,
    get rawHeaders() {
      return lines()
    },
    get headersDistinct() {
      const distinct: { [name: string]: string[] } = Object.create(null)
      for (const [name, value] of pairsOf(lines())) distinct[name] = [...(distinct[name] ?? []), value]
      return distinct
    },
  }
}

function pairsOf(flat: readonly string[]): (readonly [string, string])[] {
  const pairs: (readonly [string, string])[] = []
  for (let at = 0; at + 1 < flat.length; at += 2) pairs.push([flat[at] ?? '', flat[at + 1] ?? ''])
  return pairs
}

/** They are about a connection of HTTP/1.1, and may not be sent (RFC 9113, 8.2.2). */
const connectionHeaders = ['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade']

type Headers = { [name: string]: string | string[] }

function streamAnswer(stream: ServerHttp2Stream, gaveUp: () => void) {
  const prepared: Headers = {}
  let bytes = 0
  const respond = (code: number, own: Headers) => {
    if (stream.destroyed || stream.closed || stream.headersSent) return
    stream.respond({ ':status': code, ...prepared, ...own })
  }
  const outgoing: Outgoing = {
    get destroyed() {
      return stream.destroyed || stream.closed
    },
    get headersSent() {
      return stream.headersSent
    },
    get writableFinished() {
      // A stream that is reset is ended by Node.js as well.
      return stream.writableFinished && !stream.aborted && stream.rstCode === constants.NGHTTP2_NO_ERROR
    },
    get writableLength() {
      return stream.writableLength
    },
    setHeader: (name, value) => {
      prepared[name.toLowerCase()] = typeof value === 'string' ? value : [...value]
    },
    writeHead(code: number, given?: string | { readonly [name: string]: string | number }, lines: string[] = []) {
      respond(code, typeof given === 'string' ? headersIn(lines) : textsOf(given ?? {}))
    },
    flushHeaders: () => undefined, // they are sent by `writeHead`
    write(piece) {
      if (stream.destroyed || stream.writableEnded) return true
      bytes += piece.length
      return stream.write(piece)
    },
    end(piece) {
      if (stream.destroyed || stream.writableEnded) return
      bytes += piece?.length ?? 0
      if (piece === undefined) stream.end()
      else stream.end(piece)
    },
    destroy() {
      // `close` would send the end of the answer before the reset, and the client would take it for whole. An error resets with
      // INTERNAL_ERROR and sends nothing else.
      stream.on('error', () => undefined)
      stream.destroy(new Error('The answer is cut short'))
      gaveUp()
    },
    on: (event, listener) => stream.on(event, listener),
    once: (event, listener) => stream.once(event, listener),
    off: (event, listener) => stream.off(event, listener),
  }
  return { outgoing, sentBytes: () => bytes }
}

function textsOf(headers: { readonly [name: string]: string | number }): Headers {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]))
}

/** `lines`: names and values in turn. A name that may occur once gets its first value: Node.js throws for more. */
function headersIn(lines: readonly string[]): Headers {
  const headers: Headers = Object.create(null)
  for (const [line, value] of pairsOf(lines)) {
    const name = line.toLowerCase()
    if (connectionHeaders.includes(name)) continue
    const before = headers[name]
    if (before === undefined) headers[name] = value
    else if (!singleHeaders.includes(name)) headers[name] = [before, value].flat()
  }
  return headers
}

/** Those that answers have, of the names in kSingleValueHeaders (lib/internal/http2/util.js). */
const singleHeaders = [
  ...['access-control-allow-credentials', 'access-control-max-age', 'age', 'content-encoding', 'content-language'],
  ...['content-length', 'content-location', 'content-md5', 'content-range', 'content-type', 'date', 'etag', 'expires'],
  ...['last-modified', 'location', 'retry-after', 'server', 'tk', 'upgrade-insecure-requests'],
  ...['access-control-request-method', 'alt-svc', 'host', 'x-content-type-options', 'dnt', 'max-forwards', 'from'],
  ...['authorization', 'proxy-authorization', 'if-match', 'if-modified-since', 'if-none-match', 'if-range'],
  ...['if-unmodified-since', 'range', 'referer', 'user-agent'],
]
