/** The embedded broker: MQTT sessions behind a listener that requires a certificate of the fleet's authority. */

import { isFleetTopic, topicName, topicRules } from '../../../api/topics.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import { type LimitedLog, limitLog } from '../../../daemon/log-limit.ts'
import type { MetricsRegistry } from '../../../daemon/metrics-registry.ts'
import type { RevocationList } from '../../store/revocations.ts'
import type { Broker, NodeListener } from '../broker.ts'
import type { Refusal } from './authorization.ts'
import { type BrokerConnection, brokerConnections } from './broker-connections.ts'
import { type BrokerLimits, defaultBrokerLimits } from './broker-limits.ts'
import { type BrokerMetrics, brokerMetrics } from './broker-metrics.ts'
import { clientHandler, type Refuse } from './client-handler.ts'
import { mqttSession } from './mqtt-session.ts'
import { type FleetAuthorities, readPeerCertificate } from './peer-certificate.ts'
import { type BrokerTls, tlsListener } from './tls-listener.ts'

export type MqttBrokerNeeds = {
  readonly tls: BrokerTls
  readonly clock: Clock
  readonly log: Log
  readonly registry: MetricsRegistry
  readonly limits?: Partial<BrokerLimits>
  /** undefined: every certificate of the authority is valid until it expires. */
  readonly revocations?: Pick<RevocationList, 'because' | 'onChange'>
  /** undefined: the authority of a certificate is not identified. */
  readonly authorities?: FleetAuthorities
}

export interface MqttBroker extends Broker {
  /** Opens the port (0: any) and returns its number. Messages of nodes are passed to `listener` from then on. */
  listen(address: { readonly port: number; readonly host?: string }, listener: NodeListener): Promise<number>
  /** Uses these certificates for connections from now on, and closes connections whose authority is no longer trusted. */
  renew(tls: BrokerTls): void
  /** While paused, it closes every connection that there is, or that is opened. */
  pause(isPaused: boolean): void
}

/** Sessions that receive a message of the controller before other work gets a turn. */
const sessionsAtOnce = 200
/** Characters of a retained body that is not kept, if it can be made again: for each SUBSCRIBE, which costs a client nothing. */
const longestMadeAgain = 32 * 1024
/** How long sending the last messages may take: a frozen reader must not delay a shutdown. */
const closingGraceMs = 500

/** Registers its metrics: once for a registry. */
export async function openMqttBroker(needs: MqttBrokerNeeds): Promise<MqttBroker> {
  const { tls, clock, revocations, authorities } = needs
  const log = limitLog(needs.log, clock)
  const limits = { ...defaultBrokerLimits, ...needs.limits }
  const connections = brokerConnections()
  /** By topic: nodes read single topics only. The body, or what makes it. */
  const retained = new Map<string, string | (() => string)>()
  const closing = new AbortController()
  let listener: NodeListener | undefined
  let isPaused = false

  const metrics = brokerMetrics(needs.registry, {
    connections: () => connections.connectedNodes,
    pending: () => port.pending,
  })
  const refuse = refusing(metrics, log)
  const port = tlsListener({
    ...{ tls, limits, clock, log },
    refused: (reason) => metrics.refusals.inc({ reason }),
    onSecure(socket, accepted) {
      if (isPaused) return void socket.destroy()
      const handler = clientHandler(() => connection, {
        ...{ limits, log, metrics, refuse, connections, revocations, retained },
        listener: () => listener,
      })
      const session = mqttSession({ socket, limits, monotonicMs: clock.monotonicMs, handler })
      const peer = readPeerCertificate(socket, authorities)
      const connection: BrokerConnection = { session, peer, will: undefined, accepted }
      connections.add(connection)
    },
  })

  const disconnect = (code: Refusal['code'], reasonFor: (connection: BrokerConnection) => string | undefined) => {
    for (const connection of connections.all()) {
      const reason = reasonFor(connection)
      if (reason === undefined) continue
      connection.session.close(refuse(connection.peer, 'connection', { allowed: false, code, reason }))
    }
  }
  revocations?.onChange(() =>
    disconnect('Revoked', ({ peer }) => peer.user && revocations.because(peer.user, peer.notBeforeMs)),
  )

  const checkTimes = async () => {
    const everyMs = Math.min(1000, limits.connectTimeoutMs / 4, limits.drainTimeoutMs / 4)
    for (; !closing.signal.aborted; await clock.sleep(everyMs, closing.signal)) {
      port.checkTimes()
      const nowMs = clock.monotonicMs()
      for (const { session } of connections.all()) session.checkTimes(nowMs)
    }
  }
  void checkTimes()

  return {
    identifiesSenders: true,
    async listen({ port: number, host }, to) {
      listener = to
      return await port.listen(number, host)
    },
    renew(next) {
      port.renew(next)
      if (authorities === undefined) return
      disconnect('AuthorityGone', ({ session: { socket } }) => {
        const certificate = socket.getPeerX509Certificate()
        if (certificate === undefined || authorities.of(certificate) !== undefined) return undefined
        return 'the authority of its certificate is no longer trusted'
      })
    },
    pause(next) {
      isPaused = next
      if (isPaused) for (const { session } of connections.all()) session.close(new Error('The broker is paused'))
    },
    async publish(topic, body, { retain = topicRules[topic.kind].retain, again, retained: inPlace } = {}) {
      const { qos } = topicRules[topic.kind]
      const name = topicName(topic)
      if (retain) {
        const kept = inPlace?.() ?? body
        retained.set(name, kept.length <= longestMadeAgain ? (inPlace ?? again ?? body) : kept)
      }
      if (isFleetTopic(topic)) await publishToAll(connections.ofNodes(), name, body)
      else connections.of(topic.node)?.session.publish(name, body, { qos, retain: false })
    },
    async withdraw(topic) {
      retained.delete(topicName(topic))
    },
    async close() {
      listener = undefined
      closing.abort()
      port.close()
      const ended = Promise.all(connections.all().map(({ session }) => session.end()))
      const enough = new AbortController()
      void ended.then(() => enough.abort())
      await clock.sleep(closingGraceMs, enough.signal)
      port.destroy()
      log.close()
    },
  }
}

async function publishToAll(nodes: readonly BrokerConnection[], topic: string, body: string): Promise<void> {
  for (const [index, { session }] of nodes.entries()) {
    session.publish(topic, body, { qos: 1, retain: false })
    if ((index + 1) % sessionsAtOnce === 0) await new Promise((resolve) => setImmediate(resolve))
  }
}

function refusing(metrics: BrokerMetrics, log: LimitedLog): Refuse {
  return ({ node, peer }, what, { code, reason }) => {
    metrics.refusals.inc({ reason: code })
    log.warn(`${node ?? peer.address}/${code}`, 'MQTT refused', { what, node, because: reason, address: peer.address })
    return new Error(reason)
  }
}
