/** The HTTPS listener that kubectl talks to: connections and bytes; what they mean is decided in `requests.ts`. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Registry } from 'prom-client'
import { parse as parseYaml } from 'yaml'
import { ApiError } from '../../api/api-error.ts'
import { aborted } from '../../daemon/aborted.ts'
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import type { RevocationList } from '../store/revocations.ts'
import type { Store, StoreOrigin } from '../store/store.ts'
import type { UsageBoard } from '../store/usage-board.ts'
import { writeAnswer } from './answer-writer.ts'
import { type Connections, connectionsOf } from './connections.ts'
import { type RequestCounters, requestCounters } from './request-counters.ts'
import { type ApiRequest, answerRequest, type RequestNeeds } from './requests.ts'
import { type HealthCheck, within } from './system-paths.ts'

/** PEM. `certificate` is the server's own; `ca` are those whose client certificates are good. */
export type ServerTls = { readonly certificate: string; readonly key: string; readonly ca: string }

export type ApiServerNeeds = {
  readonly store: Store
  readonly usage: UsageBoard
  readonly clock: Clock
  readonly log: Log
  /** Its counters are what /metrics shows; the server adds its own. */
  readonly registry: Registry
  readonly tls: ServerTls
  readonly host: string
  /** 0: the system picks. */
  readonly port: number
  /** Of this program, as in `0.1.0`. */
  readonly version: string
  /** Beside the store, what must be well before /readyz says so. */
  readonly readiness?: readonly HealthCheck[]
  readonly random?: () => number
  /** Whom a certificate request (PEM) names; undefined when it cannot be read. */
  readonly commonNameOf: (request: string) => string | undefined
  /** Which store this is; undefined: one that learns nothing from nodes. */
  readonly origin?: StoreOrigin
  /** undefined: every certificate of the authority is good until its end. */
  readonly revocations?: RevocationList
  /** Is this client certificate (DER) of our authority, whatever its dates? undefined: those that have ended are nobody's. */
  readonly isOurs?: (der: Uint8Array) => boolean
  /** For so long after its end a node's certificate still serves to ask for a new one; 0: not at all. */
  readonly lapsedWindowMs?: number
}

export interface ApiServer {
  /** Opens the port. Rejects when it cannot be had. */
  listen(): Promise<{ readonly port: number }>
  /** Serves until `signal` aborts, then ends the watches, lets short requests finish and closes. */
  run(signal: AbortSignal): Promise<void>
  /** From here on connections are made with this. */
  renew(tls: ServerTls): void
}

const maxHeaderBytes = 256 * 1024 // a script in the command line of an exec is part of the address
const maxBodyBytes = 3 * 1024 * 1024 // as Kubernetes
const keepAliveMs = 90_000 // kubectl and client libraries reuse connections for about a minute
const handshakeMs = 10_000
const closingMs = 5000
const healthMs = 2000

export function apiServer(needs: ApiServerNeeds): ApiServer {
  const {
    store,
    usage,
    clock,
    log,
    registry,
    tls,
    host,
    port,
    version,
    readiness = [],
    random = Math.random,
    commonNameOf,
    origin,
    revocations,
    isOurs = () => false,
    lapsedWindowMs = 0,
  } = needs
  const counters = requestCounters(registry)
  const closing = new AbortController()
  const requests: RequestNeeds = {
    store,
    usage,
    clock,
    log,
    random,
    version,
    parseYaml,
    commonNameOf,
    ...(origin && { origin }),
    ...(revocations && { revocations }),
    lapsedWindowMs,
    metrics: async () => ({ text: await registry.metrics(), contentType: registry.contentType }),
    readiness: [within('store', () => store.version(), clock, healthMs), ...readiness],
  }
  const server = createServer(
    {
      ...secureContext(tls),
      requestCert: true,
      rejectUnauthorized: false, // bearer tokens come without a certificate: each request is judged by itself
      maxHeaderSize: maxHeaderBytes,
      handshakeTimeout: handshakeMs,
      keepAliveTimeout: keepAliveMs,
    },
    (incoming, outgoing) => {
      void serve(incoming, outgoing, connections, requests, counters, log, closing.signal)
    },
  )
  const connections = connectionsOf(server, { revocations, isOurs, log })
  server.on('tlsClientError', (error) => log.debug('TLS handshake failed', { error }))

  return {
    listen: () =>
      new Promise((resolve, reject) => {
        const refuse = (cause: Error) => reject(new Error(`Cannot listen on ${host}:${port}`, { cause }))
        server.once('error', refuse)
        server.listen(port, host, () => {
          server.off('error', refuse)
          server.on('error', (error) => log.error('API listener failed', { error }))
          resolve({ port: (server.address() as AddressInfo).port })
        })
      }),
    renew: (next) => server.setSecureContext(secureContext(next)),
    async run(signal) {
      await aborted(signal)
      closing.abort()
      await closed(server, clock)
    },
  }
}

async function serve(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  connections: Connections,
  needs: RequestNeeds,
  counters: RequestCounters,
  log: Log,
  closing: AbortSignal,
): Promise<void> {
  const startedMs = needs.clock.monotonicMs()
  const gone = new AbortController()
  const leave = () => gone.abort()
  outgoing.once('close', leave)
  outgoing.on('error', leave)
  closing.addEventListener('abort', leave, { once: true })
  if (closing.aborted) leave()
  try {
    const answered = await answerRequest(requestOf(incoming, connections, gone.signal), needs)
    const { answer } = answered
    const isWatch = answer.kind === 'stream'
    const code = isWatch ? 200 : answer.code
    if (isWatch) counters.watches.inc()
    else counters.seen(answered, code, needs.clock.monotonicMs() - startedMs)
    try {
      await writeAnswer(answer, incoming.method === 'HEAD', outgoing, gone.signal, needs.clock)
    } finally {
      if (isWatch) {
        counters.watches.dec()
        counters.seen(answered, code)
      }
    }
    const { method, url } = incoming
    log.debug('Request answered', { method, url, code, user: answered.user })
  } catch (error) {
    log.error('Answer cut short', { method: incoming.method, url: incoming.url, error })
    outgoing.destroy()
  } finally {
    closing.removeEventListener('abort', leave)
  }
}

function requestOf(incoming: IncomingMessage, connections: Connections, signal: AbortSignal): ApiRequest {
  const [path = '/', query = ''] = splitOnce(incoming.url ?? '/', '?')
  return {
    method: incoming.method ?? 'GET',
    path,
    query: new URLSearchParams(query),
    certificate: connections.certificateOf(incoming.socket),
    headers: incoming.headers,
    readBody: () => bodyOf(incoming),
    signal,
  }
}

function splitOnce(text: string, at: string): [string, string?] {
  const index = text.indexOf(at)
  return index < 0 ? [text] : [text.slice(0, index), text.slice(index + 1)]
}

/** What is beyond the limit is read and thrown away, so that the client gets to hear why. */
function bodyOf(incoming: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    incoming.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size <= maxBodyBytes) {
        chunks.push(chunk)
        return
      }
      chunks.length = 0
      reject(new ApiError('RequestEntityTooLarge', `Request entity too large: limit is ${maxBodyBytes}`))
    })
    incoming.once('end', () => resolve(Buffer.concat(chunks)))
    incoming.once('close', () => reject(new ApiError('BadRequest', 'the body of the request ended early')))
    incoming.once('error', (cause) => {
      reject(new ApiError('BadRequest', 'the body of the request cannot be read', undefined, { cause }))
    })
  })
}

function secureContext({ certificate, key, ca }: ServerTls) {
  return { cert: chainOf(certificate, ca), key, ca, minVersion: 'TLSv1.2' } as const
}

function chainOf(certificate: string, ca: string): string {
  return certificate.includes(ca.trim()) ? certificate : `${certificate.trimEnd()}\n${ca}`
}

async function closed(server: Server, clock: Clock): Promise<void> {
  const over = new AbortController()
  const ended = new Promise<void>((resolve) => server.close(() => resolve()))
  server.closeIdleConnections()
  await Promise.race([ended, clock.sleep(closingMs, over.signal)])
  over.abort()
  server.closeAllConnections()
  await ended
}
