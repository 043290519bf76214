/** Handles the packets of one MQTT client: CONNECT, PUBLISH, SUBSCRIBE and the end of its connection. */
import type { IConnectPacket, IPublishPacket } from 'mqtt-packet'
import { isBelowNode, namedTopic } from '../../../api/topics.ts'
import type { LimitedLog } from '../../../daemon/log-limit.ts'
import type { RevocationList } from '../../store/revocations.ts'
import type { NodeListener } from '../broker.ts'
import { mayPublish, maySubscribe, type Refusal } from './authorization.ts'
import type { BrokerConnection, BrokerConnections } from './broker-connections.ts'
import type { BrokerLimits } from './broker-limits.ts'
import type { BrokerMetrics } from './broker-metrics.ts'
import { decideConnect } from './connect-decision.ts'
import { type ConnackCode, connackCode } from './mqtt-encoding.ts'
import type { MqttSessionHandler } from './mqtt-session.ts'
import type { PeerCertificate } from './peer-certificate.ts'

/** Counts the refusal, logs it within limits, and returns the error to close the connection with. */
export type Refuse = (peer: PeerCertificate, what: string, refusal: Refusal) => Error

export type ClientHandlerNeeds = {
  readonly limits: BrokerLimits
  readonly log: LimitedLog
  readonly metrics: BrokerMetrics
  readonly refuse: Refuse
  readonly connections: BrokerConnections
  readonly revocations?: Pick<RevocationList, 'because'> | undefined
  /** By topic: the body, or what makes it. */
  readonly retained: ReadonlyMap<string, string | (() => string)>
  /** undefined: the broker does not listen, or is being closed. */
  readonly listener: () => NodeListener | undefined
}

/** `connection` is called when the client does something, so the connection may be made after its handler. */
export function clientHandler(connection: () => BrokerConnection, needs: ClientHandlerNeeds): MqttSessionHandler {
  const { refuse, limits } = needs
  return {
    connect: (packet) => connect(connection(), packet, needs),
    publish: (packet) => publish(connection(), packet, needs),
    subscribe(filter) {
      const { peer } = connection()
      const permission = maySubscribe(peer.node ?? '', filter)
      if (!permission.allowed) refuse(peer, 'subscribe', permission)
      return permission.allowed
    },
    subscribed(topics) {
      for (const topic of topics) {
        const kept = needs.retained.get(topic)
        const body = typeof kept === 'function' ? kept() : kept
        if (body !== undefined) connection().session.publish(topic, body, { qos: 1, retain: true })
      }
    },
    tooLarge() {
      const reason = `it sends a packet larger than ${limits.maxPacketBytes} bytes`
      refuse(connection().peer, 'connection', { allowed: false, code: 'TooLarge', reason })
    },
    closed: (isGoodbye, error) => closed(connection(), isGoodbye, error, needs),
  }
}

/** The certificate is the identity: a second connection of a node replaces the first, whatever its client id is. */
function connect(connection: BrokerConnection, packet: IConnectPacket, needs: ClientHandlerNeeds): ConnackCode {
  const { user, notBeforeMs, peer } = connection.peer
  const decision = decideConnect({
    certificate: connection.peer,
    packet,
    revokedBecause: user === undefined ? undefined : needs.revocations?.because(user, notBeforeMs),
    keepAliveSeconds: needs.limits.keepAliveSeconds,
  })
  if (!decision.isAccepted) {
    needs.refuse(connection.peer, decision.what, decision.refusal)
    return decision.code
  }
  const { node } = decision
  connection.will = decision.will
  connection.accepted()
  const previous = needs.connections.replace(node, connection)
  needs.listener()?.connected(node, peer)
  if (previous !== undefined) {
    needs.log.info(`${node}/replaced`, 'MQTT connection replaced', { node, address: peer.address })
    previous.session.close()
  }
  return connackCode.accepted
}

function publish(connection: BrokerConnection, packet: IPublishPacket, needs: ClientHandlerNeeds) {
  const { topic, qos, retain, payload } = packet
  const { node = '' } = connection.peer
  const permission = mayPublish(node, { topic: namedTopic(topic, node), qos, retain })
  if (!permission.allowed) {
    needs.refuse(connection.peer, 'publish', permission)
    // A newer agent may publish on topics that this controller does not support: its message is dropped, its connection stays.
    return permission.code === 'UnknownTopic' && isBelowNode(topic, node)
  }
  if (needs.connections.of(node) !== connection) return true
  needs.metrics.messages.inc({ kind: permission.topic.kind })
  return needs.listener()?.message({ node, topic: permission.topic, body: payload.toString() }) ?? true
}

function closed(
  connection: BrokerConnection,
  isGoodbye: boolean,
  error: Error | undefined,
  { connections, listener, log }: ClientHandlerNeeds,
): void {
  const { will, peer } = connection
  const { node } = peer
  if (error !== undefined) {
    log.info(`${node ?? peer.peer.address}/failed`, 'MQTT connection failed', { node, ...peer.peer, error })
  }
  if (!connections.delete(connection) || node === undefined) return
  if (will !== undefined && !isGoodbye) void listener()?.message({ node, ...will })
  listener()?.disconnected(node)
}
