/** Clients of the broker for tests: the stock Mosquitto ones, and a bare one that can stop reading. */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect, type TLSSocket } from 'node:tls'
import { openAuthority } from '../../certs/authority.ts'
import { type Issued, issueAdmin, issueNode, issueServer } from '../../certs/issue.ts'
import { skipWithout } from '../../test/support/missing-parts.ts'

export const noMosquittoClients: string | false = skipWithout(
  'mosquitto-clients',
  existsSync('/usr/bin/mosquitto_pub') && existsSync('/usr/bin/mosquitto_sub'),
)

export type Ended = { readonly code: number | null; readonly out: string; readonly error: string }

export interface Certificates {
  /** PEM, of the broker. */
  readonly server: { readonly ca: string; readonly certificate: string; readonly key: string }
  readonly node: (name: string, validity?: { readonly nowMs?: number; readonly lifeMs?: number }) => Issued
  readonly admin: () => Issued
  /** One of another authority. */
  readonly foreign: (name: string) => Issued
  /** The options of a Mosquitto client with this certificate, or none. */
  readonly options: (port: number, issued?: Issued) => Promise<readonly string[]>
  remove(): Promise<void>
}

export async function certificates(): Promise<Certificates> {
  const folder = await mkdtemp(join(tmpdir(), 'bramble-broker-'))
  const nowMs = Date.now()
  const authority = await openAuthority(join(folder, 'authority'), nowMs)
  const other = await openAuthority(join(folder, 'other'), nowMs)
  const ca = join(folder, 'authority', 'ca.crt')
  let files = 0
  return {
    server: { ca: authority.certificate, ...issueServer(authority, { names: ['localhost', '127.0.0.1'], nowMs }) },
    node: (nodeName, validity = {}) => issueNode(authority, { nodeName, nowMs, ...validity }),
    admin: () => issueAdmin(authority, { nowMs }),
    foreign: (nodeName) => issueNode(other, { nodeName, nowMs }),
    async options(port, issued) {
      const server = ['-h', 'localhost', '-p', String(port), '--cafile', ca]
      if (issued === undefined) return server
      files += 1
      const [certificate, key] = [join(folder, `${files}.crt`), join(folder, `${files}.key`)]
      await Promise.all([writeFile(certificate, issued.certificate), writeFile(key, issued.key, { mode: 0o600 })])
      return [...server, '--cert', certificate, '--key', key]
    },
    remove: () => rm(folder, { recursive: true, force: true }),
  }
}

/** Runs `mosquitto_pub` or `mosquitto_sub` to its end; it is killed after 20 s. */
export async function mosquitto(program: 'pub' | 'sub', args: readonly string[]): Promise<Ended> {
  return ended(startMosquitto(program, args), 20_000)
}

export function startMosquitto(program: 'pub' | 'sub', args: readonly string[]): ChildProcess {
  return spawn(`mosquitto_${program}`, args, { stdio: ['ignore', 'pipe', 'pipe'] })
}

async function ended(child: ChildProcess, withinMs: number): Promise<Ended> {
  let [out, error] = ['', '']
  child.stdout?.on('data', (part) => {
    out += part
  })
  child.stderr?.on('data', (part) => {
    error += part
  })
  const timer = setTimeout(() => child.kill('SIGKILL'), withinMs)
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  clearTimeout(timer)
  return { code, out, error }
}

/** A connection that has sent CONNECT and SUBSCRIBE; what arrives is not read until someone does. */
export async function bareClient(port: number, { ca, issued, topic }: BareClient): Promise<TLSSocket> {
  const socket = connect({
    port,
    host: '127.0.0.1',
    servername: 'localhost',
    ca,
    cert: issued.certificate,
    key: issued.key,
  })
  socket.on('error', () => undefined)
  await new Promise<void>((resolve) => socket.once('secureConnect', resolve))
  socket.write(connectPacket({ clientId: 'bare', keepAliveSeconds: 60 }))
  if (topic !== undefined) socket.write(packet(0x82, Buffer.from([0, 1]), text(topic), Buffer.from([1])))
  return socket
}

export type BareClient = { readonly ca: string; readonly issued: Issued; readonly topic?: string }

/** MQTT 3.1.1, 3.1: CONNECT with a clean session. */
function connectPacket({ clientId, keepAliveSeconds }: { clientId: string; keepAliveSeconds: number }): Buffer {
  return packet(0x10, text('MQTT'), Buffer.from([4, 2, keepAliveSeconds >> 8, keepAliveSeconds & 255]), text(clientId))
}

/** For bodies shorter than 128 bytes. */
function packet(type: number, ...parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts)
  return Buffer.concat([Buffer.from([type, body.length]), body])
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value)
  return Buffer.concat([Buffer.from([bytes.length >> 8, bytes.length & 255]), bytes])
}
