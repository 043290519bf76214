/** The port of the API: its TLS settings, and the order in which it opens and closes. */
import { constants, X509Certificate } from 'node:crypto'
import type { RequestListener } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { createSecureContext, type SecureContext } from 'node:tls'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import { type ConnectionTimes, defaultConnectionTimes } from './connection-limits.ts'
import type { Http2Sessions } from './http2/http2-sessions.ts'

/** PEM. `certificate` is the server's own. Client certificates issued by one of `ca` are trusted. */
export type ServerTls = {
  readonly certificate: string
  readonly key: string
  readonly ca: string
  /** Another certificate, with its chain, for clients that ask for a host name which is in it and not in `certificate`. */
  readonly named?: { readonly certificate: string; readonly key: string }
}

export type HttpsListenerNeeds = {
  readonly tls: ServerTls
  readonly host: string
  /** 0: the system picks. */
  readonly port: number
  readonly times: Partial<ConnectionTimes> | undefined
  readonly clock: Clock
  readonly log: Log
  /** Takes the connections that negotiated HTTP/2. */
  readonly http2: Http2Sessions
}

export interface HttpsListener {
  /** For those that limit and count its connections. */
  readonly server: Server
  /** Opens the port. Rejects when it is in use or not permitted. */
  listen(): Promise<{ readonly port: number }>
  /** New connections use these keys and certificates. */
  renew(tls: ServerTls): void
  /** Stops accepting connections and resolves when all are closed: after `closingMs` those that are left are cut. */
  close(): Promise<void>
}

const maxHeaderBytes = 256 * 1024 // a script in the command line of an exec is part of the address
const closingMs = 5000

export function httpsListener(needs: HttpsListenerNeeds, onRequest: RequestListener): HttpsListener {
  const { tls, host, port, times, clock, log, http2 } = needs
  let contextFor = namedContext(tls)
  const server = createServer(
    {
      ...secureContext(tls),
      SNICallback: (name, done) => done(null, contextFor(name)),
      requestCert: true,
      rejectUnauthorized: false, // bearer tokens come without a certificate: each request is authenticated by itself
      ALPNProtocols: ['h2', 'http/1.1'],
      maxHeaderSize: maxHeaderBytes,
      ...defaultConnectionTimes,
      ...times,
    },
    onRequest,
  )
  divideByProtocol(server, http2)
  const open = openConnections(server)
  return {
    server,
    listen: () =>
      new Promise((resolve, reject) => {
        const fail = (cause: Error) => reject(new Error(`Cannot listen on ${host}:${port}`, { cause }))
        server.once('error', fail)
        server.listen(port, host, () => {
          server.off('error', fail)
          server.on('error', (error) => log.error('API listener failed', { error }))
          resolve({ port: (server.address() as AddressInfo).port })
        })
      }),
    renew(next) {
      server.setSecureContext(secureContext(next))
      contextFor = namedContext(next)
    },
    close: () => closed(server, http2, open, clock),
  }
}

/**
 * Both protocols keep all that Node.js does for them: a secure server of HTTP/2 that allows HTTP/1.1 has none of its limits for
 * connections, times and headers. The first listener is that of HTTP/1.1 (Server in lib/https.js).
 */
function divideByProtocol(server: Server, http2: Http2Sessions): void {
  const [http1] = server.listeners('secureConnection')
  if (http1 === undefined) throw new Error('The HTTPS server does not listen to its connections')
  server.removeListener('secureConnection', http1 as () => void)
  server.prependListener('secureConnection', (socket) => {
    if (socket.alpnProtocol === 'h2') http2.serve(socket)
    else Reflect.apply(http1, server, [socket])
  })
}

function secureContext({ certificate, key, ca }: ServerTls) {
  return { cert: chainOf(certificate, ca), key, ca, ...protocol } as const
}

/** A client that resumes a session has the identity of a certificate without its key: docs/decisions/0008-no-tls-session-resumption.md. */
const protocol = { minVersion: 'TLSv1.2', secureOptions: constants.SSL_OP_NO_TICKET } as const

/** Undefined for a name: the server's own certificate is used. */
function namedContext({ certificate, ca, named }: ServerTls): (name: string) => SecureContext | undefined {
  if (named === undefined) return () => undefined
  const [own, other] = [new X509Certificate(certificate), new X509Certificate(named.certificate)]
  const context = createSecureContext({ cert: named.certificate, key: named.key, ca, ...protocol })
  return (name) => (own.checkHost(name) === undefined && other.checkHost(name) !== undefined ? context : undefined)
}

function chainOf(certificate: string, ca: string): string {
  return certificate.includes(ca.trim()) ? certificate : `${certificate.trimEnd()}\n${ca}`
}

/** All of them, also those in their handshake. */
function openConnections(server: Server): ReadonlySet<Socket> {
  const open = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  })
  return open
}

async function closed(server: Server, http2: Http2Sessions, open: ReadonlySet<Socket>, clock: Clock): Promise<void> {
  const over = new AbortController()
  const ended = new Promise<void>((resolve) => server.close(() => resolve()))
  server.closeIdleConnections()
  http2.closeIdle()
  await Promise.race([ended, clock.sleep(closingMs, over.signal)])
  over.abort()
  server.closeAllConnections()
  http2.destroyAll()
  // A handshake that ends now is in no list of the servers, and a session with unread bytes is not closed by its end.
  for (const socket of [...open]) socket.destroy()
  await ended
}
