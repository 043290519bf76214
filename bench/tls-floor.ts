/** Measures the cost of a TLS connection in Node.js itself, without Bramble. `--help` prints the usage. */
import { type ChildProcess, fork } from 'node:child_process'
import { constants } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect as connectPlain, createServer as createPlain, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type ConnectionOptions, connect, createServer } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { openAuthority } from '../certs/authority.ts'
import { issueNode, issueServer } from '../certs/issue.ts'
import type { Command } from '../daemon/process/command.ts'
import { printText, readArguments } from '../daemon/process/command-line.ts'

const whole = [1, 1_000_000] as const
/** A PUBLISH on the topic of a lease, with the digest of what the node reported. */
const beatBytes = 100
const beatsPerSecond = 1000
const row = {
  name: 'node dist/bench/tls-floor.js',
  about: 'what connections and writes cost Node.js itself, without Bramble',
  text: `Measures servers that only accept connections and read what arrives: over TCP, over TLS, and over TLS with client certificates
of the kind that nodes have. They are lower limits of what bench/fleet.ts measures. Each server is a process of its own. CPU
times are those of the whole process, per connection: the first connections, and those made after all of these were closed.
After the statuses of --received bytes each connection sends messages of the size of a heartbeat, spread over the time, as nodes do.
The server of TLS also writes 760 bytes to 100 connections, again and again, and 1.6 MB to one: lower limits of bench/api.ts.`,
  forms: { '': '' },
  options: {
    connections: { value: 'N', help: 'number of connections', range: whole, default: '1000' },
    received: { value: 'BYTES', help: 'what each connection sends to the server', range: whole, default: '17000' },
    sent: { value: 'BYTES', help: 'what the server sends to each connection', range: whole, default: '5000' },
    beats: { value: 'S', help: 'seconds for which messages are sent, 1000 a second', range: whole, default: '10' },
    node: { value: 'FILE', help: 'another Node.js for the servers', defaultText: 'this one' },
    'node-option': { value: 'OPTION', help: 'option of Node.js or V8 for the servers', repeated: true },
  },
} as const satisfies Command

type Kind = 'TCP' | 'TLS' | 'TLS with client certificates'
type Tls = { readonly ca: string; readonly cert: string; readonly key: string }
type Settings = { readonly kind: Kind; readonly tls: Tls }
/** `port` answers the settings; `usage` is answered after a `write` was done, this often to each connection. */
type Order = { readonly settings: Settings } | { readonly usage: true } | { readonly write: Write }
type Write = { readonly bytes: number; readonly times: number }
type Answer = { readonly port: number } | Usage
type Usage = { readonly cpuMs: number; readonly residentBytes: number }

if (process.send === undefined) await measureAll()
else serve()

function serve(): void {
  const sockets = new Set<Socket>()
  const accept = (socket: Socket) => {
    sockets.add(socket)
    socket.on('data', () => undefined)
    socket.on('error', () => undefined)
    socket.once('close', () => sockets.delete(socket))
  }
  const answer = (given: Answer) => void process.send?.(given)
  process.on('message', async (order: Order) => {
    if ('settings' in order) {
      const server = serverFor(order.settings, accept)
      server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () => {
        const address = server.address()
        answer({ port: typeof address === 'object' && address !== null ? address.port : 0 })
      })
      return
    }
    if ('write' in order) await writeAll([...sockets], order.write)
    const { user, system } = process.cpuUsage()
    answer({ cpuMs: (user + system) / 1000, residentBytes: process.memoryUsage.rss() })
  })
}

/** Without session tickets, as the controller. */
function serverFor({ kind, tls }: Settings, accept: (socket: Socket) => void): Server {
  if (kind === 'TCP') return createPlain({ noDelay: true }, accept)
  const requestCert = kind === 'TLS with client certificates'
  const secureOptions = constants.SSL_OP_NO_TICKET
  return createServer({ ...tls, requestCert, rejectUnauthorized: requestCert, secureOptions, noDelay: true }, accept)
}

/** In slices that the allocator of the C library does not map apart, each when the one before was taken. */
async function writeAll(sockets: readonly Socket[], { bytes, times }: Write): Promise<void> {
  const slice = Buffer.alloc(Math.min(bytes, 48 * 1024))
  for (let i = 0; i < times; i++) {
    for (const socket of sockets) {
      for (let left = bytes; left > 0; left -= slice.length) {
        if (!socket.write(slice.subarray(0, left))) await once(socket, 'drain')
      }
    }
    await delay(1)
  }
}

async function measureAll(): Promise<void> {
  const read = readArguments(row, process.argv.slice(2))
  if (read.want !== 'act') {
    process.exitCode = printText(read, { stdout: (text) => console.log(text), stderr: (text) => console.error(text) })
    return
  }
  const { values } = read
  const folder = await mkdtemp(join(tmpdir(), 'bramble-tls-floor-'))
  try {
    const authority = await openAuthority(join(folder, 'authority'), Date.now())
    const server = issueServer(authority, { names: ['localhost'], nowMs: Date.now() })
    const node = issueNode(authority, { nodeName: 'node-1', nowMs: Date.now() })
    const chain = `${server.certificate}${authority.certificate}` // as the controller sends it
    const ofServer = { ca: authority.trusted, cert: chain, key: server.key }
    const ofClient = { ca: authority.trusted, cert: node.certificate, key: node.key }
    for (const kind of ['TCP', 'TLS', 'TLS with client certificates'] as const) {
      const execPath = values.node ?? process.execPath
      const child = fork(fileURLToPath(import.meta.url), { execPath, execArgv: [...values['node-option']] })
      try {
        await measureConnections(child, { kind, tls: ofServer }, ofClient, values)
        if (kind === 'TLS') await measureWrites(child, ofServer, ofClient)
      } finally {
        child.kill('SIGKILL')
      }
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

type Amounts = {
  readonly connections: number
  readonly received: number
  readonly sent: number
  readonly beats: number
}

async function measureConnections(
  child: ChildProcess,
  settings: Settings,
  client: Tls,
  { connections, received, sent, beats }: Amounts,
): Promise<void> {
  const { kind } = settings
  const port = await opened(child, settings)
  const base = await usageOf(child)
  const first = await connectedAll(kind, port, client, connections)
  await delay(1000)
  const idle = await usageOf(child)
  for (const socket of first) socket.write(Buffer.alloc(received))
  await delay(1000)
  await ordered(child, { write: { bytes: sent, times: 1 } })
  await delay(1000)
  const busy = await usageOf(child)
  const beatUs = await measureBeats(child, first, beats)
  for (const socket of first) socket.destroy()
  await delay(1000)
  const closed = await usageOf(child)
  const second = await connectedAll(kind, port, client, connections)
  await delay(1000)
  const again = await usageOf(child)
  for (const socket of second) socket.destroy()
  const ms = (from: Usage, to: Usage) => ((to.cpuMs - from.cpuMs) / connections).toFixed(2)
  const kB = ({ residentBytes }: Usage) => ((residentBytes - base.residentBytes) / connections / 1000).toFixed(0)
  console.log(
    `${kind}: ${ms(base, idle)} ms of CPU time for each of the first, ${ms(closed, again)} ms for each further one; resident per connection ${kB(idle)} kB idle, ${kB(busy)} kB after ${received} B received and ${sent} B sent; ${beatUs.toFixed(0)} µs for a message of ${beatBytes} B`,
  )
}

/** One connection after the other, a few each time: the server finds each cold, as that of a large fleet does. */
async function measureBeats(child: ChildProcess, sockets: readonly Socket[], seconds: number): Promise<number> {
  const message = Buffer.alloc(beatBytes)
  const [before, startMs] = [await usageOf(child), performance.now()]
  let sent = 0
  for (const total = seconds * beatsPerSecond; sent < total; ) {
    const due = Math.min(total, Math.floor(((performance.now() - startMs) * beatsPerSecond) / 1000))
    for (; sent < due; sent++) sockets[sent % sockets.length]?.write(message)
    await delay(20)
  }
  await delay(500)
  const after = await usageOf(child)
  return ((after.cpuMs - before.cpuMs) * 1000) / sent
}

/** A change that 100 watches receive, and a list of 3,000 objects, as plain bytes. */
async function measureWrites(child: ChildProcess, server: Tls, client: Tls): Promise<void> {
  for (const { what, bytes, connections, times } of [
    { what: 'an event', bytes: 760, connections: 100, times: 500 },
    { what: 'a list', bytes: 1_640_000, connections: 1, times: 200 },
  ]) {
    const port = await opened(child, { kind: 'TLS', tls: server })
    const sockets = await connectedAll('TLS', port, client, connections)
    await ordered(child, { write: { bytes, times } })
    const before = await usageOf(child)
    await ordered(child, { write: { bytes, times } })
    const us = (((await usageOf(child)).cpuMs - before.cpuMs) * 1000) / (times * connections)
    console.log(`${what} of ${bytes} B, written to ${connections} connections: ${us.toFixed(0)} µs of CPU time each`)
    for (const socket of sockets) socket.destroy()
    await delay(500)
  }
}

async function opened(child: ChildProcess, settings: Settings): Promise<number> {
  const answer = await ordered(child, { settings })
  return 'port' in answer ? answer.port : 0
}

async function connectedAll(kind: Kind, port: number, client: Tls, count: number): Promise<readonly Socket[]> {
  const sockets: Socket[] = []
  while (sockets.length < count) {
    const some = Array.from({ length: Math.min(64, count - sockets.length) }, () => connected(kind, port, client))
    sockets.push(...(await Promise.all(some)))
  }
  for (const socket of sockets) socket.resume()
  return sockets
}

async function connected(kind: Kind, port: number, { ca, cert, key }: Tls): Promise<Socket> {
  const where = { port, host: '127.0.0.1' }
  const options: ConnectionOptions = { ...where, servername: 'localhost', ca, cert, key }
  const socket = kind === 'TCP' ? connectPlain(where) : connect(options)
  socket.on('error', () => undefined)
  await once(socket, kind === 'TCP' ? 'connect' : 'secureConnect')
  return socket
}

async function usageOf(child: ChildProcess): Promise<Usage> {
  const answer = await ordered(child, { usage: true })
  return 'cpuMs' in answer ? answer : { cpuMs: Number.NaN, residentBytes: Number.NaN }
}

async function ordered(child: ChildProcess, order: Order): Promise<Answer> {
  const answered = once(child, 'message')
  child.send(order)
  const [answer] = (await answered) as [Answer]
  return answer
}
