/** Clients of the API and of the broker that send what a well-behaved one would not. */
import { readFile } from 'node:fs/promises'
import { Agent, type RequestOptions, request } from 'node:https'
import { connect as connectPlain, type Socket } from 'node:net'
import { join } from 'node:path'
import { connect, type TLSSocket } from 'node:tls'
import { parse } from 'yaml'
import { eventually } from '../../support/wait.ts'

/** PEM. Without a certificate it is anonymous. */
export type ClientIdentity = { readonly ca?: string; readonly cert?: string; readonly key?: string }

/** Whom an administrator's kubeconfig names, and where the API is. */
export function adminOf(kubeconfig: string): ClientIdentity & { readonly url: string } {
  const config = parse(kubeconfig)
  const text = (base64: unknown) => Buffer.from(String(base64), 'base64').toString('utf8')
  const { cluster } = config.clusters[0]
  const { user } = config.users[0]
  return {
    url: cluster.server,
    ca: text(cluster['certificate-authority-data']),
    cert: text(user['client-certificate-data']),
    key: text(user['client-key-data']),
  }
}

/** The identity that a machine got when it joined. */
export async function nodeOfFolder(dataDir: string): Promise<ClientIdentity> {
  const { ca, certificate, key } = JSON.parse(await readFile(join(dataDir, 'identity.json'), 'utf8'))
  return { ca, cert: certificate, key }
}

export type Answer = {
  readonly status: number
  readonly headers: { readonly [name: string]: unknown }
  readonly text: string
}

export type Asked = {
  readonly body?: string | Uint8Array
  readonly headers?: { readonly [name: string]: string }
}

export type ApiAttacker = {
  /** Every answer is a value; rejects when the connection breaks or nothing comes within a minute. */
  send(method: string, path: string, asked?: Asked): Promise<Answer>
  /** The same with an object, sent as JSON unless the headers name another type. */
  sendJson(method: string, path: string, body?: unknown, headers?: Asked['headers']): Promise<Answer>
  close(): void
}

export function apiAttacker(
  url: string,
  identity: ClientIdentity & { readonly rejectUnauthorized?: boolean },
  options: { readonly token?: string; readonly localAddress?: string } = {},
): ApiAttacker {
  const from = options.localAddress === undefined ? {} : { localAddress: options.localAddress }
  const agent = new Agent({ keepAlive: true, maxSockets: 32, ...identity, ...from })
  const bearer = options.token === undefined ? {} : { authorization: `Bearer ${options.token}` }
  const send: ApiAttacker['send'] = (method, path, { body, headers } = {}) => {
    const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }
    const options = { method, agent, timeout: 60_000, headers: { ...bearer, ...length, ...headers } }
    const once = () => exchange(new URL(path, url), options, body)
    // RFC 9110, 9.2.2 leaves it to the client to repeat what was sent on a kept connection that the server had closed.
    return once().catch((error: unknown) => (wasClosed(error) ? once() : Promise.reject(error)))
  }
  return {
    send,
    sendJson: (method, path, body, headers = {}) =>
      send(method, path, {
        ...(body !== undefined && { body: JSON.stringify(body) }),
        headers: { 'content-type': 'application/json', ...headers },
      }),
    close: () => agent.destroy(),
  }
}

/** Repeats a request that is refused because there are too many. */
export function patient({
  send,
  sendJson,
}: Pick<ApiAttacker, 'send' | 'sendJson'>): Pick<ApiAttacker, 'send' | 'sendJson'> {
  const repeated = (ask: () => Promise<Answer>) =>
    eventually('the request is not refused for its number', async () => {
      const answer = await ask()
      return answer.status === 429 ? undefined : answer
    })
  return {
    send: (...asked) => repeated(() => send(...asked)),
    sendJson: (...asked) => repeated(() => sendJson(...asked)),
  }
}

function wasClosed(error: unknown): boolean {
  return (
    error instanceof Error &&
    'reused' in error &&
    error.reused === true &&
    'code' in error &&
    error.code === 'ECONNRESET'
  )
}

function exchange(url: URL, options: RequestOptions, body: string | Uint8Array | undefined): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const asked = request(url, options, async (response) => {
      try {
        const parts: Buffer[] = []
        for await (const part of response) parts.push(part)
        const text = Buffer.concat(parts).toString('utf8')
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text })
      } catch (error) {
        reject(error)
      }
    })
    asked.on('timeout', () => asked.destroy(new Error(`No answer from ${url.pathname} within a minute`)))
    asked.on('error', (error) => reject(Object.assign(error, { reused: asked.reusedSocket })))
    asked.end(body)
  })
}

export type Address = { readonly host: string; readonly port: number }

export function addressOf(url: string): Address {
  const { hostname, port } = new URL(url)
  return { host: hostname, port: Number(port) }
}

/** A TCP connection that has sent `bytes` and nothing more; undefined when it was refused. */
export function openPlain(
  { host, port, localAddress }: Address & { readonly localAddress?: string },
  bytes: Uint8Array = new Uint8Array(),
): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = connectPlain({ host, port, ...(localAddress !== undefined && { localAddress }) })
    socket.on('error', () => resolve(undefined))
    socket.once('connect', () => {
      socket.write(bytes)
      socket.resume()
      resolve(socket)
    })
  })
}

/** A TLS connection after its handshake; undefined when it was refused. */
export function openTls(
  address: Address & { readonly localAddress?: string },
  identity: ClientIdentity,
): Promise<TLSSocket | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ ...address, ...identity, checkServerIdentity: () => undefined })
    socket.on('error', () => resolve(undefined))
    socket.once('secureConnect', () => resolve(socket))
  })
}

/** How many of them the other side has not closed. */
export function stillOpen(sockets: readonly (Socket | undefined)[]): number {
  return sockets.filter((socket) => socket !== undefined && !socket.destroyed && !socket.readableEnded).length
}

/** MQTT 3.1.1, 2.2.3: the length of what follows, seven bits a byte. */
function remainingLength(length: number): Buffer {
  const bytes: number[] = []
  for (let rest = length; ; ) {
    const low = rest & 127
    rest >>= 7
    bytes.push(rest > 0 ? low | 128 : low)
    if (rest === 0) return Buffer.from(bytes)
  }
}

function packet(type: number, ...parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts)
  return Buffer.concat([Buffer.from([type]), remainingLength(body.length), body])
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value)
  return Buffer.concat([Buffer.from([bytes.length >> 8, bytes.length & 255]), bytes])
}

/** MQTT 3.1.1, 3.1: a clean session. */
export function connectPacket(clientId: string, keepAliveSeconds = 60): Buffer {
  const keepAlive = Buffer.from([keepAliveSeconds >> 8, keepAliveSeconds & 255])
  return packet(0x10, text('MQTT'), Buffer.from([4, 2]), keepAlive, text(clientId))
}

/** MQTT 3.1.1, 3.3: at QoS 0. */
export function publishPacket(topic: string, body: string | Buffer): Buffer {
  return packet(0x30, text(topic), Buffer.from(body))
}

/** At QoS 1, and retained. */
export function retainedPacket(topic: string, body: string): Buffer {
  return packet(0x33, text(topic), Buffer.from([0, 2]), Buffer.from(body))
}

/** MQTT 3.1.1, 3.8. Messages of QoS 0 need no acknowledgement. */
export function subscribePacket({ qos }: { readonly qos: 0 | 1 }, ...topics: readonly string[]): Buffer {
  return packet(0x82, Buffer.from([0, 1]), ...topics.flatMap((topic) => [text(topic), Buffer.from([qos])]))
}
