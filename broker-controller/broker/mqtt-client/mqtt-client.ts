/**
 * One connection of the controller to an external MQTT server: MQTT 3.1.1 over mutual TLS, from its opening to its end. It does
 * not connect again; `external-broker.ts` does.
 */
import type { TLSSocket } from 'node:tls'
import type { Packet } from 'mqtt-packet'
import type { Clock } from '../../../daemon/clock.ts'
import { withDeadline } from '../../../daemon/deadline.ts'
import { connectToServer } from '../../../daemon/server-check.ts'
import { pubackPacket, publishPacket } from '../mqtt/mqtt-encoding.ts'
import { readPackets } from '../mqtt/session-socket.ts'
import { longestSent } from '../server-limits.ts'
import { connectPacket, disconnectPacket, pingreqPacket, subscribePacket } from './client-packets.ts'
import { requestsInFlight } from './requests-in-flight.ts'

export type MqttClientSettings = {
  readonly host: string
  readonly port: number
  readonly clientId: string
  /** PEM. */
  readonly tls: { readonly ca: string; readonly certificate: string; readonly key: string }
  readonly will: { readonly topic: string; readonly body: string }
  /** Called when the server gives a session of TLS 1.3 that could be resumed. */
  readonly gotSession?: () => void
}

export type OutgoingMessage = {
  readonly topic: string
  readonly body: string
  readonly qos: 0 | 1
  readonly retain: boolean
}

export interface MqttClient {
  /** Resolves when the server has acknowledged it (QoS 1) or it was written (QoS 0). Rejects when the connection ends before. */
  publish(message: OutgoingMessage): Promise<void>
  /** QoS 1. Rejects if the server refuses a filter, or when the connection ends. */
  subscribe(filters: readonly string[]): Promise<void>
  /** Has the server sent anything in the last 2.5 s? It is asked each second. */
  isAnswering(): boolean
  /** Resolves when the connection has ended, with the reason. */
  readonly ended: Promise<Error>
  /** Ends the connection; the server publishes the will. */
  abandon(because: Error): void
  /** Ends the connection after what was published; the server does not publish the will. Resolves within a second. */
  close(): Promise<void>
}

/** Called for each message, in the order of the connection. `isRetained`: it was published before the subscription. */
export type ReceivedMessage = (topic: string, payload: string | Buffer, isRetained: boolean) => void

const connectMs = 15_000
/** The server closes the connection after one and a half times this without a packet. */
const keepAliveSeconds = 30
/** A server that answers no ping for this time is gone. */
const silenceMs = 20_000
const closeMs = 1_000
const pingMs = 1_000
/** Below the shortest time after which a node is judged by its silence: the tolerance for a late heartbeat, 3.5 s. */
const doubtMs = 2_500

/** Resolves when the server has accepted the connection. Rejects with the reason why it did not. */
export async function openMqttClient(
  { host, port, clientId, tls: { ca, certificate, key }, will, gotSession }: MqttClientSettings,
  received: ReceivedMessage,
  clock: Clock,
  signal: AbortSignal,
): Promise<MqttClient> {
  const server = { host, port, ca, cert: certificate, key }
  const client = await withDeadline(
    connectMs,
    signal,
    async (deadline) => {
      const socket = await connectToServer(server, deadline)
      socket.setNoDelay(true)
      if (gotSession !== undefined && socket.getProtocol() === 'TLSv1.3') socket.once('session', gotSession)
      const opened = clientOn(socket, received, clock)
      const stop = () => opened.abandon(new Error('Not connected in time'))
      deadline.addEventListener('abort', stop, { once: true })
      socket.write(connectPacket({ clientId, keepAliveSeconds, will }))
      try {
        await opened.accepted
      } finally {
        deadline.removeEventListener('abort', stop)
      }
      return opened
    },
    'No connection to the MQTT server',
  )
  void client.ping()
  return client
}

/** CONNACK return codes: MQTT 3.1.1, 3.2.2.3. */
const refusals = ['', 'protocol version', 'client id', 'server unavailable', 'user name', 'not authorized']

function clientOn(socket: TLSSocket, received: ReceivedMessage, clock: Clock) {
  const over = new AbortController()
  const requests = requestsInFlight((packet) => void socket.write(packet))
  let receivedMs = clock.monotonicMs()
  let failure: Error | undefined
  let accept: () => void = () => undefined

  const abandon = (because: Error) => {
    failure ??= because
    socket.destroy()
  }
  const ended = new Promise<Error>((resolve) => {
    socket.on('error', (error) => {
      failure ??= error
    })
    socket.once('close', () => {
      const because = failure ?? new Error('The MQTT server closed the connection')
      over.abort(because)
      requests.end(because)
      resolve(because)
    })
  })
  const accepted = new Promise<void>((resolve) => {
    accept = resolve
  })

  const receive = (packet: Packet) => {
    receivedMs = clock.monotonicMs()
    switch (packet.cmd) {
      case 'publish': {
        const { topic, payload, qos, retain, messageId } = packet
        if (qos === 1 && messageId !== undefined) socket.write(pubackPacket(messageId))
        return received(topic, payload, retain)
      }
      case 'puback':
      case 'suback':
        return requests.acknowledged(packet)
      case 'connack': {
        const code = packet.returnCode ?? 0
        if (code === 0) return accept()
        return abandon(new Error(`The MQTT server refused the connection: ${refusals[code] ?? `code ${code}`}`))
      }
      default:
        return
    }
  }
  readPackets(socket, longestSent, receive, (error) =>
    abandon(error ?? new Error(`The MQTT server sent a packet larger than ${longestSent} bytes`)),
  )

  return {
    /** Rejects when the connection ends before. */
    accepted: Promise.race([
      accepted,
      ended.then((error) => {
        throw error
      }),
    ]),
    ended,
    abandon,
    isAnswering: () => clock.monotonicMs() - receivedMs <= doubtMs,
    async publish({ topic, body, qos, retain }: OutgoingMessage) {
      if (over.signal.aborted) throw over.signal.reason
      if (qos === 1) await requests.send((messageId) => publishPacket({ topic, body, qos, retain, messageId }))
      else socket.write(publishPacket({ topic, body, qos, retain, messageId: 0 }))
    },
    async subscribe(filters: readonly string[]) {
      const answer = await requests.send((id) => subscribePacket(id, filters))
      const granted = answer.cmd === 'suback' ? answer.granted : []
      const refused = filters.filter((_, i) => granted[i] === 128)
      if (refused.length > 0) throw new Error(`The MQTT server refused to subscribe to ${refused.join(', ')}`)
    },
    /** Until the connection ends: a server whose machine is gone closes nothing. */
    async ping() {
      while (!over.signal.aborted) {
        await clock.sleep(pingMs, over.signal)
        if (over.signal.aborted) return
        if (clock.monotonicMs() - receivedMs > silenceMs) abandon(new Error('The MQTT server does not answer'))
        else socket.write(pingreqPacket)
      }
    },
    async close() {
      failure ??= new Error('The controller closed the connection')
      socket.end(disconnectPacket)
      await clock.sleep(closeMs, over.signal)
      socket.destroy()
      await ended
    },
  }
}
