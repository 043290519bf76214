/** Measures the Kubernetes API over HTTP/1.1 and over HTTP/2, against one running controller. `--help` prints the usage. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2'
import { Agent, request } from 'node:https'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type ApiAccess, readKubeconfig } from '../broker-controller/commands/connection/kubeconfig.ts'
import { startProgram } from '../test/support/program.ts'
import { median } from './figures/median.ts'
import { benchmarkOptions } from './options/benchmark-options.ts'

const {
  controller,
  list: listLength,
  idle: idleCount,
  rounds: roundCount,
} = benchmarkOptions({
  name: 'node dist/bench/protocols.js',
  text: `Starts bramble-controller in a temporary folder and measures reads, lists, watches and idle connections over HTTP/1.1 and HTTP/2 in
turn. Prints a table.`,
  options: {
    controller: { value: 'LAUNCHER', help: 'the program to measure', default: 'scripts/bramble-controller' },
    list: { value: 'N', help: 'objects in the list', range: [1, 1_000_000], default: '3000' },
    idle: { value: 'N', help: 'idle connections of each protocol', range: [1, 10_000], default: '300' },
    rounds: { value: 'N', help: 'rounds', range: [1, 1_000], default: '3' },
  },
})
const reads = 3000
const lists = 20
const watchCount = 50
const changes = 50
const maps = '/api/v1/namespaces/default/configmaps'
const kinds = { 'HTTP/1.1': http1, 'HTTP/2': http2 }

/** A client with connections of its own. */
type Client = {
  /** Resolves with the bytes of the body of the answer. */
  get(path: string): Promise<number>
  post(path: string, body: unknown): Promise<number>
  patch(path: string, body: unknown): Promise<number>
  /** Resolves when the answer began; `onData` is called with each part. */
  watch(path: string, onData: () => void): Promise<void>
  close(): void
}
type Figures = { readonly [what: string]: number }

await run()

type Server = { readonly pid: number; readonly access: ApiAccess }

async function run(): Promise<void> {
  const rounds: { [name: string]: Figures[] } = { 'HTTP/1.1': [], 'HTTP/2': [] }
  // Each in a program of its own: memory that one has used once would serve the other.
  const idle: number[] = []
  for (const open of Object.values(kinds))
    await onController(async (server) => void idle.push(await idling(server, open)))
  await onController(async ({ pid, access }) => {
    await fill(access)
    await measured(pid, access, http1) // warms up
    await measured(pid, access, http2)
    for (let round = 0; round < roundCount; round++) {
      for (const [name, open] of Object.entries(kinds)) rounds[name]?.push(await measured(pid, access, open))
    }
  })
  const [load = 0] = loadavg()
  console.log(
    `Node ${process.version}, ${cpus().length} cores, load ${load.toFixed(1)}; medians of ${roundCount} rounds\n`,
  )
  console.log(`| | ${Object.keys(kinds).join(' | ')} |\n| --- | ---: | ---: |`)
  for (const what of Object.keys(rounds['HTTP/2']?.[0] ?? {})) {
    const row = Object.values(rounds).map((all) => median(all.map((one) => one[what] ?? Number.NaN)).toFixed(2))
    console.log(`| ${what} | ${row.join(' | ')} |`)
  }
  console.log(`| resident per idle connection of ${idleCount}, kB | ${idle.map((one) => one.toFixed(0)).join(' | ')} |`)
}

async function onController(use: (server: Server) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'bramble-protocols-'))
  const ends: (() => Promise<unknown>)[] = []
  try {
    const config = join(folder, 'controller.yaml')
    const file = { apiVersion: 'bramble.dev/v1alpha1', kind: 'ControllerConfiguration', podNetwork: 'node' }
    await writeFile(config, JSON.stringify(file))
    const where = [
      '--bind-address',
      '127.0.0.1',
      '--advertise-address',
      '127.0.0.1',
      '--api-port',
      '0',
      '--mqtt-port',
      '0',
    ]
    const files = ['--data-dir', join(folder, 'controller'), '--config', config, '--log-format', 'json']
    const program = startProgram([controller, 'run', ...files, ...where], (end) => void ends.push(end))
    const ready = await program.logged('Controller ready')
    await use({ pid: program.pid, access: await readKubeconfig(String(ready['kubeconfig'])) })
  } finally {
    for (const end of ends.reverse()) await end()
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** Kilobytes of the server for each connection that has had one answer. */
async function idling({ pid, access }: Server, open: (access: ApiAccess) => Client): Promise<number> {
  const clients: Client[] = []
  const opened = (count: number) =>
    inParallel(count, 16, async () => {
      const client = open(access)
      clients.push(client)
      await client.get('/version')
    })
  await opened(20) // the code is loaded
  await delay(3000)
  const before = await residentKB(pid)
  await opened(idleCount)
  await delay(3000)
  const each = ((await residentKB(pid)) - before) / idleCount
  for (const client of clients) client.close()
  return each
}

async function fill(access: ApiAccess): Promise<void> {
  const client = http1(access)
  await inParallel(listLength, 16, (i) =>
    client.post(maps, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: `map-${i}`, labels: { app: 'bench' } },
      data: { text: 'x'.repeat(300) },
    }),
  )
  client.close()
}

async function measured(pid: number, access: ApiAccess, open: (access: ApiAccess) => Client): Promise<Figures> {
  const client = open(access)
  const figures: { [what: string]: number } = {}
  const timed = async (what: string, count: number, act: () => Promise<unknown>) => {
    const [cpu, startedMs] = [await cpuMs(pid), performance.now()]
    await act()
    figures[`${what}: requests per second`] = count / ((performance.now() - startedMs) / 1000)
    figures[`${what}: ms of processor each`] = ((await cpuMs(pid)) - cpu) / count
  }
  const get = (i: number) => client.get(`${maps}/map-${i % listLength}`)
  await timed('get, 1 at a time', reads, () => inParallel(reads, 1, get))
  await timed('get, 16 at a time', reads, () => inParallel(reads, 16, get))
  await timed(`list of ${listLength}`, lists, () => inParallel(lists, 1, () => client.get(maps)))
  await timed(`a change to ${watchCount} watches`, changes, () => changing(client))
  client.close()
  await delay(500)
  return figures
}

/** One object is changed; the next change is made when all watches have received the one before. */
async function changing(client: Client): Promise<void> {
  let received = 0
  let all: () => void = () => undefined
  const path = `${maps}?watch=1&fieldSelector=metadata.name%3Dmap-0`
  const seen = () => {
    received += 1
    if (received === watchCount) all()
  }
  const allSeen = (act: () => Promise<unknown>) =>
    new Promise<void>((resolve, reject) => {
      all = resolve
      act().catch(reject)
    })
  await allSeen(() => Promise.all(Array.from({ length: watchCount }, () => client.watch(path, seen))))
  for (let i = 0; i < changes; i++) {
    received = 0
    await allSeen(() => client.patch(`${maps}/map-0`, { data: { change: `${i} ${performance.now()}` } }))
  }
}

function http1({ url, ca, certificate: cert, key }: ApiAccess): Client {
  const tls = { ca, ...(cert && { cert }), ...(key && { key }) }
  const agent = new Agent({ keepAlive: true, ...tls })
  const send = (method: string, path: string, body?: unknown, onData?: () => void) =>
    new Promise<number>((resolve, reject) => {
      const asked = request(`${url}${path}`, { agent, method, headers: headersOf(method) }, (answer) => {
        let bytes = 0
        answer.on('data', (part: Buffer) => {
          bytes += part.length
          onData?.()
        })
        if (onData) resolve(0)
        answer.once('end', () => resolve(bytes)).on('error', () => undefined)
        if ((answer.statusCode ?? 0) >= 300) reject(new Error(`${method} ${path}: ${answer.statusCode}`))
      })
      asked.on('error', reject)
      asked.end(body === undefined ? undefined : JSON.stringify(body))
    })
  return clientOf(send, () => agent.destroy())
}

function http2({ url, ca, certificate: cert, key }: ApiAccess): Client {
  const session: ClientHttp2Session = connectHttp2(url, { ca, ...(cert && { cert }), ...(key && { key }) })
  session.on('error', () => undefined)
  session.setMaxListeners(0)
  const send = (method: string, path: string, body?: unknown, onData?: () => void) =>
    new Promise<number>((resolve, reject) => {
      const endStream = body === undefined
      const stream = session.request({ ':method': method, ':path': path, ...headersOf(method) }, { endStream })
      let bytes = 0
      stream.on('data', (part: Buffer) => {
        bytes += part.length
        onData?.()
      })
      stream.once('response', ({ ':status': code = 0 }) => {
        if (code >= 300) reject(new Error(`${method} ${path}: ${code}`))
        if (onData) resolve(0)
      })
      stream.once('end', () => resolve(bytes)).on('error', reject)
      if (!endStream) stream.end(JSON.stringify(body))
    })
  return clientOf(send, () => session.destroy())
}

type Send = (method: string, path: string, body?: unknown, onData?: () => void) => Promise<number>

function clientOf(send: Send, close: () => void): Client {
  return {
    get: (path) => send('GET', path),
    post: (path, body) => send('POST', path, body),
    patch: (path, body) => send('PATCH', path, body),
    async watch(path, onData) {
      await send('GET', path, undefined, onData)
    },
    close,
  }
}

function headersOf(method: string) {
  const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
  return { accept: 'application/json', ...(method !== 'GET' && { 'content-type': type }) }
}

async function inParallel(count: number, atOnce: number, act: (i: number) => Promise<unknown>): Promise<void> {
  let next = 0
  const worker = async () => {
    for (let i = next++; i < count; i = next++) await act(i)
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
}

async function residentKB(pid: number): Promise<number> {
  return Number(/^VmRSS:\s*(\d+)/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1])
}

/** User and system time so far; the kernel counts in hundredths of a second. */
async function cpuMs(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10
}
