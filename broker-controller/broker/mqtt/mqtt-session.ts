/**
 * One connection of a client: MQTT 3.1.1 (and 3.1) as far as the wire of `docs/mqtt.md` needs it. Sessions are always
 * clean, QoS is 0 or 1. What a client may do is decided by the handler; the order of packets and the times are kept here.
 */
import type { TLSSocket } from 'node:tls'
import { type IConnectPacket, type IPublishPacket, type ISubscribePacket, type Packet, parser } from 'mqtt-packet'
import { acceptedBytes } from './accepted-bytes.ts'
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
import { wholePackets } from './packet-meter.ts'

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
  /** The answer. The connection is closed where it is not `accepted`. */
  connect(packet: IConnectPacket): ConnackCode
  /** False: the connection is closed. A promise: nothing more is read until it has resolved. */
  publish(packet: IPublishPacket): boolean | Promise<void>
  /** May the client read this topic? */
  subscribe(filter: string): boolean
  /** The client reads these topics now: what is retained there is to be sent. */
  subscribed(topics: readonly string[]): void
  tooLarge(): void
  /** Once. `isGoodbye`: the client sent DISCONNECT, so its will is not published. */
  closed(isGoodbye: boolean, error: Error | undefined): void
}

export interface MqttSession {
  readonly socket: TLSSocket
  /** Sends it if the client subscribed to the topic. */
  publish(topic: string, body: string, options: { readonly qos: 0 | 1; readonly retain: boolean }): void
  /** Closes the connection when its time for something is up. */
  checkTimes(nowMs: number): void
  close(error?: Error): void
  /** Closes it when what was published has been sent; resolves when it is closed. */
  end(): Promise<void>
}

/** Filters in one SUBSCRIBE. A node has three topics to read. */
const mostFilters = 64
/**
 * Answers that wait because the client does not read. A SUBSCRIBE counts for more: up to three retained messages answer it, of
 * a megabyte or more each.
 */
const mostUnread = 4096
const unreadOfSubscribe = 256

export function mqttSession({ socket, handler, limits, monotonicMs }: MqttSessionNeeds): MqttSession {
  const subscriptions = new Map<string, 0 | 1>()
  const parse = parser()
  const takePiece = wholePackets(limits.maxPacketBytes, (packets) => void parse.parse(packets))
  let isConnected = false
  let isGoodbye = false
  let failure: Error | undefined
  let messageId = 0
  let underWay = 0
  let unread = 0
  let silenceMs = Number.POSITIVE_INFINITY
  let packetMs = monotonicMs()
  /** Since when the kernel has taken nothing of what waits for the client, and how much it had taken until then. */
  let stalled: { readonly sinceMs: number; readonly accepted: number } | undefined

  const close = (error?: Error) => {
    failure ??= error
    socket.destroy()
  }
  const send = (packet: Buffer) => {
    if (socket.writable) socket.write(packet)
  }
  /** False: the connection is closed, for answers would fill the memory. */
  const answer = (packet: Buffer, weight = 1): boolean => {
    unread = socket.writableNeedDrain ? unread + weight : 0
    if (unread <= mostUnread) send(packet)
    else close(new Error('It does not read the answers to what it sends'))
    return unread <= mostUnread
  }

  const connect = (packet: IConnectPacket) => {
    if (isConnected) return close(new Error('A second CONNECT on one connection'))
    const { protocolVersion = 4, keepalive = 0 } = packet
    const isKnown = protocolVersion === 3 || protocolVersion === 4
    const code = isKnown ? handler.connect(packet) : connackCode.badProtocolVersion
    send(connackPacket(code))
    isConnected = code === connackCode.accepted
    if (isConnected) silenceMs = keepalive * 1500 || Number.POSITIVE_INFINITY
    // The answer is flushed before the connection ends; a client that does not close then is closed by its deadline.
    else socket.end()
  }

  const publish = (packet: IPublishPacket) => {
    const taken = handler.publish(packet)
    if (taken === false) return close(new Error('It published what it must not'))
    if (packet.qos === 1 && packet.messageId !== undefined) answer(pubackPacket(packet.messageId))
    if (taken === true) return
    underWay += 1
    if (underWay === 1) socket.pause()
    void taken.then(() => {
      underWay -= 1
      if (underWay > 0) return
      packetMs = monotonicMs()
      socket.resume()
    })
  }

  const subscribe = (packet: ISubscribePacket) => {
    if (packet.subscriptions.length > mostFilters) return close(new Error('Too many filters in one SUBSCRIBE'))
    const granted = packet.subscriptions.map(({ topic, qos }) => {
      if (!handler.subscribe(topic)) return refused
      subscriptions.set(topic, qos === 0 ? 0 : 1)
      return qos === 0 ? 0 : 1
    })
    if (!answer(subackPacket(packet.messageId ?? 0, granted), unreadOfSubscribe)) return
    const topics = packet.subscriptions.filter((_, i) => granted[i] !== refused).map(({ topic }) => topic)
    if (topics.length > 0) handler.subscribed([...new Set(topics)])
  }

  const take = (packet: Packet) => {
    if (!socket.writable) return // closed, or what was sent last is on its way out
    packetMs = monotonicMs()
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
        return close(new Error(`${packet.cmd.toUpperCase()} is not for a client to send here`))
    }
  }

  parse.on('packet', take)
  parse.on('error', (error: Error) => close(error))
  socket.on('data', (piece: Buffer) => {
    if (socket.destroyed) return
    // What answers these packets is sent in one TLS record, with one call of the system.
    socket.cork()
    const isWithinSize = takePiece(piece)
    socket.uncork()
    if (isWithinSize) return
    handler.tooLarge()
    close()
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
      // While messages wait here, nothing is read: that is not the client's silence.
      if (underWay === 0 && nowMs - packetMs > silenceMs)
        return close(new Error('Nothing was received within its keep alive'))
      if (!socket.writableNeedDrain) {
        stalled = undefined
        return
      }
      const accepted = acceptedBytes(socket)
      if (stalled === undefined || accepted > stalled.accepted) stalled = { sinceMs: nowMs, accepted }
      else if (nowMs - stalled.sinceMs > limits.drainTimeoutMs) close(new Error('It does not read what is sent to it'))
    },
    close,
    end() {
      const closed = new Promise<void>((resolve) => {
        if (socket.destroyed) resolve()
        socket.once('close', () => resolve())
      })
      socket.end()
      return closed
    },
  }
}

/** 3.9.3. */
const refused = 128
