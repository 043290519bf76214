/** The embedded broker: MQTT sessions behind a listener that asks for a certificate of our authority. */
import type { TLSSocket } from 'node:tls'
import type { IConnectPacket, IPublishPacket } from 'mqtt-packet'
import type { Registry } from 'prom-client'
import { isBelowNode, type NodeTopic, namedTopic, type Topic, topicName, topicRules } from '../../../api/topics.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import { limitLog } from '../../../daemon/log-limit.ts'
import type { RevocationList } from '../../store/revocations.ts'
import type { Broker, NodeListener } from '../broker.ts'
import { mayPublish, maySubscribe, type Permission, type Refusal } from './authorization.ts'
import { type BrokerLimits, defaultBrokerLimits } from './broker-limits.ts'
import { brokerMetrics } from './broker-metrics.ts'
import { type ConnackCode, connackCode } from './mqtt-encoding.ts'
import { type MqttSession, mqttSession } from './mqtt-session.ts'
import { type FleetAuthorities, type PeerCertificate, readPeerCertificate } from './peer-certificate.ts'
import { type BrokerTls, tlsListener } from './tls-listener.ts'

export type MqttBrokerNeeds = {
  readonly tls: BrokerTls
  readonly clock: Clock
  readonly log: Log
  readonly registry: Registry
  readonly limits?: Partial<BrokerLimits>
  /** undefined: every certificate of the authority is good until its end. */
  readonly revocations?: Pick<RevocationList, 'because' | 'onChange'>
  /** undefined: the authority of a certificate is not looked at. */
  readonly authorities?: FleetAuthorities
}

export interface MqttBroker extends Broker {
  /** Opens the port (0: any) and gives its number. Messages of nodes go to `listener` from then on. */
  listen(address: { readonly port: number; readonly host?: string }, listener: NodeListener): Promise<number>
  /** From here on connections are made with this. */
  renew(tls: BrokerTls): void
}

/** One connection whose handshake is done. */
type Connection = {
  readonly session: MqttSession
  readonly peer: PeerCertificate
  /** The last will of an accepted CONNECT. */
  will: { readonly topic: NodeTopic; readonly body: string } | undefined
  readonly settled: () => void
}

export async function openMqttBroker(needs: MqttBrokerNeeds): Promise<MqttBroker> {
  const { tls, clock, registry, revocations, authorities } = needs
  const log = limitLog(needs.log, clock)
  const limit = { ...defaultBrokerLimits, ...needs.limits }
  const connections = new Set<Connection>()
  /** The connection each node has now. */
  const current = new Map<string, Connection>()
  /** By topic: nodes read single topics only. */
  const retained = new Map<string, string>()
  const closing = new AbortController()
  let listener: NodeListener | undefined

  const { refusals, messages } = brokerMetrics(registry, {
    connections: () => current.size,
    pending: () => port.pending,
  })

  /** Counts it, logs it within limits, and gives the error that the connection is closed with. */
  const refuse = ({ node, peer }: PeerCertificate, what: string, { code, reason }: Refusal): Error => {
    refusals.inc({ reason: code })
    log.warn(`${node ?? peer.address}/${code}`, 'MQTT refused', { what, node, because: reason, address: peer.address })
    return new Error(reason)
  }

  const welcome = (socket: TLSSocket, settled: () => void) => {
    const peer = readPeerCertificate(socket, authorities)
    const connection: Connection = {
      peer,
      will: undefined,
      settled,
      session: mqttSession({
        socket,
        limits: limit,
        monotonicMs: clock.monotonicMs,
        handler: {
          connect: (packet) => accept(connection, packet),
          publish: (packet) => take(connection, packet),
          subscribe: (filter) => granted(connection, 'subscribe', maySubscribe(peer.node ?? '', filter)) !== undefined,
          subscribed: (topics) => sendRetained(connection, topics),
          tooLarge: () => {
            const reason = `it sends a packet larger than ${limit.maxPacketBytes} bytes`
            refuse(peer, 'connection', { allowed: false, code: 'TooLarge', reason })
          },
          closed: (isGoodbye, error) => ended(connection, isGoodbye, error),
        },
      }),
    }
    connections.add(connection)
  }

  const granted = <T extends Topic>({ peer }: Connection, what: string, answer: Permission<T>): T | undefined => {
    if (answer.allowed) return answer.topic
    refuse(peer, what, answer)
    return undefined
  }

  /** The certificate is the identity: a second connection of the node replaces the first, whatever its client id is. */
  const accept = (connection: Connection, packet: IConnectPacket): ConnackCode => {
    const { peer } = connection
    const refusal = refusalOf(peer)
    if (refusal !== undefined) refuse(peer, 'connection', refusal)
    const { node } = peer
    if (refusal !== undefined || node === undefined) return connackCode.notAuthorized
    const { will, keepalive = 0 } = packet
    if (will !== undefined) {
      const publication = { topic: will.topic, qos: will.qos ?? 0, retain: will.retain ?? false }
      const topic = granted(connection, 'last will', mayPublish(node, publication))
      if (topic === undefined) return connackCode.notAuthorized
      connection.will = { topic, body: will.payload.toString() }
    }
    if (keepalive === 0 || keepalive > limit.keepAliveSeconds) {
      const reason = `its keep alive is ${keepalive} s, and must be 1 to ${limit.keepAliveSeconds} s`
      refuse(peer, 'connection', { allowed: false, code: 'KeepAlive', reason })
      return connackCode.keepAliveRefused
    }
    connection.settled()
    const previous = current.get(node)
    current.set(node, connection)
    listener?.connected(node, peer.peer)
    if (previous === undefined) return connackCode.accepted
    log.info(`${node}/replaced`, 'MQTT connection replaced', { node, address: peer.peer.address })
    previous.session.close()
    return connackCode.accepted
  }

  const refusalOf = ({ user, node, notBeforeMs }: PeerCertificate): Refusal | undefined => {
    const because = user === undefined ? undefined : revocations?.because(user, notBeforeMs)
    if (because !== undefined) return { allowed: false, code: 'Revoked', reason: because }
    return node === undefined ? { allowed: false, code: 'NotANode', reason: `${user} is not a node` } : undefined
  }

  const take = (connection: Connection, packet: IPublishPacket): boolean | Promise<void> => {
    const { node = '' } = connection.peer
    const { qos, retain } = packet
    const answer = mayPublish(node, { topic: namedTopic(packet.topic, node), qos, retain })
    if (!answer.allowed) {
      refuse(connection.peer, 'publish', answer)
      // A later agent may publish more than this controller knows: that is dropped, and its connection stands.
      return answer.code === 'UnknownTopic' && isBelowNode(packet.topic, node)
    }
    if (current.get(node) !== connection) return true
    messages.inc({ kind: answer.topic.kind })
    return listener?.message({ node, topic: answer.topic, body: packet.payload.toString() }) ?? true
  }

  const sendRetained = ({ session }: Connection, topics: readonly string[]) => {
    for (const topic of topics) {
      const body = retained.get(topic)
      if (body !== undefined) session.publish(topic, body, { qos: 1, retain: true })
    }
  }

  const ended = (connection: Connection, isGoodbye: boolean, error: Error | undefined) => {
    const { peer, will } = connection
    connections.delete(connection)
    if (error !== undefined) {
      const { node } = peer
      log.info(`${node ?? peer.peer.address}/failed`, 'MQTT connection failed', { node, ...peer.peer, error })
    }
    if (peer.node === undefined || current.get(peer.node) !== connection) return
    current.delete(peer.node)
    if (will !== undefined && !isGoodbye) {
      void listener?.message({ node: peer.node, topic: will.topic, body: will.body })
    }
    listener?.disconnected(peer.node)
  }

  const cut = (code: Refusal['code'], reasonFor: (connection: Connection) => string | undefined) => {
    for (const connection of connections) {
      const reason = reasonFor(connection)
      if (reason !== undefined)
        connection.session.close(refuse(connection.peer, 'connection', { allowed: false, code, reason }))
    }
  }

  const port = tlsListener({
    tls,
    limits: limit,
    clock,
    log,
    refused: (reason) => refusals.inc({ reason }),
    onSecure: welcome,
  })
  revocations?.onChange(() =>
    cut('Revoked', ({ peer }) => peer.user && revocations.because(peer.user, peer.notBeforeMs)),
  )
  const checkTimes = async () => {
    const everyMs = Math.min(1000, limit.connectTimeoutMs / 4, limit.drainTimeoutMs / 4)
    for (; !closing.signal.aborted; await clock.sleep(everyMs, closing.signal)) {
      port.checkTimes()
      const nowMs = clock.monotonicMs()
      for (const { session } of connections) session.checkTimes(nowMs)
    }
  }
  void checkTimes()

  /** To every node that reads the topic; some at a time, for a fleet may have ten thousand. */
  const publishToAll = async (topic: string, body: string) => {
    let sent = 0
    for (const { session } of [...current.values()]) {
      session.publish(topic, body, { qos: 1, retain: false })
      if (++sent % sessionsAtOnce === 0) await new Promise((resolve) => setImmediate(resolve))
    }
  }

  return {
    async listen({ port: number, host }, told) {
      listener = told
      return await port.listen(number, host)
    },
    renew(next) {
      port.renew(next)
      if (authorities === undefined) return
      cut('AuthorityGone', ({ session: { socket } }) => {
        const certificate = socket.getPeerX509Certificate()
        if (certificate === undefined || authorities.of(certificate) !== undefined) return undefined
        return 'the authority of its certificate is trusted no more'
      })
    },
    async publish(topic, body, { retain = topicRules[topic.kind].retain } = {}) {
      const { qos } = topicRules[topic.kind]
      const name = topicName(topic)
      if (retain) retained.set(name, body)
      if (topic.kind === 'controller') await publishToAll(name, body)
      else current.get(topic.node)?.session.publish(name, body, { qos, retain: false })
    },
    async withdraw(topic) {
      retained.delete(topicName(topic))
    },
    async close() {
      listener = undefined
      closing.abort()
      port.close()
      const ends = [...connections].map(({ session }) => session.end())
      const enough = new AbortController()
      void Promise.all(ends).then(() => enough.abort())
      await clock.sleep(closingGraceMs, enough.signal)
      port.destroy()
      log.close()
    },
  }
}

const sessionsAtOnce = 200

/** How long the last messages may take to get out: a frozen reader must not hold up a shutdown. */
const closingGraceMs = 500
