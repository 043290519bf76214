import { chmod, mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type Test, test } from 'tap'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { until } from '../../testing/until.ts'
import { localEndpoint } from './local-endpoint.ts'

type Reply = { readonly status: number | undefined; readonly body: string }

type Asking = { method?: string; headers?: { [name: string]: string }; socketPath?: string }

function ask(url: string, more: Asking = {}): Promise<Reply> {
  return new Promise((resolve, reject) => {
    request(url, { agent: false, ...more }, (response) => {
      let body = ''
      response.setEncoding('utf8').on('data', (part: string) => {
        body += part
      })
      response.on('end', () => resolve({ status: response.statusCode, body }))
    })
      .on('error', reject)
      .end()
  })
}

/** A name of a socket has at most 107 bytes: the folders of tests are longer. */
async function socketFolder(t: Test): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'bramble-local-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  return folder
}

type Opening = { problems?: readonly string[]; port?: number; expectedErrors?: string[]; socketPath?: string }

async function open(t: Test, { problems = [], port = 0, expectedErrors = [], ...more }: Opening = {}) {
  const socketPath = more.socketPath ?? join(await socketFolder(t), 's')
  const log = quietLog(t, ...expectedErrors)
  const view = {
    problems: () => problems,
    pods: () => [{ metadata: { name: 'web' } }],
    spec: () => ({ num_cores: 4 }),
    summary: async (brief: boolean) => {
      if (problems.includes('no engine')) throw new Error('No engine')
      if (problems.includes('slow engine')) await new Promise(() => undefined)
      return { node: { nodeName: 'pi-01', brief }, pods: [] }
    },
    scrapes: {
      metrics: async () => 'up 1\n',
      cadvisor: async () => 'c 1\n',
      resource: async () => 'r 1\n',
      probes: async () => 'p 1\n',
    },
    configz: () => ({ maxPods: 110 }),
    doctor: async () => ({ kind: 'DoctorReport' }),
    logs: async () => undefined,
    network: async function* () {
      yield Buffer.from('{"proven":{},"failures":{}}\n')
    },
  }
  const endpoint = localEndpoint({ view, log }, { host: '127.0.0.1', port, socketPath })
  const stopping = new AbortController()
  const done = endpoint.run(stopping.signal)
  const stop = async () => {
    stopping.abort()
    await done
  }
  t.teardown(stop)
  await until('port and socket are open, or the log has the reason', () => log.lines.length > 1)
  return { url: endpoint.url() ?? '', log, socketPath, stop }
}

test('health is for every user of the machine, specifications are for the agent’s own user', async (t) => {
  const { url, socketPath } = await open(t)
  t.same(await ask(`${url}/healthz`), { status: 200, body: 'ok\n' })
  for (const path of ['/pods', '/pods/', '/pods?x=1', '/spec', '/doctor', '/network']) {
    t.match(await ask(`${url}${path}`), { status: 403, body: /--unix-socket/ }, path)
  }
  const own = (path: string) => ask(`http://localhost${path}`, { socketPath })
  t.same(await own('/healthz'), { status: 200, body: 'ok\n' })
  t.match(JSON.parse((await own('/pods/')).body), { kind: 'PodList', items: [{ metadata: { name: 'web' } }] })
  t.same(JSON.parse((await own('/spec?x=1')).body), { num_cores: 4 })
  t.same(JSON.parse((await own('/doctor')).body), { kind: 'DoctorReport' })
  t.same(JSON.parse((await own('/network')).body), { proven: {}, failures: {} })
})

test('the socket is for one user from its first moment, takes the place of an old one, and goes with the agent', async (t) => {
  const folder = await socketFolder(t)
  const socketPath = join(folder, 'made', 's')
  await mkdir(dirname(socketPath), { mode: 0o755 })
  await writeFile(socketPath, 'left by an agent that was killed')
  const { stop } = await open(t, { socketPath })
  const found = await stat(socketPath)
  t.same([found.isSocket(), found.mode & 0o777], [true, 0o600])
  t.same(await readdir(dirname(socketPath)), ['s'])
  await stop()
  t.same(await readdir(dirname(socketPath)), [])
})

test('a folder in which others may write gets no socket, and the agent continues without it', async (t) => {
  const folder = await socketFolder(t)
  await chmod(folder, 0o777)
  const { url, log } = await open(t, { socketPath: join(folder, 's') })
  t.match(
    log.lines.find(({ level }) => level === 'warn'),
    { facts: { error: { message: `Other users may write in ${folder}: chmod go-w ${folder}` } } },
  )
  t.same(await readdir(folder), [])
  t.equal((await ask(`${url}/healthz`)).status, 200)
})

test('connections that stay open do not block other clients', async (t) => {
  const { url } = await open(t, { problems: ['slow engine'] })
  const { port } = new URL(url)
  const flood = async (text: string) => {
    const sockets: Socket[] = []
    t.teardown(() => {
      for (const socket of sockets) socket.destroy()
    })
    for (let count = 0; count < 200; count++) {
      const socket = connect(Number(port), '127.0.0.1').on('error', () => undefined)
      sockets.push(socket)
      await new Promise((resolve) => socket.once('connect', resolve))
      socket.write(text)
    }
  }
  await flood('GET /healthz HTTP/1.1\r\nhost: local')
  t.equal((await ask(`${url}/healthz`)).status, 500, 'while none of 200 ends its request')
  await flood('GET /stats/summary HTTP/1.1\r\nhost: localhost\r\n\r\n')
  t.equal((await ask(`${url}/healthz`)).status, 500, 'while 200 wait for an answer')
})

test('an agent that is not well answers with the reason', async (t) => {
  const { url } = await open(t, { problems: ['loop lease hangs', 'loop node-status hangs'] })
  t.same(await ask(`${url}/healthz`), { status: 500, body: 'loop lease hangs\nloop node-status hangs\n' })
})

test('a query of the usage is answered with all of it, or CPU and memory only, or the reason why not', async (t) => {
  const { url } = await open(t)
  t.match(JSON.parse((await ask(`${url}/stats/summary`)).body), { node: { nodeName: 'pi-01', brief: false } })
  t.match(JSON.parse((await ask(`${url}/stats/summary?only_cpu_and_memory=true`)).body), { node: { brief: true } })
  const { url: without } = await open(t, { problems: ['no engine'] })
  t.same(await ask(`${without}/stats/summary`), { status: 500, body: 'No engine\n' })
})

test('Prometheus finds its three paths', async (t) => {
  const { url } = await open(t)
  t.same(await ask(`${url}/metrics`), { status: 200, body: 'up 1\n' })
  t.same(await ask(`${url}/metrics/cadvisor`), { status: 200, body: 'c 1\n' })
  t.same(await ask(`${url}/metrics/resource`), { status: 200, body: 'r 1\n' })
})

test('nothing can be changed here, nothing else is served, and no foreign page may read', async (t) => {
  const { url } = await open(t)
  t.equal((await ask(`${url}/healthz`, { method: 'POST' })).status, 405)
  t.match(await ask(`${url}/stats`), { status: 404, body: /there are \/healthz/ })
  t.match(await ask(`${url}/healthz`, { headers: { host: 'evil.example' } }), {
    status: 403,
    body: /Ask for localhost/,
  })
  t.equal((await ask(`${url}/healthz`, { headers: { host: 'localhost:1234' } })).status, 200)
})

test('a port that is taken is logged with its remedy, and the agent goes on', async (t) => {
  const message = 'Cannot open the local endpoint, continuing without it'
  const first = await open(t)
  const { log } = await open(t, { port: Number(new URL(first.url).port), expectedErrors: [message] })
  t.match(
    log.lines.find(({ level }) => level === 'error'),
    { level: 'error', message, facts: { remedy: /--healthz-port/ } },
  )
})
