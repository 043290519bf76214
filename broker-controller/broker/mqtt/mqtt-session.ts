/**
 * One connection of a client: MQTT 3.1.1 (and 3.1) as far as `docs/mqtt.md` needs it. Sessions are always clean, QoS is 0 or 1.
 * The handler decides what a client may do; the session keeps the order of packets and the time limits.
 */
import type { TLSSocket } from 'node:tls'
import type { IConnectPacket, IPublishPacket, ISubscribePacket, Packet } from 'mqtt-packet'
import {
  type ConnackCode,
  connackCode,
  connackPacket,
  pingrespPacket,
  pubackPacket,
  publishPacket,
  subackPacket,
  unsubackPacket,
} from './mqtt-encoding.ts'
import { endSocket, readingPause, readPackets, sessionWriter } from './session-socket.ts'
import { sessionTimes } from './session-times.ts'

export type MqttSessionLimits = {
  readonly maxPacketBytes: number
  readonly drainTimeoutMs: number
}

export type MqttSessionNeeds = {
  readonly socket: TLSSocket
  readonly handler: MqttSessionHandler
  readonly limits: MqttSessionLimits
  readonly monotonicMs: () => number
}

export interface MqttSessionHandler {
  /** The code for CONNACK. The connection is closed unless it is `accepted`. */
  connect(packet: IConnectPacket): ConnackCode
  /** False: the connection is closed. A promise: nothing more is read until it has resolved. */
  publish(packet: IPublishPacket): boolean | Promise<void>
  /** May the client read this topic? */
  subscribe(filter: string): boolean
  /** The client has subscribed to these topics; their retained messages are to be sent. */
  subscribed(topics: readonly string[]): void
  tooLarge(): void
  /** Once. `isGoodbye`: the client sent DISCONNECT, so its will is not published. */
  closed(isGoodbye: boolean, error: Error | undefined): void
}

export interface MqttSession {
  readonly socket: TLSSocket
  /** Sends the message if the client subscribed to the topic. */
  publish(topic: string, body: string, options: { readonly qos: 0 | 1; readonly retain: boolean }): void
  /** Closes the connection when one of its time limits is exceeded. */
  checkTimes(nowMs: number): void
  close(error?: Error): void
  /** Closes the connection when what was published has been sent; resolves when it is closed. */
  end(): Promise<void>
}

/** Filters in one SUBSCRIBE. A node reads three topics. */
const mostFilters = 64
/** A SUBSCRIBE weighs as much as this many answers: up to three retained messages follow it, of a megabyte or more each. */
const weightOfSubscribe = 256
/** SUBACK return code of a filter that is not granted: 3.9.3. */
const refused = 128

export function mqttSession({ socket, handler, limits, monotonicMs }: MqttSessionNeeds): MqttSession {
  const subscriptions = new Map<string, 0 | 1>()
  const times = sessionTimes(socket, limits.drainTimeoutMs, monotonicMs())
  let isConnected = false
  let isGoodbye = false
  let failure: Error | undefined
  let messageId = 0

  const close = (error?: Error) => {
    failure ??= error
    socket.destroy()
  }
  const { send, answer } = sessionWriter(socket, close)
  const pause = readingPause(socket, () => times.received(monotonicMs()))

  const connect = (packet: IConnectPacket) => {
    if (isConnected) return close(new Error('A second CONNECT on one connection'))
    const { protocolVersion = 4, keepalive = 0 } = packet
    const isSupported = protocolVersion === 3 || protocolVersion === 4
    const code = isSupported ? handler.connect(packet) : connackCode.badProtocolVersion
    send(connackPacket(code))
    isConnected = code === connackCode.accepted
    if (isConnected) times.connected(keepalive)
    // CONNACK is flushed before the connection ends; a client that does not close it then is closed by its deadline.
    else socket.end()
  }

  const publish = (packet: IPublishPacket) => {
    const handled = handler.publish(packet)
    if (handled === false) return close(new Error('It published a message that it must not publish'))
    if (packet.qos === 1 && packet.messageId !== undefined) answer(pubackPacket(packet.messageId))
    if (handled !== true) pause.until(handled)
  }

  const subscribe = (packet: ISubscribePacket) => {
    if (packet.subscriptions.length > mostFilters) return close(new Error('Too many filters in one SUBSCRIBE'))
    const granted = packet.subscriptions.map(({ topic, qos }) => {
      if (!handler.subscribe(topic)) return refused
      subscriptions.set(topic, qos === 0 ? 0 : 1)
      return qos === 0 ? 0 : 1
    })
    if (!answer(subackPacket(packet.messageId ?? 0, granted), weightOfSubscribe)) return
    const topics = packet.subscriptions.filter((_, i) => granted[i] !== refused).map(({ topic }) => topic)
    if (topics.length > 0) handler.subscribed([...new Set(topics)])
  }

  const receive = (packet: Packet) => {
    if (!socket.writable) return // closed, or the last messages are being sent
    times.received(monotonicMs())
    if (packet.cmd === 'connect') return connect(packet)
    if (!isConnected) return close(new Error(`${packet.cmd.toUpperCase()} before CONNECT was accepted`))
    switch (packet.cmd) {
      case 'publish':
        return publish(packet)
      case 'subscribe':
        return subscribe(packet)
      case 'unsubscribe':
        for (const topic of packet.unsubscriptions) subscriptions.delete(topic)
        return void answer(unsubackPacket(packet.messageId ?? 0))
      case 'puback':
        return
      case 'pingreq':
        return void answer(pingrespPacket)
      case 'disconnect':
        isGoodbye = true
        return close()
      default:
        return close(new Error(`A client must not send ${packet.cmd.toUpperCase()} here`))
    }
  }

  readPackets(socket, limits.maxPacketBytes, receive, (error) => {
    if (error === undefined) handler.tooLarge()
    close(error)
  })
  socket.on('error', (error) => close(error))
  socket.once('close', () => handler.closed(isGoodbye, failure))

  return {
    socket,
    publish(topic, body, { qos, retain }) {
      const granted = subscriptions.get(topic)
      if (granted === undefined) return
      messageId = (messageId % 65_535) + 1
      send(publishPacket({ topic, body, qos: granted === 0 ? 0 : qos, retain, messageId }))
    },
    checkTimes(nowMs) {
      const exceeded = times.exceeded(nowMs, pause.isPaused)
      if (exceeded !== undefined) close(new Error(exceeded))
    },
    close,
    end: () => endSocket(socket),
  }
}
