/**
 * How fast kubectl itself takes a stream: a server that has the bytes ready, with neither a node nor a store behind it. It answers
 * what kubectl needs to find one pod, and then sends the log, the output of a command or a page with the code of the API for
 * WebSockets and SPDY. Run by itself it is this server.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { fileURLToPath } from 'node:url'
import type { ByteChannel } from '../../broker-controller/apiserver/streams/byte-channel.ts'
import { spdyConnection } from '../../broker-controller/apiserver/streams/spdy-connection.ts'
import { acceptUpgrade } from '../../broker-controller/apiserver/streams/upgrade.ts'

export type PreparedServer = {
  /** Options of kubectl. */
  readonly options: readonly string[]
  readonly pid: number
  close(): void
}

type Start = { readonly cert: string; readonly key: string; readonly mib: number }

const itself = fileURLToPath(import.meta.url)
const line = `${'x'.repeat(1000)}\n`
const pieceBytes = 60 * 1024
const pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'prepared', namespace: 'default', uid: 'prepared' },
  spec: { containers: [{ name: 'main', image: 'none' }] },
  status: { phase: 'Running', containerStatuses: [{ name: 'main', ready: true, state: { running: {} } }] },
}
const pods = { name: 'pods', singularName: 'pod', namespaced: true, kind: 'Pod', verbs: ['get'] }
const answers: { readonly [path: string]: object } = {
  '/api': { kind: 'APIVersions', versions: ['v1'] },
  '/apis': { kind: 'APIGroupList', apiVersion: 'v1', groups: [] },
  '/api/v1': { kind: 'APIResourceList', groupVersion: 'v1', resources: [pods] },
  '/api/v1/namespaces/default/pods/prepared': pod,
}

if (process.argv[1] === itself) {
  process.once('message', (start: Start) => void serve(start))
  // The process that measures has ended, perhaps without ending this one.
  process.once('disconnect', () => process.exit())
}

/** Its pod `prepared` has `mib` MiB of each. The cache of kubectl is in `folder`. */
export async function preparedServer(folder: string, start: Start): Promise<PreparedServer> {
  const child: ChildProcess = fork(itself)
  const listening = once(child, 'message')
  child.send(start)
  const [port] = (await listening) as [number]
  const server = ['--server', `https://127.0.0.1:${port}`, '--insecure-skip-tls-verify', '--token=none']
  return {
    options: [...server, '--kubeconfig=/dev/null', `--cache-dir=${folder}/prepared-cache`],
    pid: child.pid ?? 0,
    close: () => void child.kill('SIGKILL'),
  }
}

async function serve({ cert, key, mib }: Start): Promise<void> {
  const server = createSecureServer({ cert, key, allowHTTP1: true })
  server.on('request', (request: Http2ServerRequest, response: Http2ServerResponse) => {
    const [path = ''] = request.url.split('?')
    if (path.endsWith('/log')) return void sendLog(response, mib)
    const answer = answers[path]
    response.writeHead(answer === undefined ? 404 : 200, { 'Content-Type': 'application/json' })
    response.end(JSON.stringify(answer ?? { kind: 'Status', apiVersion: 'v1', status: 'Failure', code: 404 }))
  })
  server.on('upgrade', (incoming: IncomingMessage, socket: Duplex, head: Buffer) => {
    const { signal } = new AbortController()
    const [protocol = ''] = incoming.headers['sec-websocket-protocol']?.split(',') ?? []
    const accepted = acceptUpgrade({ incoming, socket, head, signal }, { upgrade: 'websocket', protocol })
    const send = protocol.startsWith('SPDY') ? sendPages : sendOutput
    accepted.then((channel) => channel && send(channel, mib)).catch(() => socket.destroy())
  })
  server.listen({ port: 0, host: '127.0.0.1' })
  await once(server, 'listening')
  process.send?.((server.address() as AddressInfo).port)
}

async function sendLog(response: Http2ServerResponse, mib: number): Promise<void> {
  const piece = Buffer.from(line.repeat(Math.floor(pieceBytes / line.length)))
  response.writeHead(200, { 'Content-Type': 'text/plain' })
  for (let left = mib * 2 ** 20; left > 0; left -= piece.length) {
    if (!response.write(piece)) await once(response, 'drain')
  }
  response.end()
}

/** Channel 1 is standard output, 3 the Status that ends it (v5.channel.k8s.io). */
async function sendOutput(channel: ByteChannel, mib: number): Promise<void> {
  for (let left = mib * 2 ** 20; left > 0; left -= pieceBytes) {
    await channel.send(Buffer.alloc(1 + Math.min(left, pieceBytes), 1))
  }
  await channel.send(Buffer.from(`\x03${JSON.stringify({ metadata: {}, status: 'Success' })}`))
  await channel.flushed()
  channel.close()
}

async function sendPages(channel: ByteChannel, mib: number): Promise<void> {
  const connection = spdyConnection(channel)
  for (let stream = await connection.accept(); stream !== undefined; stream = await connection.accept()) {
    if (stream.headers.get('streamtype') !== 'data') continue
    await stream.next()
    await stream.send(Buffer.from(`HTTP/1.1 200 OK\r\nContent-Length: ${mib * 2 ** 20}\r\n\r\n`))
    for (let left = mib * 2 ** 20; left > 0; left -= pieceBytes) {
      await stream.send(Buffer.alloc(Math.min(left, pieceBytes)))
    }
    await stream.end()
  }
}
