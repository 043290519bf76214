/**
 * One MQTT 3.1.1 connection over mutual TLS, from its opening to its end. Each connection gets a client of its own, so
 * the library's queues, retries and stores end with the link: its owner publishes again what must be published.
 */
import { setMaxListeners } from 'node:events'
import type { TLSSocket } from 'node:tls'
import mqtt, { type IClientOptions } from 'mqtt/lib/client'
import { writeToStream } from 'mqtt-packet'
import { unlessAborted } from '../../../daemon/aborted.ts'
import { withDeadline, within } from '../../../daemon/deadline.ts'
import { connectToServer, type KnownTime } from '../../../daemon/server-check.ts'
import type { SentData } from '../../node/connection/link-guard.ts'
import { hasOwnAddress } from '../kernel/own-address.ts'
import { unacknowledgedBytes } from '../kernel/sent-data.ts'

export type MqttLinkSettings = {
  readonly host: string
  readonly port: number
  readonly clientId: string
  /** PEM: the authority we trust, our certificate and its key. */
  readonly ca: string
  readonly certificate: string
  readonly key: string
  /** What the server's certificate is judged by where our clock may be wrong. */
  readonly knownTime?: KnownTime | undefined
  /** The broker closes the connection after one and a half times this without a packet. */
  readonly keepaliveSeconds: number
  /** Where the machine's files are. */
  readonly root?: string
  /** For the name, TCP and TLS, and the same for CONNACK. */
  readonly connectMs?: number
  /** The last will: the broker publishes it when the connection is lost. Retained, QoS 1. */
  readonly will: { readonly topic: string; readonly body: string }
}

export type Publishing = { readonly qos: 0 | 1; readonly retain: boolean }

export interface MqttLink {
  /** Resolves when the broker has it (QoS 1) or it is on its way (QoS 0); rejects when the link ends or the broker is too slow. */
  publish(topic: string, body: string, publishing: Publishing): Promise<void>
  /** Would `send` pass on a message now? */
  canSend(): boolean
  /** QoS 0, now or not at all: false when the network takes nothing more. */
  send(topic: string, body: string): boolean
  /** Resolves when the broker has answered a ping; rejects when the link ends or the broker is too slow. */
  ping(): Promise<void>
  /** How much of what was written the other machine has acknowledged. undefined: the kernel does not list the connection. Never rejects. */
  sentData(): Promise<SentData | undefined>
  /** The machine still has the address from which it connected. Never rejects. */
  hasAddress(): Promise<boolean>
  /** QoS 1. Rejects when the broker refuses one of them. */
  subscribe(topics: readonly string[]): Promise<void>
  /** Resolves when the link has ended, with what ended it. */
  readonly ended: Promise<Error>
  /** Ends the link without a word to the broker, which then speaks our will. */
  abandon(because: Error): void
  /** Takes leave: our will is not spoken. */
  close(): Promise<void>
}

/** `isRetained`: it was published before we subscribed, at an unknown time. */
export type MessageListener = (topic: string, body: string, isRetained: boolean) => void

const usualConnectMs = 15_000 // a Pi Zero on a bad radio link needs some of it
const answerMs = 20_000
const closeMs = 1_000

/** Resolves when the broker has accepted us; rejects with the first error that shows why it did not. */
export async function openLink(
  settings: MqttLinkSettings,
  listener: MessageListener,
  signal: AbortSignal,
): Promise<MqttLink> {
  signal.throwIfAborted()
  // Else it makes a buffer for each of 65,536 numbers, once: 6 MB to save the moments of writing two bytes.
  writeToStream.cacheNumbers = false
  const socket = await connectSocket(settings, signal)
  const ended = endOf(socket)
  const client = new mqtt.default(() => socket, {
    protocolVersion: 4,
    clientId: settings.clientId,
    clean: true,
    keepalive: settings.keepaliveSeconds,
    timerVariant: noTimer, // no pings of its own: heartbeats keep the link alive, and its owner notices when it is dead
    reconnectPeriod: 0,
    resubscribe: false,
    queueQoSZero: false,
    writeCache: false, // else 65,536 small buffers are made at the first packet: 7 MB
    connectTimeout: settings.connectMs ?? usualConnectMs,
    will: { topic: settings.will.topic, payload: Buffer.from(settings.will.body), qos: 1, retain: true },
  })
  let refused: Error | undefined
  client.on('error', (error) => {
    refused ??= error
    socket.destroy()
  })
  client.on('message', (topic, payload, { retain }) => listener(topic, payload.toString(), retain))
  const stop = () => void socket.destroy()
  signal.addEventListener('abort', stop, { once: true })
  try {
    const accepted = new Promise<void>((resolve) => client.once('connect', () => resolve()))
    await Promise.race([
      accepted,
      ended.then((error) => {
        throw refused ?? error
      }),
    ])
  } finally {
    signal.removeEventListener('abort', stop)
  }
  return linkOf(client, socket, ended, settings.root ?? '/')
}

const noTimer: Exclude<IClientOptions['timerVariant'], string | undefined> = { set: () => 0, clear: () => undefined }

/** Nothing is sent to a server before it has proved its identity. */
async function connectSocket(settings: MqttLinkSettings, signal: AbortSignal): Promise<TLSSocket> {
  const { host, port, ca, certificate, key, knownTime, connectMs = usualConnectMs } = settings
  const server = { host, port, ca, cert: certificate, key, knownTime }
  const socket = await withDeadline(connectMs, signal, (deadline) => connectToServer(server, deadline))
  socket.setNoDelay(true)
  return socket
}

function endOf(socket: TLSSocket): Promise<Error> {
  let first: Error | undefined
  socket.on('error', (error) => {
    first ??= error
  })
  return new Promise((resolve) => {
    socket.once('close', () => resolve(first ?? new Error('The connection was closed by the other side')))
  })
}

function linkOf(
  client: InstanceType<typeof mqtt.default>,
  socket: TLSSocket,
  ended: Promise<Error>,
  root: string,
): MqttLink {
  // Not the promise itself: each message that raced it would stay on it.
  const end = new AbortController()
  setMaxListeners(0, end.signal) // all that is published again on a new link is under way at once: many are not a leak
  void ended.then((cause) => end.abort(cause))
  const untilEnded = async (what: string, work: Promise<void>): Promise<void> => {
    await within(answerMs, `Cannot ${what}: no answer`, unlessAborted(work, end.signal))
    if (end.signal.aborted) throw new Error(`Cannot ${what}: the link has ended`, { cause: end.signal.reason })
  }
  const ping = sharedPing(client)
  const { localAddress } = socket
  const canSend = () => client.connected && !socket.destroyed && !socket.writableNeedDrain
  return {
    ended,
    canSend,
    publish: (topic, body, { qos, retain }) =>
      untilEnded(
        `publish on ${topic}`,
        settled((done) => client.publish(topic, body, { qos, retain }, done)),
      ),
    send(topic, body) {
      if (!canSend()) return false
      client.publish(topic, body, { qos: 0 })
      return true
    },
    ping: () => untilEnded('ping', ping()),
    async sentData() {
      if (socket.destroyed) return undefined
      const inKernel = await unacknowledgedBytes(root, socket)
      if (inKernel === undefined) return undefined
      const waitingBytes = inKernel + socket.writableLength
      return { waitingBytes, deliveredBytes: socket.bytesWritten - waitingBytes }
    },
    hasAddress: async () => localAddress === undefined || hasOwnAddress(localAddress),
    subscribe: (topics) =>
      untilEnded(
        `subscribe to ${topics.join(', ')}`,
        settled((done) => client.subscribe([...topics], { qos: 1 }, done)),
      ),
    abandon: (because) => void socket.destroy(because),
    async close() {
      const left = settled((done) => client.end(false, done))
      await within(closeMs, 'The broker did not close the connection', left).catch(() => undefined)
      socket.destroy()
      await ended
    },
  }
}

/** Resolves with the next answer to a ping. Callers share a ping that is under way: a slow broker collects neither pings nor listeners. */
function sharedPing(client: InstanceType<typeof mqtt.default>): () => Promise<void> {
  let pending: Promise<void> | undefined
  return () => {
    pending ??= new Promise((resolve) => {
      const received = ({ cmd }: { readonly cmd?: string }) => {
        if (cmd !== 'pingresp') return
        client.off('packetreceive', received)
        pending = undefined
        resolve()
      }
      client.on('packetreceive', received)
      client.sendPing()
    })
    return pending
  }
}

function settled(start: (done: (error?: Error | null) => void) => unknown): Promise<void> {
  return new Promise((resolve, reject) => {
    start((error) => (error ? reject(error) : resolve()))
  })
}
