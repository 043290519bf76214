/** The embedded broker: aedes behind a listener that asks for a certificate of our authority. */
import { constants } from 'node:crypto'
import type { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import { createServer, type Server, type TLSSocket } from 'node:tls'
import { Aedes, type AuthenticateError, type Client, type Connection } from 'aedes'
import { Counter, Gauge, type Registry } from 'prom-client'
import { identityOfSubject, nodeOf } from '../../api/identity.ts'
import { isBelowNode, namedTopic, parseTopic, topicName, topicRules } from '../../api/topics.ts'
import { type Clock, rfc3339 } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import type { RevocationList } from '../store/revocations.ts'
import { mayPublish, maySubscribe, type Refusal } from './authorization.ts'
import type { Broker, NodeListener, Peer } from './broker.ts'
import { packetMeter } from './packet-meter.ts'

/** All PEM. */
export type BrokerTls = { readonly ca: string; readonly certificate: string; readonly key: string }

export type MqttBrokerNeeds = {
  readonly tls: BrokerTls
  readonly clock: Clock
  readonly log: Log
  readonly registry: Registry
  readonly limits?: Partial<BrokerLimits>
  /** undefined: every certificate of the authority is good until its end. */
  readonly revocations?: Pick<RevocationList, 'because' | 'onChange'>
  /** The hash of the authority that signed this certificate (DER). */
  readonly authorityOf?: (der: Uint8Array) => string | undefined
}

export type BrokerLimits = {
  /** A reader that takes nothing for so long is cut off. */
  readonly drainTimeoutMs: number
  /** From the first byte to the end of the handshake, and again to the CONNECT packet. */
  readonly connectTimeoutMs: number
  /** The largest packet a node may send. A NodeStatus with its fifty largest images is about 20 KB. */
  readonly maxPacketBytes: number
  /** The longest keep alive a node may ask for; it must ask for one. One and a half heartbeats of a lease of an hour. */
  readonly keepAliveSeconds: number
  /** Packets a node may send ahead of the answer to its CONNECT. */
  readonly queueLimit: number
  readonly maxConnections: number
}

const defaultLimits: BrokerLimits = {
  drainTimeoutMs: 5000,
  connectTimeoutMs: 10_000,
  maxPacketBytes: 256 * 1024,
  keepAliveSeconds: 1_350,
  queueLimit: 42,
  maxConnections: 20_000,
}

export interface MqttBroker extends Broker {
  /** Opens the port (0: any) and gives its number. What nodes say is told to `listener` from then on. */
  listen(address: { readonly port: number; readonly host?: string }, listener: NodeListener): Promise<number>
  /** From here on connections are made with this. */
  renew(tls: BrokerTls): void
}

export async function openMqttBroker(needs: MqttBrokerNeeds): Promise<MqttBroker> {
  const { tls, clock, log, registry, limits = {}, revocations } = needs
  const limit = { ...defaultLimits, ...limits }
  /** The node a connection's certificate names; the connection each node has now. */
  const nodes = new WeakMap<Client, string>()
  const current = new Map<string, Client>()
  const peers = new WeakMap<Client, Peer>()
  const refusedWills = new WeakSet<Client>()
  const sockets = new Set<Socket>()
  const secured = new Map<TLSSocket, Client>()
  const publishing = new Set<Promise<void>>()
  let listener: NodeListener | undefined

  const refusals = new Counter({
    name: 'bramble_broker_refusals_total',
    help: 'What was refused to clients of the MQTT broker',
    labelNames: ['reason'],
    registers: [registry],
  })
  const messages = new Counter({
    name: 'bramble_broker_messages_total',
    help: 'Messages of nodes taken by the MQTT broker',
    labelNames: ['kind'],
    registers: [registry],
  })
  new Gauge({
    name: 'bramble_broker_connections',
    help: 'Nodes connected to the MQTT broker',
    registers: [registry],
    collect() {
      this.set(current.size)
    },
  })

  const refuse = (client: Client, what: string, { code, reason }: Refusal) => {
    refusals.inc({ reason: code })
    log.warn('MQTT refused', { what, node: nodes.get(client), because: reason, address: addressOf(client.conn) })
    return new Error(reason)
  }

  const aedes = await Aedes.createBroker({
    // No limit, for a message counts until the slowest reader has it: one that reads nothing would stop all others.
    // What waits for it is bounded all the same: nobody but the controller writes to nodes, and drainTimeout ends it.
    concurrency: 0,
    drainTimeout: limit.drainTimeoutMs,
    connectTimeout: limit.connectTimeoutMs,
    keepaliveLimit: limit.keepAliveSeconds,
    queueLimit: limit.queueLimit,
    maxTopicLevels: 8,

    preConnect(client, packet, done) {
      const node = nodes.get(client)
      if (node === undefined) return done(null, true)
      // The certificate is the identity: a second connection of the node takes the first's place, whatever it calls
      // itself. And the broker remembers no sessions, for whoever connects is told everything.
      Object.assign(packet, { clientId: node, clean: true })
      const { will } = packet
      const answer = will && mayPublish(node, { topic: will.topic, qos: will.qos ?? 0, retain: will.retain ?? false })
      if (answer?.allowed === false) {
        refuse(client, 'last will', answer)
        refusedWills.add(client)
      }
      done(null, true)
    },

    authenticate(client, _username, _password, done) {
      const node = nodes.get(client)
      if (node === undefined || refusedWills.has(client)) return done(notAuthorized, false)
      const previous = current.get(node)
      current.set(node, client)
      const { address, certificate } = peers.get(client) ?? {}
      listener?.connected(node, { address, ...(certificate && { certificate }) })
      if (previous === undefined) return done(null, true)
      log.info('MQTT connection replaced', { node, address: addressOf(client.conn) })
      previous.close(() => done(null, true))
    },

    authorizePublish(client, packet, done) {
      const node = client === null ? undefined : nodes.get(client)
      if (client === null || node === undefined) return done(notAuthorized)
      const topic = namedTopic(packet.topic, node)
      const answer = mayPublish(node, { topic, qos: packet.qos, retain: packet.retain })
      if (!answer.allowed) {
        const refused = refuse(client, 'publish', answer)
        // A later agent may say more than we understand: nobody hears it, and it need not lose its link for that.
        if (answer.code !== 'UnknownTopic' || !isBelowNode(packet.topic, node)) return done(refused)
      }
      // What nodes say is in the store, and nobody else reads it: no need to remember it here too.
      packet.retain = false
      done(null)
    },

    authorizeSubscribe(client, subscription, done) {
      const answer = maySubscribe(nodes.get(client) ?? '', subscription.topic)
      if (answer.allowed) return done(null, subscription)
      refuse(client, 'subscribe', answer)
      done(null, null)
    },

    published({ topic: name, payload }, client, done) {
      const node = client ? nodes.get(client) : undefined
      const topic = node === undefined ? undefined : parseTopic(namedTopic(name, node))
      if (node === undefined || topic === undefined || topic.kind === 'controller') return done(null)
      if (listener === undefined || (current.get(node) ?? client) !== client) return done(null)
      messages.inc({ kind: topic.kind })
      void listener.message({ node, topic, body: payload.toString() }).then(() => done(null))
    },
  })
  aedes.on('clientError', (client, error) => log.info('MQTT connection failed', { node: nodes.get(client), error }))
  aedes.on('connectionError', (client, error) =>
    log.info('MQTT connection failed', { address: addressOf(client.conn), error }),
  )
  const emitter: EventEmitter = aedes
  emitter.on('error', (error) => log.error('MQTT broker failed', { error }))

  const revoked = (socket: TLSSocket): string | undefined => {
    const { subject, valid_from } = socket.getPeerCertificate()
    return revocations?.because(String(subject?.CN), Date.parse(valid_from))
  }
  const cut = (code: Refusal['code'], reasonFor: (socket: TLSSocket) => string | undefined) => {
    for (const [socket, client] of secured) {
      if (socket.destroyed) continue // and has no certificate any more
      const reason = reasonFor(socket)
      if (reason !== undefined) socket.destroy(refuse(client, 'connection', { allowed: false, code, reason }))
    }
  }
  revocations?.onChange(() => cut('Revoked', revoked))

  const server = createServer({
    ...secureContext(tls),
    requestCert: true,
    rejectUnauthorized: true,
    handshakeTimeout: limit.connectTimeoutMs,
    noDelay: true,
  })
  server.maxConnections = limit.maxConnections
  server.on('error', (error) => log.warn('MQTT listener failed', { error }))
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  server.on('tlsClientError', (error, socket) => {
    refusals.inc({ reason: 'Handshake' })
    log.info('TLS handshake failed', { address: socket.remoteAddress, subject: subjectOf(socket)?.CN, error })
  })
  server.on('secureConnection', (socket) => {
    const client = aedes.handle(socket)
    secured.set(socket, client)
    peers.set(client, peerOf(socket, needs.authorityOf))
    socket.once('close', () => secured.delete(socket))
    const identity = identityOfSubject(subjectOf(socket) ?? {})
    const node = identity === undefined ? undefined : nodeOf(identity)
    const because = revoked(socket)
    // Who is refused here is told so in the answer to its CONNECT.
    if (because !== undefined) refuse(client, 'connection', { allowed: false, code: 'Revoked', reason: because })
    else if (node !== undefined) nodes.set(client, node)
    else refuse(client, 'connection', { allowed: false, code: 'NotANode', reason: `${identity?.user} is not a node` })

    const meter = packetMeter(limit.maxPacketBytes)
    socket.on('data', (piece: Uint8Array) => {
      if (meter(piece) || socket.destroyed) return
      const reason = `it sends a packet larger than ${limit.maxPacketBytes} bytes`
      socket.destroy(refuse(client, 'connection', { allowed: false, code: 'TooLarge', reason }))
    })
    socket.once('close', () => {
      if (node === undefined || current.get(node) !== client) return
      current.delete(node)
      listener?.disconnected(node)
    })
  })

  return {
    async listen({ port, host }, told) {
      listener = told
      return listening(server, port, host)
    },
    renew(next) {
      server.setSecureContext(secureContext(next))
      const { authorityOf } = needs
      if (authorityOf === undefined) return
      cut('AuthorityGone', (socket) =>
        authorityOf(socket.getPeerCertificate().raw) === undefined
          ? 'the authority of its certificate is trusted no more'
          : undefined,
      )
    },
    async publish(topic, body) {
      const { qos, retain } = topicRules[topic.kind]
      const packet = { cmd: 'publish', topic: topicName(topic), payload: body, qos, retain, dup: false } as const
      const done = new Promise<void>((resolve) => {
        aedes.publish(packet, (error) => {
          if (error) log.warn('MQTT message not delivered', { topic: packet.topic, error })
          resolve()
        })
      })
      publishing.add(done)
      void done.then(() => publishing.delete(done))
    },
    async close() {
      listener = undefined
      server.close()
      const enough = new AbortController()
      void Promise.all(publishing).then(() => enough.abort())
      await clock.sleep(closingGraceMs, enough.signal)
      await new Promise<void>((resolve) => aedes.close(resolve))
      for (const socket of sockets) socket.destroy()
    },
  }
}

function secureContext({ ca, certificate, key }: BrokerTls) {
  // Who went on from an earlier session would not show its certificate again, and could stay beyond its end.
  const secureOptions = constants.SSL_OP_NO_TICKET
  return { ca, cert: certificate, key, minVersion: 'TLSv1.2', secureOptions } as const
}

const notAuthorized: AuthenticateError = Object.assign(new Error('Not authorized'), { returnCode: 5 })

/** Rejects when the port cannot be opened, with Node.js' own error. */
function listening(server: Server, port: number, host: string | undefined): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ port, ...(host !== undefined && { host }) }, () => {
      server.off('error', reject)
      const address = server.address()
      resolve(typeof address === 'object' && address !== null ? address.port : port)
    })
  })
}

/** How long the last messages may take to get out: a frozen reader must not hold up a shutdown. */
const closingGraceMs = 500

function peerOf(socket: TLSSocket, authorityOf: MqttBrokerNeeds['authorityOf']): Peer {
  const { raw, valid_to } = socket.getPeerCertificate()
  const certificate = { until: rfc3339(Date.parse(valid_to)), authority: authorityOf?.(raw) }
  return { address: addressOf(socket), certificate }
}

function subjectOf(socket: TLSSocket): { readonly CN?: unknown; readonly O?: unknown } | undefined {
  // Without a certificate Node.js gives an empty object, whatever its types say.
  return socket.getPeerCertificate()?.subject
}

function addressOf(connection: Connection): string | undefined {
  // A listener for both kinds tells IPv4 addresses in IPv6's clothes.
  return 'remoteAddress' in connection ? connection.remoteAddress?.replace(/^::ffff:(?=\d+\.)/, '') : undefined
}
