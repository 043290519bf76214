/**
 * Limits the connections to the API and their duration. Unauthenticated ones are few and short. A connection is authenticated by a
 * client certificate in its handshake, or by a request whose token or session is accepted.
 */
import type { ServerResponse } from 'node:http'
import type { Server } from 'node:https'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { peerControllerIdentity } from '../../../api/identity.ts'
import type { LimitedLog } from '../../../daemon/log-limit.ts'
import type { MetricsRegistry } from '../../../daemon/metrics-registry.ts'
import { addressKey, peerAddress } from '../authentication/peer-address.ts'
import { strangerConnections } from './stranger-connections.ts'

export type ConnectionLimits = {
  /** Connections on which no credentials were accepted, those in their handshake among them: of one address, and all. */
  readonly strangersPerAddress: number
  readonly strangers: number
  /** Connections of one user, or of the service accounts of a namespace. Administrators share a user, so there may be many of them. */
  readonly perUser: number
  readonly all: number
}

export const defaultConnectionLimits: ConnectionLimits = {
  strangersPerAddress: 256,
  strangers: 1024,
  perUser: 1024,
  all: 20_000,
}

/** Options of the HTTPS server that bound the time a client may take, in milliseconds. */
export type ConnectionTimes = {
  readonly handshakeTimeout: number
  /** From the end of the handshake, or the first byte of a later request, to the end of the headers. */
  readonly headersTimeout: number
  /** To the end of the body. */
  readonly requestTimeout: number
  /** From the end of an answer to the first byte of the next request. */
  readonly keepAliveTimeout: number
  readonly connectionsCheckingInterval: number
}

export const defaultConnectionTimes: ConnectionTimes = {
  handshakeTimeout: 10_000,
  headersTimeout: 10_000,
  requestTimeout: 60_000, // as kube-apiserver's --request-timeout
  keepAliveTimeout: 90_000, // kubectl and client libraries reuse connections for about a minute
  connectionsCheckingInterval: 2_000,
}

export type ConnectionLimitNeeds = {
  readonly limits: ConnectionLimits
  readonly registry: MetricsRegistry
  readonly log: LimitedLog
}

export type RefusalReason =
  | 'AddressLimit'
  | 'StrangerLimit'
  | 'UserLimit'
  | 'Handshake'
  | 'Timeout'
  | 'HeadersTooLarge'
  | 'NotHTTP'
  | 'TooManyFrames'

export interface LimitedConnections {
  /** Notes which answer is under way on the request's connection. */
  answering(socket: Socket, outgoing: ServerResponse): void
  /** A request came on it. */
  spoke(socket: Socket): void
  /** A token or a session was accepted on it: it counts among those of `owner`. Over its limit it stays what it was. */
  identified(socket: Socket, owner: string): void
  /** Counts and logs a connection that is ended elsewhere. */
  refused(socket: Socket, reason: RefusalReason, error?: Error): void
}

/** Call it after the server is created. Registers its counter: once for a registry. */
export function limitConnections(server: Server, needs: ConnectionLimitNeeds): LimitedConnections {
  const { limits, registry, log } = needs
  const refusals = registry.counter({
    name: 'bramble_api_connection_refusals_total',
    help: 'Connections to the API that were refused or ended by the server, by reason.',
    labelNames: ['reason'],
  })
  const users = counts()
  const strangers = strangerConnections<Socket>(limits)
  const answers = new WeakMap<Socket, ServerResponse>()
  const addTo = (user: string, socket: Socket) => {
    users.add(user)
    socket.once('close', () => users.remove(user))
  }

  const refuse = (reason: RefusalReason, address: string | undefined, error?: Error) => {
    refusals.inc({ reason })
    log.info(`${addressKey(address)}/${reason}`, 'API connection refused', { address, reason, ...(error && { error }) })
  }

  server.maxConnections = limits.all
  server.on('connection', (socket: Socket) => {
    socket.once('close', () => strangers.remove(socket))
    const surplus = strangers.add(socket)
    if (surplus === undefined) return
    refuse(surplus.reason, peerAddress(surplus.socket))
    surplus.socket.destroy()
  })
  server.on('secureConnection', (socket) => {
    if (!socket.authorized) return
    strangers.identified(socket)
    const user = userOf(socket)
    // All controllers share a user, and each request that they pass on has a connection.
    if (users.of(user) >= (user === peerControllerIdentity.user ? limits.all / 2 : limits.perUser)) {
      refuse('UserLimit', peerAddress(socket))
      socket.destroy()
      return
    }
    addTo(user, socket)
  })
  // TLS and HTTP errors both come here. Without a listener Node.js answers and closes in the same way, uncounted.
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    const reason = reasonOf(error)
    if (reason !== undefined) refuse(reason, peerAddress(socket), error)
    const line = reason === undefined ? undefined : statusLines[reason]
    const isAnswering = answers.get(socket)?.headersSent === true && answers.get(socket)?.writableFinished !== true
    if (line === undefined || !socket.writable || isAnswering) socket.destroy()
    else endAfterAnswer(socket, `${line}\r\nConnection: close\r\n\r\n`)
  })

  return {
    answering: (socket, outgoing) => void answers.set(socket, outgoing),
    spoke: strangers.spoke,
    identified(socket, owner) {
      if (socket.destroyed || users.of(owner) >= limits.perUser || !strangers.identified(socket)) return
      addTo(owner, socket)
    },
    refused: (socket, reason, error) => refuse(reason, peerAddress(socket), error),
  }
}

/** As long as Go's server waits (rstAvoidanceDelay in net/http/server.go). */
const discardMs = 500

/**
 * Sends the answer and discards what the client still sends, for a moment: closing a connection with unread bytes resets it, and
 * the client loses the answer.
 */
function endAfterAnswer(socket: Socket, answer: string): void {
  socket.removeAllListeners('data')
  socket.end(answer)
  socket.resume()
  const timer = setTimeout(() => socket.destroy(), discardMs).unref()
  socket.once('end', () => socket.destroy()).once('close', () => clearTimeout(timer))
}

/** As Node.js answers them itself (`socketOnError` in lib/_http_server.js). */
const statusLines: { readonly [reason in RefusalReason]?: string } = {
  Timeout: 'HTTP/1.1 408 Request Timeout',
  HeadersTooLarge: 'HTTP/1.1 431 Request Header Fields Too Large',
  NotHTTP: 'HTTP/1.1 400 Bad Request',
}

/** Undefined: the client went away, and nothing was refused. */
function reasonOf({ code = '' }: NodeJS.ErrnoException): RefusalReason | undefined {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'Timeout'
  if (code === 'HPE_HEADER_OVERFLOW') return 'HeadersTooLarge'
  if (code === 'HPE_INVALID_EOF_STATE') return undefined
  if (code.startsWith('HPE_')) return 'NotHTTP'
  return code === 'ERR_TLS_HANDSHAKE_TIMEOUT' || code.startsWith('ERR_SSL_') ? 'Handshake' : undefined
}

function userOf(socket: TLSSocket): string {
  // Without a certificate Node.js gives an empty object, contrary to its types.
  return String(socket.getPeerCertificate()?.subject?.CN)
}

function counts() {
  const byKey = new Map<string, number>()
  return {
    of: (key: string) => byKey.get(key) ?? 0,
    add(key: string) {
      byKey.set(key, (byKey.get(key) ?? 0) + 1)
    },
    remove(key: string) {
      const left = (byKey.get(key) ?? 0) - 1
      if (left > 0) byKey.set(key, left)
      else byKey.delete(key)
    },
  }
}
