/** One HTTP request to a server behind a connection, and its answer: bodies pass no faster than their readers take them. */
import { request as httpRequest, type IncomingMessage, validateHeaderName, validateHeaderValue } from 'node:http'
import type { Duplex } from 'node:stream'
import { ApiError } from '../../../api/api-error.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { messageOf } from '../../../daemon/errors.ts'
import { limitInformational } from '../../../daemon/http/informational-answers.ts'
import type { RawRequest } from '../handlers/strategy.ts'
import type { ApiResponse, TakenConnection } from '../wire/answers.ts'
import { rewrittenLinks } from './html-links.ts'
import { joinConnections } from './joined-connections.ts'
import { answerHeaders, upgradeHeaders } from './proxy-headers.ts'
import { encryptedConnection, type ServerTrust } from './tls-connection.ts'

export type Exchange = {
  readonly connection: Duplex
  readonly scheme: 'http' | 'https'
  /** undefined: as kube-apiserver, certificates of pods are not verified (ProxyTLSClientConfig, InsecureSkipVerify). */
  readonly trust?: ServerTrust
  readonly raw: RawRequest
  /** With its query. */
  readonly path: string
  readonly headers: readonly string[]
  readonly isUpgrade: boolean
  /** Rewrites the targets of redirects and of links in pages. */
  readonly rewriteLocation: (location: string) => string
  /** The server is a controller of the fleet. */
  readonly toController?: boolean
  readonly clock: Clock
}

const longestHead = 64 * 1024
/** What is above counts as a failure of the server (RFC 9110, 15). HTTP/2 of Node.js sends none of it. */
const mostStatus = 599

/** Throws ServiceUnavailable where the server gives no answer. The connection ends with the answer. */
export async function proxyExchange(exchange: Exchange): Promise<ApiResponse> {
  const { connection } = exchange
  connection.on('error', () => undefined) // its reader or writer sees it
  try {
    const { scheme, trust = { rejectUnauthorized: false } } = exchange
    const stream = scheme === 'https' ? await encryptedConnection(connection, trust) : connection
    return await answerOn(stream, exchange)
  } catch (cause) {
    connection.destroy()
    if (cause instanceof ApiError) throw cause
    throw proxyFailure(messageOf(cause), cause)
  }
}

/** In the words of kube-apiserver: clients look for them. */
export function proxyFailure(because: string, cause: unknown): ApiError {
  return new ApiError('ServiceUnavailable', `error trying to reach service: ${because}`, undefined, { cause })
}

function answerOn(stream: Duplex, exchange: Exchange): Promise<ApiResponse> {
  const { raw, path, headers, isUpgrade } = exchange
  return new Promise((resolve, reject) => {
    const sent = httpRequest({
      createConnection: () => stream,
      method: raw.method,
      path,
      headers,
      maxHeaderSize: longestHead,
    })
    limitInformational(sent)
    // Not once: it may fail again while its socket is torn down.
    sent.on('error', reject)
    sent.once('upgrade', (response, upgraded, head) => {
      // Only now: its error would end the stream that is handed over.
      sent.off('error', reject).on('error', () => undefined)
      if (!isUpgrade) {
        stream.destroy()
        return void reject(new ApiError('InternalError', 'invalid response: an upgrade that was not requested'))
      }
      const { statusMessage = 'Switching Protocols', rawHeaders } = response
      const take = (connection: TakenConnection) => {
        const kept = upgradeHeaders(rawHeaders, exchange.rewriteLocation, exchange.toController)
        const lines = kept.flatMap((name, i) => (i % 2 === 0 ? [`${name}: ${kept[i + 1]}`] : []))
        const answer = `HTTP/1.1 101 ${statusMessage}\r\n${lines.join('\r\n')}\r\n\r\n`
        connection.socket.write(Buffer.from(answer, 'latin1'))
        return joinConnections(connection, { socket: upgraded, head }, exchange.clock)
      }
      resolve({ kind: 'connection', take })
    })
    sent.once('response', (response) => {
      sent.off('error', reject).on('error', () => undefined)
      // A server need not close the connection, and each occupies a session of the node.
      response.once('close', () => void stream.destroy())
      // There is no body, and nothing else reads its end.
      if (raw.method === 'HEAD') response.resume()
      const { statusCode: code = 0 } = response
      if (code < 200 || code > mostStatus) {
        stream.destroy()
        reject(proxyFailure(`invalid status code ${code}`, undefined))
      } else if (isUpgrade && code < 400) {
        stream.destroy()
        reject(new ApiError('InternalError', `invalid upgrade response: status code ${code}`))
      } else resolve(answerOf(response, code, exchange))
    })
    if (raw.body === undefined || isUpgrade) return void sent.end()
    const { body } = raw
    body.pipe(sent)
    // The server has answered, or is gone: what the client still sends is dropped, so that it can read the answer.
    sent.once('close', () => body.unpipe(sent).resume())
    body.once('error', () => sent.destroy())
  })
}

function answerOf(
  response: IncomingMessage,
  code: number,
  { raw, rewriteLocation, toController }: Exchange,
): ApiResponse {
  const { statusMessage = '', rawHeaders } = response
  const headers = answerHeaders(rawHeaders, rewriteLocation, toController)
  const sendable = headers.filter((_, i) => isSendable(headers[i - (i % 2)] ?? '', headers[i - (i % 2) + 1] ?? ''))
  if (toController || raw.method === 'HEAD' || code === 206 || !isPlainPage(response)) {
    return { kind: 'proxied', code, reason: statusMessage, headers: sendable, pieces: response }
  }
  const unsized = sendable.filter((_, i) => sendable[i - (i % 2)]?.toLowerCase() !== 'content-length')
  return {
    kind: 'proxied',
    code,
    reason: statusMessage,
    headers: unsized,
    pieces: rewrittenLinks(response, rewriteLocation),
  }
}

/** A compressed page stays as it is: `requestHeaders` asks for none. */
function isPlainPage({ headers }: IncomingMessage): boolean {
  const type = headers['content-type']?.split(';')[0]?.trim().toLowerCase()
  return type === 'text/html' && (headers['content-encoding'] ?? 'identity') === 'identity'
}

/** Node.js reads more than it writes. */
function isSendable(name: string, value: string): boolean {
  try {
    validateHeaderName(name)
    validateHeaderValue(name, value)
    return true
  } catch {
    return false
  }
}
