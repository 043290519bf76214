/** A request passed on to the controller that leads, with the identity of its sender, and the answer passed back as it comes. */
import { isIP } from 'node:net'
import { connect, type TLSSocket } from 'node:tls'
import { ApiError, isApiError } from '../../../api/api-error.ts'
import type { Identity } from '../../../api/identity.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { startDeadline, withDeadline } from '../../../daemon/deadline.ts'
import { messageOf } from '../../../daemon/errors.ts'
import type { RawRequest } from '../handlers/strategy.ts'
import { proxyExchange } from '../proxy/proxy-exchange.ts'
import { identityHeader, requestHeaders } from '../proxy/proxy-headers.ts'
import type { ApiResponse } from '../wire/answers.ts'
import { identityHeaderValue } from './remote-identity.ts'
import type { ControllerCredentials } from './replica.ts'

export type ForwardedExchange = {
  readonly raw: RawRequest | undefined
  /** undefined: the leader finds it out. */
  readonly identity: Identity | undefined
  readonly isUpgrade: boolean
  /** Its answer may begin at any time: a proxied server decides that. */
  readonly isLong: boolean
  /** From now to the first line of the answer, where it is not long; a minute unless given. */
  readonly answerMs?: number
  /** `https://HOST:PORT` */
  readonly leader: string
  readonly credentials: ControllerCredentials
  readonly clock: Clock
  /** Aborts when the client is gone. */
  readonly signal: AbortSignal
}

const connectMs = 5_000
/** As kube-apiserver's --request-timeout, from which long requests are exempt. A leader that is frozen gives no answer. */
const usualAnswerMs = 60_000

/**
 * Throws ServiceUnavailable where the request did not reach the leader, so that clients repeat it, and Timeout where a write did and
 * no answer came: it may have happened.
 */
export async function forwardRequest(exchange: ForwardedExchange): Promise<ApiResponse> {
  const { raw, leader, isUpgrade, isLong, answerMs = usualAnswerMs, clock, signal } = exchange
  if (raw === undefined) throw new ApiError('InternalError', 'the request cannot be forwarded')
  const connection = await connected(exchange).catch((cause: unknown) => {
    const message = `Cannot reach the controller that leads, ${leader}: ${messageOf(cause)}`
    throw new ApiError('ServiceUnavailable', message, { retryAfterSeconds: 1 }, { cause })
  })
  const leave = () => void connection.destroy()
  signal.addEventListener('abort', leave, { once: true })
  connection.once('close', () => signal.removeEventListener('abort', leave))
  if (signal.aborted) leave()
  const stop = isLong ? undefined : startDeadline(answerMs, leave)
  try {
    return await proxyExchange({
      connection,
      scheme: 'http', // The connection is encrypted already.
      raw,
      path: `${raw.path}${raw.query === '' ? '' : `?${raw.query}`}`,
      headers: forwardedHeaders(exchange, raw),
      isUpgrade,
      rewriteLocation: (location) => location,
      toController: true,
      clock,
    })
  } catch (cause) {
    if (!isApiError(cause, 'ServiceUnavailable')) throw cause
    const isRead = raw.method === 'GET' || raw.method === 'HEAD'
    const message = `No answer from the controller that leads, ${leader}`
    if (isRead) throw new ApiError('ServiceUnavailable', message, { retryAfterSeconds: 1 }, { cause })
    throw new ApiError('Timeout', `${message}: the change may have happened`, {}, { cause })
  } finally {
    stop?.()
  }
}

/** Impersonation is decided by the leader, whose audit log has both users. */
function forwardedHeaders({ identity, isUpgrade }: ForwardedExchange, raw: RawRequest): readonly string[] {
  const { method, headers, address, path } = raw
  const names = headers.map((name, i) => (i % 2 === 0 ? name.toLowerCase() : ''))
  const impersonation = headers.filter((_, i) => names[i - (i % 2)]?.startsWith('impersonate-'))
  // The client's own X-Forwarded-For is not passed on: the leader trusts the last one.
  const own = headers.filter((_, i) => names[i - (i % 2)] !== 'x-forwarded-for')
  const kept = requestHeaders({ method, headers: own, address, uri: path, isUpgrade, toController: true })
  return [...kept, ...impersonation, identityHeader, identityHeaderValue(identity)]
}

function connected({ leader, credentials, signal }: ForwardedExchange): Promise<TLSSocket> {
  const { hostname, port } = new URL(leader)
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  return withDeadline(
    connectMs,
    signal,
    (own) =>
      new Promise<TLSSocket>((resolve, reject) => {
        const { ca, certificate: cert, key } = credentials
        const name = isIP(host) === 0 ? { servername: host } : {}
        const socket = connect({ host, port: Number(port || 443), ca, cert, key, minVersion: 'TLSv1.2', ...name })
        const fail = (cause: Error) => {
          socket.destroy()
          reject(cause)
        }
        const stop = () => fail(new Error('no answer'))
        own.addEventListener('abort', stop, { once: true })
        socket.once('error', fail)
        socket.once('secureConnect', () => {
          own.removeEventListener('abort', stop)
          socket.off('error', fail)
          resolve(socket)
        })
      }),
    'no answer',
  )
}
