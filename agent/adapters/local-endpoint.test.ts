import { request } from 'node:http'
import { type Test, test } from 'tap'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { until } from '../testing/until.ts'
import { localEndpoint } from './local-endpoint.ts'

type Said = { readonly status: number | undefined; readonly body: string }

function ask(url: string, more: { method?: string; headers?: { [name: string]: string } } = {}): Promise<Said> {
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

async function open(t: Test, problems: readonly string[] = [], port = 0, ...expectedErrors: string[]) {
  const log = quietLog(t, ...expectedErrors)
  const view = {
    problems: () => problems,
    pods: () => [{ metadata: { name: 'web' } }],
    spec: () => ({ num_cores: 4 }),
    summary: async (brief: boolean) => {
      if (problems.includes('no engine')) throw new Error('No engine')
      return { node: { nodeName: 'pi-01', brief }, pods: [] }
    },
    scrapes: { metrics: async () => 'up 1\n', cadvisor: async () => 'c 1\n', resource: async () => 'r 1\n' },
  }
  const endpoint = localEndpoint({ view, log }, { host: '127.0.0.1', port })
  const stopping = new AbortController()
  const done = endpoint.run(stopping.signal)
  t.teardown(async () => {
    stopping.abort()
    await done
  })
  await until('it listens, or says why not', () => log.lines.length > 0)
  return { url: endpoint.url() ?? '', log }
}

test('whoever is on the machine can ask how the agent is, what runs, and what machine it is', async (t) => {
  const { url } = await open(t)
  t.same(await ask(`${url}/healthz`), { status: 200, body: 'ok\n' })
  t.match(JSON.parse((await ask(`${url}/pods/`)).body), { kind: 'PodList', items: [{ metadata: { name: 'web' } }] })
  t.same(JSON.parse((await ask(`${url}/spec?x=1`)).body), { num_cores: 4 })
})

test('an agent that is not well says why', async (t) => {
  const { url } = await open(t, ['loop lease hangs', 'loop node-status hangs'])
  t.same(await ask(`${url}/healthz`), { status: 500, body: 'loop lease hangs\nloop node-status hangs\n' })
})

test('who asks what is used is told all of it, or CPU and memory only, or why not', async (t) => {
  const { url } = await open(t)
  t.match(JSON.parse((await ask(`${url}/stats/summary`)).body), { node: { nodeName: 'pi-01', brief: false } })
  t.match(JSON.parse((await ask(`${url}/stats/summary?only_cpu_and_memory=true`)).body), { node: { brief: true } })
  const { url: without } = await open(t, ['no engine'])
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
  t.equal((await ask(`${url}/pods`, { method: 'POST' })).status, 405)
  t.match(await ask(`${url}/stats`), { status: 404, body: /there are \/healthz/ })
  t.equal((await ask(`${url}/pods`, { headers: { host: 'evil.example' } })).status, 403)
  t.equal((await ask(`${url}/pods`, { headers: { host: 'localhost:1234' } })).status, 200)
})

test('a port that is taken is told with its remedy, and the agent goes on', async (t) => {
  const message = 'The local endpoint cannot be opened, going on without it'
  const first = await open(t)
  const { log } = await open(t, [], Number(new URL(first.url).port), message)
  t.match(log.lines[0], { level: 'error', message, facts: { remedy: /--healthz-port/ } })
})
