/** The HTTPS listener that kubectl talks to: its connections, and how it closes. */
import { setMaxListeners } from 'node:events'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Registry } from 'prom-client'
import { aborted } from '../../../daemon/aborted.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { limitLog } from '../../../daemon/log-limit.ts'
import type { RevocationList } from '../../store/revocations.ts'
import { flowControl } from '../access/flow-control.ts'
import { defaultFlowLimits, type FlowLimits } from '../access/flow-levels.ts'
import type { RequestNeeds } from '../requests.ts'
import { checkWithin, type ReadinessCheck } from '../system-paths.ts'
import { parseYamlBody } from '../wire/yaml-body.ts'
import {
  type ConnectionLimits,
  type ConnectionTimes,
  defaultConnectionLimits,
  defaultConnectionTimes,
  limitConnections,
} from './connection-limits.ts'
import { connectionsOf } from './connections.ts'
import { httpExchange } from './http-exchange.ts'
import { requestCounters } from './request-counters.ts'
import { slowReaders } from './slow-readers.ts'
import { readAsStreams } from './stream-reading.ts'

/** PEM. `certificate` is the server's own; `ca` are those whose client certificates are good. */
export type ServerTls = { readonly certificate: string; readonly key: string; readonly ca: string }

export type ApiServerNeeds = Pick<
  RequestNeeds,
  | 'store'
  | 'kinds'
  | 'events'
  | 'usage'
  | 'clock'
  | 'log'
  | 'version'
  | 'commonNameOf'
  | 'origin'
  | 'checkpoints'
  | 'lapsedWindowMs'
> & {
  /** Its counters are what /metrics shows; the server adds its own. */
  readonly registry: Registry
  readonly tls: ServerTls
  readonly host: string
  /** 0: the system picks. */
  readonly port: number
  /** Beside the store, what must be well before /readyz answers ok. */
  readonly readiness?: readonly ReadinessCheck[]
  readonly random?: () => number
  /** undefined: every certificate of the authority is good until its end. */
  readonly revocations?: RevocationList
  /** Is this client certificate (DER) of our authority, whatever its dates? undefined: expired ones are of no authority. */
  readonly isOurs?: (der: Uint8Array) => boolean
  readonly connectionLimits?: Partial<ConnectionLimits>
  readonly connectionTimes?: Partial<ConnectionTimes>
  readonly flowLimits?: Partial<FlowLimits>
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
const closingMs = 5000
const healthMs = 2000

export function apiServer(needs: ApiServerNeeds): ApiServer {
  const {
    store,
    kinds,
    events,
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
    checkpoints,
    revocations,
    isOurs,
    lapsedWindowMs = 0,
    connectionLimits,
    connectionTimes,
    flowLimits,
  } = needs
  /** For lines that a client can cause. Those of strangers and of busy clients hide no errors. */
  const limited = limitLog(log, clock)
  const connectionLog = limitLog(log, clock, { linesInTotal: 30 })
  const flowLog = limitLog(log, clock, { linesPerKey: 1, linesInTotal: 30 })
  const closing = new AbortController()
  setMaxListeners(0, closing.signal) // every request under way listens until it is answered: many is no leak
  const requests: RequestNeeds = {
    store,
    kinds,
    events,
    usage,
    clock,
    log,
    random,
    version,
    parseYaml: parseYamlBody,
    commonNameOf,
    ...(origin && { origin }),
    ...(checkpoints && { checkpoints }),
    ...(revocations && { revocations }),
    lapsedWindowMs,
    limited,
    flowControl: flowControl({ limits: { ...defaultFlowLimits, ...flowLimits }, clock, registry, log: flowLog }),
    metrics: async () => ({ text: await registry.metrics(), contentType: registry.contentType }),
    readiness: [checkWithin('store', () => store.version(), clock, healthMs), ...readiness],
  }
  const server = createServer(
    {
      ...secureContext(tls),
      requestCert: true,
      rejectUnauthorized: false, // bearer tokens come without a certificate: each request is judged by itself
      maxHeaderSize: maxHeaderBytes,
      ...defaultConnectionTimes,
      ...connectionTimes,
    },
    (incoming, outgoing) => {
      limitedConnections.answering(incoming.socket, outgoing)
      void httpExchange(incoming, outgoing, exchange)
    },
  )
  const limits = { ...defaultConnectionLimits, ...connectionLimits }
  const limitedConnections = limitConnections(server, { limits, registry, log: connectionLog })
  readAsStreams(server)
  const connections = connectionsOf(server, { revocations, isOurs: isOurs ?? (() => false), log })
  const { certificateOf } = connections
  const exchange = {
    requests,
    certificateOf,
    counters: requestCounters(registry),
    slow: slowReaders(clock, registry),
    log,
    limited,
    closing: closing.signal,
  }

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
    renew(next) {
      server.setSecureContext(secureContext(next))
      if (isOurs !== undefined) connections.authoritiesChanged()
    },
    async run(signal) {
      await aborted(signal)
      closing.abort()
      await closed(server, clock)
      for (const one of [limited, connectionLog, flowLog]) one.close()
    },
  }
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
