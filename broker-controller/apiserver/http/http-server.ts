/** The API as a server: connects its port with its connections, limits, counters and requests. */

import { setMaxListeners } from 'node:events'
import type { AddressRules } from '../../../api/node/reported-addresses.ts'
import { aborted } from '../../../daemon/aborted.ts'
import { type LimitedLog, limitLog } from '../../../daemon/log-limit.ts'
import type { MetricsRegistry } from '../../../daemon/metrics-registry.ts'
import { metricsContentType } from '../../../daemon/prometheus-text.ts'
import type { RevocationList } from '../../store/revocations.ts'
import { heldAccess } from '../authorization/held-access.ts'
import type { RequestNeeds } from '../filters/api-request.ts'
import { type LocalRequests, localRequests } from '../filters/in-process-api.ts'
import { flowControl } from '../flow-control/flow-control.ts'
import { defaultFlowLimits, type FlowLimits } from '../flow-control/flow-levels.ts'
import { type ServiceNetwork, serviceNetwork } from '../handlers/service-network.ts'
import { checkWithin, type ReadinessCheck, readinessMetrics } from '../system-paths.ts'
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
import { httpUpgrade } from './http-upgrade.ts'
import { http2Sessions } from './http2/http2-sessions.ts'
import { httpsListener, type ServerTls } from './https-listener.ts'
import { messagesOf } from './messages.ts'
import { requestCounters } from './request-counters.ts'
import { slowReaders } from './slow-readers.ts'
import { readAsStreams } from './stream-reading.ts'

export type ApiServerNeeds = Pick<
  RequestNeeds,
  | 'store'
  | 'kinds'
  | 'access'
  | 'apiServices'
  | 'extensionProxy'
  | 'extensions'
  | 'tokens'
  | 'serverUrl'
  | 'storage'
  | 'releases'
  | 'backups'
  | 'events'
  | 'usage'
  | 'clock'
  | 'log'
  | 'version'
  | 'commonNameOf'
  | 'origin'
  | 'checkpoints'
  | 'contentProver'
  | 'sessions'
  | 'quotas'
  | 'podSecurity'
  | 'webhooks'
  | 'conversions'
  | 'lapsedWindowMs'
  | 'audit'
  | 'dashboard'
  | 'replica'
> & {
  /** /metrics shows it; the server adds its own counters. */
  readonly registry: MetricsRegistry
  readonly tls: ServerTls
  readonly host: string
  /** 0: the system picks. */
  readonly port: number
  /** Checks of /readyz in addition to that of the store. */
  readonly readiness?: readonly ReadinessCheck[]
  readonly random?: () => number
  /** undefined: the default range of addresses. */
  readonly services?: ServiceNetwork
  /** See `ResourceNeeds`. */
  readonly addressRules?: AddressRules
  /** undefined: no certificate is revoked. */
  readonly revocations?: RevocationList
  /** Whether a trusted authority issued this client certificate (DER), whatever its dates. undefined: expired ones are not trusted. */
  readonly isOurs?: (der: Uint8Array) => boolean
  readonly connectionLimits?: Partial<ConnectionLimits>
  readonly connectionTimes?: Partial<ConnectionTimes>
  readonly flowLimits?: Partial<FlowLimits>
}

export interface ApiServer {
  /** Opens the port. Rejects when it is in use or not permitted. */
  listen(): Promise<{ readonly port: number }>
  /** Serves until `signal` aborts, then ends the watches, lets short requests finish and closes. */
  run(signal: AbortSignal): Promise<void>
  /** New connections use these keys and certificates. Those whose client certificate is no longer trusted are closed. */
  renew(tls: ServerTls): void
  /** For parts of this program that act as a user of their own. */
  readonly local: LocalRequests
}

const healthMs = 2000

export function apiServer(needs: ApiServerNeeds): ApiServer {
  const { clock, log, registry, tls, host, port, revocations, isOurs, connectionLimits, connectionTimes } = needs
  /** For lines that a client can cause. Each has its own limit, so that none of them hides the others. */
  const limited = limitLog(log, clock)
  const connectionLog = limitLog(log, clock, { linesInTotal: 30 })
  const flowLog = limitLog(log, clock, { linesPerKey: 1, linesInTotal: 30 })
  const closing = new AbortController()
  setMaxListeners(0, closing.signal) // every request under way listens until it is answered: many are not a leak

  const slow = slowReaders(clock, registry)
  const http2 = http2Sessions({
    times: { ...defaultConnectionTimes, ...connectionTimes },
    clock,
    log,
    refused: (socket, reason, error) => limitedConnections.refused(socket, reason, error),
    slow,
    answer: (messages) => httpExchange(messages, exchange),
  })
  const listening = { tls, host, port, times: connectionTimes, clock, log, http2 }
  const listener = httpsListener(listening, (incoming, outgoing) => {
    limitedConnections.answering(incoming.socket, outgoing)
    void httpExchange(messagesOf(incoming, outgoing), exchange)
  })
  const { server } = listener
  const limits = { ...defaultConnectionLimits, ...connectionLimits }
  const limitedConnections = limitConnections(server, { limits, registry, log: connectionLog })
  readAsStreams(server)
  server.on('upgrade', (incoming, socket, head) => void httpUpgrade({ incoming, socket, head }, exchange))
  const connections = connectionsOf(server, { revocations, isOurs: isOurs ?? (() => false), log })
  const held = heldAccess({ store: needs.store, access: needs.access, clock, registry, log: flowLog })
  const exchange = {
    requests: { ...requestNeeds(needs, limited, flowLog), heldAccess: held },
    certificateOf: connections.certificateOf,
    limitedConnections,
    counters: requestCounters(registry),
    slow,
    log,
    limited,
    closing: closing.signal,
  }

  return {
    local: localRequests(exchange.requests, `bramble-controller/${needs.version}`),
    listen: listener.listen,
    renew(next) {
      listener.renew(next)
      if (isOurs !== undefined) connections.authoritiesChanged()
    },
    async run(signal) {
      const asking = held.run(signal)
      await aborted(signal)
      closing.abort()
      await listener.close()
      await asking
      for (const one of [limited, connectionLog, flowLog]) one.close()
    },
  }
}

/** What a request needs to be answered, the same for all of them. */
function requestNeeds(needs: ApiServerNeeds, limited: LimitedLog, flowLog: LimitedLog): RequestNeeds {
  const { registry, tls: _, host: __, port: ___, isOurs: ____, connectionLimits, connectionTimes, ...rest } = needs
  const { readiness = [], random = Math.random, services = serviceNetwork(), flowLimits, ...shared } = rest
  const { store, clock, lapsedWindowMs = 0 } = shared
  const checks = [checkWithin('store', () => store.version(), clock, healthMs), ...readiness]
  return {
    ...shared,
    random,
    services,
    parseYaml: parseYamlBody,
    lapsedWindowMs,
    limited,
    flowControl: flowControl({ limits: { ...defaultFlowLimits, ...flowLimits }, clock, registry, log: flowLog }),
    metrics: async () => ({
      text: `${registry.text()}${await readinessMetrics(checks)}`,
      contentType: metricsContentType,
    }),
    readiness: checks,
  }
}
