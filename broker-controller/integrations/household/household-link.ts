/**
 * One connection to the broker of a household, from its opening to its end. The only file of the controller that names the
 * MQTT client: it is bundled apart, and loaded with the first connection.
 */
import { setMaxListeners } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect as connectTcp, type Socket } from 'node:net'
import { rootCertificates } from 'node:tls'
import mqtt from 'mqtt/lib/client'
import { unlessAborted } from '../../../daemon/aborted.ts'
import { withDeadline, within } from '../../../daemon/deadline.ts'
import { readSecretFile, readSecretLine } from '../../../daemon/process/secret-file.ts'
import { connectToServer } from '../../../daemon/server-check.ts'
import type { HouseholdBroker } from './household-broker.ts'
import { pacedReading } from './paced-reading.ts'

export type HouseholdMessage = { readonly topic: string; readonly body: Buffer; readonly isRetained: boolean }

export type HouseholdLinkSettings = {
  readonly broker: HouseholdBroker
  /** The broker closes an older connection with the same one. */
  readonly clientId: string
  /** Retained, QoS 1; published by the broker when the connection is lost. */
  readonly will?: { readonly topic: string; readonly body: string }
  readonly receive?: (message: HouseholdMessage) => void
}

export type HouseholdPublishing = { readonly qos: 0 | 1; readonly retain: boolean }

export interface HouseholdLink {
  /** Resolves when the broker has it (QoS 1), or it is on its way (QoS 0). Rejects when the link ends or after 20 s. */
  publish(topic: string, body: string, publishing: HouseholdPublishing): Promise<void>
  /** QoS 0. Rejects when the broker refuses it, or after 20 s. */
  subscribe(filter: string): Promise<void>
  unsubscribe(filter: string): Promise<void>
  /** Resolves when the link has ended, with the cause. */
  readonly ended: Promise<Error>
  /** Ends the link; the will is not published. */
  close(): Promise<void>
}

const connectMs = 15_000
const answerMs = 20_000
const closeMs = 1_000
/** The broker publishes the will after one and a half times this. */
const keepaliveSeconds = 30
/** Any client of the broker may send anything, up to 256 MB: a longer message ends the connection before it is in memory. */
const longestMessageBytes = 1024 * 1024

/** Resolves when the broker has accepted the connection. Rejects with the cause; secrets are in no message. */
export async function openHouseholdLink(
  { broker, clientId, will, receive }: HouseholdLinkSettings,
  signal: AbortSignal,
): Promise<HouseholdLink> {
  signal.throwIfAborted()
  const { username, passwordFile } = broker
  const password = passwordFile === undefined ? undefined : await readSecretLine(passwordFile)
  const opening = (own: AbortSignal) => openSocket(broker, own)
  const socket = await withDeadline(connectMs, signal, opening, `${broker.host}:${broker.port} does not answer`)
  const ended = endOf(socket)
  const tooLong = () => void socket.destroy(new Error(`A message is longer than ${longestMessageBytes} bytes`))
  // The client keeps what arrives until a message is complete, whatever its length.
  let incompleteBytes = 0
  const incoming = pacedReading(socket)
  incoming.stream.on('data', ({ length }: Buffer) => {
    incompleteBytes += length
    if (incompleteBytes > longestMessageBytes) tooLong()
  })
  const client = new mqtt.default(() => incoming.stream, {
    protocolVersion: 4,
    clientId,
    clean: true,
    keepalive: keepaliveSeconds,
    reconnectPeriod: 0,
    resubscribe: false,
    queueQoSZero: false,
    writeCache: false,
    connectTimeout: connectMs,
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(will && { will: { topic: will.topic, payload: Buffer.from(will.body), qos: 1 as const, retain: true } }),
  })
  let refused: Error | undefined
  client.on('error', (error) => {
    refused ??= error
    socket.destroy()
  })
  client.on('packetreceive', ({ length = 0, ...packet }) => {
    incompleteBytes = 0
    incoming.arrived()
    // The client would keep each message of QoS 2 until it is released, which the broker need not do.
    if (packet.cmd === 'publish' && packet.qos > 0)
      socket.destroy(new Error(`The broker sends with QoS ${packet.qos} what was subscribed to with QoS 0`))
    if (length > longestMessageBytes) tooLong()
  })
  client.on('message', (topic, body, { retain }) => receive?.({ topic, body, isRetained: retain }))
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
  } catch (error) {
    client.end(true)
    throw error
  } finally {
    signal.removeEventListener('abort', stop)
  }
  return linkOf(client, socket, ended)
}

/** Nothing is sent to a server before it has proved its identity. */
async function openSocket({ isEncrypted, host, port, caFile, clientFiles }: HouseholdBroker, signal: AbortSignal) {
  if (!isEncrypted) return openPlain(host, port, signal)
  const ca = caFile === undefined ? rootCertificates.join('\n') : await readFile(caFile, 'utf8')
  const client = clientFiles && {
    cert: await readFile(clientFiles.certificate, 'utf8'),
    key: await readSecretFile(clientFiles.key),
  }
  return connectToServer({ host, port, ca, ...client }, signal)
}

async function openPlain(host: string, port: number, signal: AbortSignal): Promise<Socket> {
  // With a signal that is aborted already, Node.js 20 reports the error and connects all the same.
  signal.throwIfAborted()
  return new Promise((resolve, reject) => {
    const socket = connectTcp({ host, port, signal })
    socket.once('error', reject)
    socket.once('connect', () => {
      socket.off('error', reject)
      resolve(socket)
    })
  })
}

function endOf(socket: Socket): Promise<Error> {
  let first: Error | undefined
  socket.on('error', (error) => {
    first ??= error
  })
  return new Promise((resolve) => {
    socket.once('close', () => resolve(first ?? new Error('The connection was closed by the other side')))
  })
}

function linkOf(client: InstanceType<typeof mqtt.default>, socket: Socket, ended: Promise<Error>): HouseholdLink {
  const end = new AbortController()
  setMaxListeners(0, end.signal) // every message under way listens: many are not a leak
  void ended.then((cause) => {
    end.abort(cause)
    client.end(true)
  })
  const answered = async (what: string, start: (done: (error?: Error | null) => void) => unknown) => {
    if (!end.signal.aborted) {
      await within(answerMs, `Cannot ${what}: no answer`, unlessAborted(settled(start), end.signal))
    }
    if (end.signal.aborted) throw new Error(`Cannot ${what}: the connection has ended`, { cause: end.signal.reason })
  }
  return {
    ended,
    publish: (topic, body, publishing) =>
      answered(`publish on ${topic}`, (done) => client.publish(topic, body, publishing, done)),
    subscribe: (filter) => answered(`subscribe to ${filter}`, (done) => client.subscribe(filter, { qos: 0 }, done)),
    unsubscribe: (filter) => answered(`unsubscribe from ${filter}`, (done) => client.unsubscribe(filter, done)),
    async close() {
      const left = settled((done) => client.end(false, done))
      await within(closeMs, 'The broker did not close the connection', left).catch(() => undefined)
      socket.destroy()
      await ended
    },
  }
}

function settled(start: (done: (error?: Error | null) => void) => unknown): Promise<void> {
  return new Promise((resolve, reject) => {
    start((error) => (error ? reject(error) : resolve()))
  })
}
