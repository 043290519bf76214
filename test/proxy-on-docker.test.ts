/** The proxies of the API on real parts: kubectl, controller, agent and Docker. */
import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { request } from 'node:http'
import type { Duplex } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { type Test, test } from 'tap'
import { readMetrics } from '../daemon/testing/prometheus-parser.ts'
import { joinedFleet } from './support/joined-fleet.ts'
import { image } from './support/pods.ts'
import { eventually } from './support/wait.ts'

const nodes = '/api/v1/nodes'
const pods = '/api/v1/namespaces/default/pods'

test('the node proxy shows what the agent shows', async (t) => {
  const { controller, startReady } = await joinedFleet(t)
  const [agent] = await startReady()
  const { kubectl, kubectlWith, tryKubectl } = controller
  const probe = { exec: { command: ['true'] }, periodSeconds: 1 }
  const main = { name: 'main', image, command: ['sleep', '1000'], readinessProbe: probe }
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web' }, spec: { containers: [main] } }
  await kubectlWith(JSON.stringify(pod), 'apply', '-f', '-')
  await kubectl('wait', '--for=condition=Ready', 'pod/web', '--timeout=80s')
  const raw = (path: string) => kubectl('get', '--raw', `${nodes}/pi-1${path}`)

  t.equal(await raw('/proxy/healthz'), 'ok\n')
  for (const port of [':10250', ':10255']) t.equal(await raw(`${port}/proxy/healthz`), 'ok\n')
  t.equal(await kubectl('get', '--raw', `${nodes}/https:pi-1:10250/proxy/healthz`), 'ok\n')
  t.match(JSON.parse(await raw('/proxy/pods')), { kind: 'PodList', items: [{ metadata: { name: 'web' } }] })
  t.match(JSON.parse(await raw('/proxy/pods/')), { items: [{ metadata: { name: 'web' } }] })
  t.match(JSON.parse(await raw('/proxy/stats/summary')), {
    node: { nodeName: 'pi-1' },
    pods: [{ podRef: { name: 'web' } }],
  })
  t.match(JSON.parse(await raw('/proxy/configz')), {
    kubeletconfig: { maxPods: 110, nodeStatusUpdateFrequency: '10s', evictionHard: { 'memory.available': '100Mi' } },
  })
  t.ok(readMetrics(await raw('/proxy/metrics')).has('kubelet_running_pods'))
  t.ok(readMetrics(await raw('/proxy/metrics/cadvisor')).has('container_memory_working_set_bytes'))
  t.ok(readMetrics(await raw('/proxy/metrics/resource')).has('pod_memory_working_set_bytes'))
  const { samples = [] } = readMetrics(await raw('/proxy/metrics/probes')).get('prober_probe_total') ?? {}
  t.match(
    samples.find(({ labels }) => labels['result'] === 'successful'),
    { labels: { probe_type: 'Readiness', container: 'main', pod: 'web', namespace: 'default' } },
  )
  t.match(await raw('/proxy/logs/'), /^<pre>\n/)
  t.match(await raw('/proxy/logs'), /^<pre>\n/, 'a folder without its slash is a redirect')

  const refusal = async (...args: readonly string[]) => (await tryKubectl(...args)).stderr.trim()
  t.match(await refusal('get', '--raw', `${nodes}/pi-1/proxy/none`), /NotFound|the server could not find/)
  t.match(await refusal('get', '--raw', `${nodes}/pi-1/proxy/logs/../../shadow`), /could not find|NotFound/)
  t.match(await refusal('get', '--raw', `${nodes}/none/proxy/healthz`), /nodes "none" not found/)
  t.match(await refusal('get', '--raw', `${nodes}/pi-1:x/proxy/healthz`), /invalid node request "pi-1:x"/)
  t.match(await refusal('delete', '--raw', `${nodes}/pi-1/proxy/pods`), /method|not allow/i)

  await t.test('with the right to nodes/proxy only', async (t) => {
    await kubectl('create', 'serviceaccount', 'reader')
    const as = ['--as=system:serviceaccount:default:reader', '--as-group=system:serviceaccounts']
    const path = `${nodes}/pi-1/proxy/metrics`
    t.match(await refusal('get', '--raw', path, ...as), /cannot get resource "nodes\/proxy" in API group ""/)
    await kubectl('create', 'clusterrole', 'reader', '--verb=get', '--resource=nodes/proxy')
    await kubectl('create', 'clusterrolebinding', 'reader', '--clusterrole=reader', '--serviceaccount=default:reader')
    t.ok(readMetrics(await kubectl('get', '--raw', path, ...as)).has('kubelet_running_pods'))
    t.match(await refusal('delete', '--raw', path, ...as), /cannot delete resource "nodes\/proxy"/)
  })

  await t.test('of a node that is away is an error at once', async (t) => {
    await agent.stop()
    t.match(
      await refusal('get', '--raw', `${nodes}/pi-1/proxy/healthz`),
      /node "pi-1" has no connection to the controller/,
    )
  })
})

test('the pod proxy passes requests and answers on', async (t) => {
  const { controller, startReady } = await joinedFleet(t)
  await startReady()
  const { kubectl, kubectlWith } = controller
  const script = [
    'mkdir -p /www/cgi-bin /www/sub && cd /www && head -c 5000000 /dev/zero > large && echo "<a href=/x>index</a>" > index.html && echo below > sub/index.html',
    `printf '#!/bin/sh\\nprintf "Content-Type: text/plain\\\\r\\\\nX-Own: yes\\\\r\\\\n\\\\r\\\\n"; env; echo; cat\\n' > cgi-bin/show`,
    'chmod +x cgi-bin/show',
    'exec httpd -f -p 8080 -h /www',
  ].join('; ')
  const main = { name: 'main', image, command: ['sh', '-c', script], ports: [{ containerPort: 8080 }] }
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web' }, spec: { containers: [main] } }
  await kubectlWith(JSON.stringify(pod), 'apply', '-f', '-')
  await kubectl('wait', '--for=condition=Ready', 'pod/web', '--timeout=80s')
  const base = await proxyOf(t, controller.kubeconfig)

  await eventually('the server listens', async () => (await fetch(`${base}${pods}/web/proxy/`)).ok)
  const page = await fetch(`${base}${pods}/web/proxy/`)
  t.equal(await page.text(), '<a href=/api/v1/namespaces/default/pods/web/proxy/x>index</a>\n')
  t.equal(page.headers.get('content-type')?.split(';')[0], 'text/html')
  for (const name of ['web:8080', 'http:web:8080', 'http:web:']) {
    t.equal((await fetch(`${base}${pods}/${name}/proxy/index.html`)).status, 200, name)
  }
  const root = await fetch(`${base}${pods}/web/proxy?a=1`, { redirect: 'manual' })
  t.match([root.status, root.headers.get('location')], [301, `${pods}/web/proxy/?a=1`])
  const sub = await fetch(`${base}${pods}/web/proxy/sub`, { redirect: 'manual' })
  t.match([sub.status, sub.headers.get('location')], [302, `${pods}/web/proxy/sub/`], 'a redirect of the server')
  t.equal((await (await fetch(`${base}${pods}/web/proxy/large`)).arrayBuffer()).byteLength, 5_000_000)
  t.equal((await fetch(`${base}${pods}/web/proxy/none`)).status, 404)
  const head = await fetch(`${base}${pods}/web/proxy/large`, { method: 'HEAD' })
  t.match([head.status, head.headers.get('content-length')], [200, '5000000'])

  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
    const sent = await fetch(`${base}${pods}/web/proxy/cgi-bin/show?q=%2Fa&x`, {
      method,
      body: 'the body',
      headers: { 'x-one': '1', authorization: 'Bearer secret', 'content-type': 'text/x' },
    })
    const text = await sent.text()
    if (method === 'POST') {
      t.equal(sent.headers.get('x-own'), 'yes')
      t.match(text, /QUERY_STRING=q=%2Fa&x/)
      t.match(text, /\nthe body$/)
      t.notMatch(text, /secret/)
    } else t.ok([200, 501].includes(sent.status), `${method}: ${sent.status}`)
  }

  const failed = await fetch(`${base}${pods}/web:9/proxy/`)
  t.equal(failed.status, 503)
  t.match(await failed.json(), {
    kind: 'Status',
    message: /^error trying to reach service: failed to connect to port 9 of the pod/,
  })
  t.match(await (await fetch(`${base}${pods}/none/proxy/`)).json(), { code: 404, message: 'pods "none" not found' })
  t.match(await (await fetch(`${base}${pods}/a:b:c:d/proxy/`)).json(), {
    code: 400,
    message: 'invalid pod request "a:b:c:d"',
  })
})

test('an upgrade goes through the pod proxy', async (t) => {
  const { controller, startReady } = await joinedFleet(t)
  await startReady()
  const { kubectl, kubectlWith } = controller
  // It answers each connection with 101, and then with what it gets.
  const answer = 'HTTP/1.1 101 Switching Protocols\\r\\nConnection: Upgrade\\r\\nUpgrade: echo\\r\\n\\r\\n'
  const echo = `while read line; do [ "$line" = "$(printf '\\r')" ] && break; done; printf '${answer}'; exec cat`
  const script = `printf '#!/bin/sh\\n%s\\n' "$0" > /echo; chmod +x /echo; exec nc -ll -p 8080 -e /echo`
  const main = { name: 'main', image, command: ['sh', '-c', script, echo], ports: [{ containerPort: 8080 }] }
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'echo' }, spec: { containers: [main] } }
  await kubectlWith(JSON.stringify(pod), 'apply', '-f', '-')
  await kubectl('wait', '--for=condition=Ready', 'pod/echo', '--timeout=80s')
  const base = await proxyOf(t, controller.kubeconfig)
  const socket = await eventually('it upgrades', () => upgraded(`${base}${pods}/echo/proxy/x`))
  t.teardown(() => socket.destroy())
  const sent = randomBytes(1_000_000)
  socket.write(sent)
  const received: Buffer[] = []
  let bytes = 0
  for await (const piece of socket.iterator({ destroyOnReturn: false })) {
    received.push(piece)
    bytes += piece.length
    if (bytes >= sent.length) break
  }
  const hash = (all: Buffer) => createHash('sha256').update(all).digest('hex')
  t.equal(hash(Buffer.concat(received)), hash(sent))
  socket.end()
  await buffer(socket)
})

/** kubectl proxy: a client of its own, with the credentials of the administrator. */
async function proxyOf(t: Test, kubeconfig: string): Promise<string> {
  const child = spawn('kubectl', [
    '--kubeconfig',
    kubeconfig,
    'proxy',
    '--port=0',
    '--reject-paths=^$',
    '--reject-methods=^$',
  ])
  const ended = once(child, 'close')
  t.teardown(async () => {
    child.kill('SIGKILL')
    await ended
  })
  let output = ''
  child.stdout.on('data', (piece: Buffer) => {
    output += piece.toString()
  })
  return eventually('the proxy listens', () => {
    const [, address] = /Starting to serve on (\S+)/.exec(output) ?? []
    return address !== undefined && `http://${address}`
  })
}

function upgraded(url: string): Promise<Duplex | undefined> {
  return new Promise((resolve) => {
    const asked = request(url, { headers: { connection: 'Upgrade', upgrade: 'echo' } })
    asked.once('upgrade', (_, socket) => resolve(socket))
    asked.once('response', (response) => {
      response.resume()
      resolve(undefined)
    })
    asked.once('error', () => resolve(undefined))
    asked.end()
  })
}
