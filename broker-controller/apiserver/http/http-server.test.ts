import { Agent, request as httpsRequest } from 'node:https'
import { connect, type TLSSocket } from 'node:tls'
import { test } from 'tap'
import { administrator, nodeIdentity } from '../../../api/identity.ts'
import type { Pod } from '../../../api/pod.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { type Clock, systemClock } from '../../../daemon/clock.ts'
import { warningsDuring } from '../../../daemon/testing/process-warnings.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { memoryStore } from '../../store/memory-store.ts'
import { type ApiUnderTest, startApi } from '../../testing/api-under-test.ts'
import { apiServer } from './http-server.ts'

type Sent = {
  readonly method?: string
  readonly body?: string
  readonly headers?: { readonly [name: string]: string }
  readonly certificate?: { readonly certificate: string; readonly key: string }
}
type Got = {
  readonly code: number
  readonly headers: { readonly [name: string]: string | string[] | undefined }
  readonly text: string
}

function send(
  api: ApiUnderTest,
  path: string,
  { method = 'GET', body, headers, certificate }: Sent = {},
): Promise<Got> {
  return new Promise((resolve, reject) => {
    const request = httpsRequest(
      `${api.url}${path}`,
      {
        method,
        ca: api.authority.certificate,
        agent: false,
        ...(headers && { headers }),
        ...(certificate && { cert: certificate.certificate, key: certificate.key }),
      },
      (response) => {
        let text = ''
        response.on('data', (chunk: Buffer) => {
          text += chunk.toString()
        })
        response.on('end', () => resolve({ code: response.statusCode ?? 0, headers: response.headers, text }))
      },
    )
    request.on('error', reject)
    request.end(body)
  })
}

/** No time passes for the shares of clients: a machine that is slow does not refill them. */
const standing: Clock = { ...systemClock, monotonicMs: () => 0 }

test('requests over TLS', async (t) => {
  const api = await startApi({ log: quietLog(t) })
  t.teardown(api.stop)
  const admin = api.issueFor(administrator)

  await t.test(
    'the server shows its certificate and the authority’s, so that a joining machine can compare',
    async (t) => {
      const socket: TLSSocket = connect({ host: '127.0.0.1', port: api.port, rejectUnauthorized: false })
      await new Promise((resolve) => socket.once('secureConnect', resolve))
      const leaf = socket.getPeerCertificate(true)
      t.not(leaf.issuerCertificate, undefined)
      t.equal(leaf.issuerCertificate.fingerprint256, leaf.issuerCertificate.issuerCertificate.fingerprint256)
      t.match(socket.getProtocol(), /^TLSv1\.[23]$/)
      socket.destroy()
    },
  )

  await t.test('a client without a certificate is anonymous', async (t) => {
    t.match(await send(api, '/healthz'), { code: 200, text: 'ok', headers: { 'content-type': /^text\/plain/ } })
    const refused = await send(api, '/api/v1/nodes')
    t.match(refused, { code: 403, headers: { 'content-type': 'application/json' }, text: /system:anonymous/ })
  })

  await t.test('a client certificate of the own CA identifies the client', async (t) => {
    t.match(await send(api, '/api/v1/nodes', { certificate: admin }), { code: 200, text: /NodeList/ })
    const metrics = await send(api, '/metrics', { certificate: admin })
    t.match(
      metrics.text,
      /apiserver_request_total\{verb="LIST",group="",resource="nodes",subresource="",code="200"\} 1/,
    )
  })

  await t.test(
    'an expired certificate, one of another CA and a server certificate are rejected with the reason',
    async (t) => {
      const longAgo = Date.now() - 30 * 24 * 3600_000
      const expired = api.issueFor(administrator, { nowMs: longAgo, lifeMs: 3600_000 })
      t.match(await send(api, '/version', { certificate: expired }), {
        code: 401,
        text: /expired at .*the time here is/,
      })
      const other = await startApi({ log: quietLog(t) })
      const foreign = await send(api, '/version', { certificate: other.issueFor(administrator) })
      await other.stop()
      t.match(foreign, { code: 401, text: /not trusted here/ })
    },
  )

  await t.test('a command line of a hundred kilobytes is a long address, not an error', async (t) => {
    t.match(await send(api, `/version?x=${'x'.repeat(120_000)}`), { code: 200 })
  })

  await t.test('a body may have at most three megabytes', async (t) => {
    const path = '/api/v1/namespaces/default/configmaps'
    const bodyOf = (bytes: number) =>
      JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'big' }, data: { x: 'x'.repeat(bytes) } })
    const post = (bytes: number) => send(api, path, { method: 'POST', body: bodyOf(bytes), certificate: admin })
    t.match(await post(4 * 1024 * 1024), { code: 413, text: /RequestEntityTooLarge/ })
    t.match(await post(500_000), { code: 201 })
    t.match(await send(api, `${path}/big`, { method: 'HEAD', certificate: admin }), { code: 200, text: '' })
  })

  await t.test('warnings travel in a header of their own, whatever is in them', async (t) => {
    const body = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"w"},"b\\"o\\n\\u00e9":1}'
    const path = '/api/v1/namespaces/default/configmaps'
    const { code, headers } = await send(api, path, { method: 'POST', body, certificate: admin })
    t.equal(code, 201)
    t.equal(headers['warning'], String.raw`299 - "unknown field \"b\"o??\""`)
  })
})

test('a watch is sent as it happens, and ended when the server closes', async (t) => {
  const api = await startApi({ log: quietLog(t) })
  const { certificate: cert, key } = api.issueFor(administrator)
  const lines: string[] = []
  let wake: () => void = () => undefined
  const ended = new Promise<void>((resolve, reject) => {
    const request = httpsRequest(
      `${api.url}/api/v1/namespaces?watch=true&resourceVersion=${'4'}`,
      { ca: api.authority.certificate, cert, key, agent: false },
      (response) => {
        wake()
        response.on('data', (chunk: Buffer) => {
          lines.push(chunk.toString())
          wake()
        })
        response.on('end', resolve)
      },
    )
    request.on('error', reject)
    request.end()
  })
  await new Promise<void>((resolve) => {
    wake = resolve
  })
  t.same(lines, [], 'the headers come at once, before anything happens')
  const arrived = new Promise<void>((resolve) => {
    wake = resolve
  })
  await api.store.create('namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'team' } })
  await arrived
  t.match(JSON.parse(lines.join('')), { type: 'ADDED', object: { metadata: { name: 'team' } } })
  await api.stop()
  await ended
  await t.rejects(send(api, '/healthz'), { code: 'ECONNREFUSED' })
})

test('thirty watches at once make the process emit no warning', async (t) => {
  const api = await startApi({ log: quietLog(t) })
  t.teardown(api.stop)
  const { certificate: cert, key } = api.issueFor(administrator)
  const options = { ca: api.authority.certificate, cert, key, agent: false as const }
  const watch = () =>
    new Promise<void>((resolve, reject) => {
      const asked = httpsRequest(`${api.url}/api/v1/nodes?watch=true`, options, () => resolve())
      asked.on('error', reject)
      t.teardown(() => asked.destroy())
      asked.end()
    })
  const warnings = await warningsDuring(() => Promise.all(Array.from({ length: 30 }, watch)))
  t.same(warnings, [])
})

test('a reader that takes nothing is disconnected without effect on the others', async (t) => {
  const soon = {
    ...systemClock,
    sleep: (ms: number, signal?: AbortSignal) => systemClock.sleep(ms === 1000 ? 2 : ms, signal),
  }
  const api = await startApi({ log: quietLog(t), over: { clock: soon } })
  t.teardown(api.stop)
  const { certificate: cert, key } = api.issueFor(administrator)
  const frozen = connect({ host: '127.0.0.1', port: api.port, ca: api.authority.certificate, cert, key })
  await new Promise((resolve) => frozen.once('secureConnect', resolve))
  frozen.pause()
  const closed = new Promise<void>((resolve) => frozen.once('close', () => resolve()))
  frozen.on('error', () => undefined)
  frozen.write('GET /api/v1/configmaps?watch=true HTTP/1.1\r\nHost: localhost\r\n\r\n')
  const x = 'x'.repeat(900_000)
  for (let number = 0; number < 30; number++) {
    const metadata = { name: `big-${number}`, namespace: 'default' }
    await api.store.create('configmaps', { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { x } })
  }
  const metrics = async () => {
    const { text } = await send(api, '/metrics', { certificate: { certificate: cert, key } })
    return /apiserver_longrunning_requests (\d+)/.exec(text)?.[1]
  }
  while ((await metrics()) !== '0') await systemClock.sleep(20)
  frozen.resume()
  await closed
})

test('a long list arrives whole, in pieces, and its connection serves on', async (t) => {
  const api = await startApi({ log: quietLog(t) })
  t.teardown(api.stop)
  const { certificate: cert, key } = api.issueFor(administrator)
  const data = { x: 'ü'.repeat(500) }
  for (let number = 0; number < 300; number++) {
    const metadata = { name: `map-${number}`, namespace: 'default' }
    await api.store.create('configmaps', { apiVersion: 'v1', kind: 'ConfigMap', metadata, data })
  }
  const agent = new Agent({ keepAlive: true, maxSockets: 1, ca: api.authority.certificate, cert, key })
  t.teardown(async () => agent.destroy())
  const ask = (method: string, headers: { readonly [name: string]: string } = {}) =>
    new Promise<{ readonly parts: readonly Buffer[]; readonly port: number | undefined }>((resolve, reject) => {
      const url = `${api.url}/api/v1/namespaces/default/configmaps`
      const request = httpsRequest(url, { method, agent, headers }, (response) => {
        const port = response.socket.localPort
        const parts: Buffer[] = []
        response.on('data', (part: Buffer) => parts.push(part))
        response.on('end', () => resolve({ parts, port }))
      })
      request.on('error', reject)
      request.end()
    })
  const { items } = await api.store.list('configmaps', 'default')
  const listed = await ask('GET')
  const list = JSON.parse(Buffer.concat(listed.parts).toString()) as { readonly kind: string; readonly items: unknown }
  t.equal(list.kind, 'ConfigMapList')
  t.strictSame(list.items, JSON.parse(JSON.stringify(items)))
  const headOnly = await ask('HEAD')
  t.same(headOnly.parts, [])
  const table = await ask('GET', { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' })
  t.equal((JSON.parse(Buffer.concat(table.parts).toString()) as { readonly rows: unknown[] }).rows.length, 300)
  t.same([headOnly.port, table.port], [listed.port, listed.port], 'all on one connection')
})

test('a server that shuts down asks clients to retry', async (t) => {
  const [open, closed] = [memoryStore({ clock: systemClock }), memoryStore({ clock: systemClock })]
  await closed.close()
  const api = await startApi({ log: quietLog(t), over: { store: { ...open, update: closed.update } } })
  t.teardown(api.stop)
  const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'pi-1' } } as const
  await open.create('nodes', node)
  const body = JSON.stringify({ ...node, spec: { unschedulable: true } })
  const late = await send(api, '/api/v1/nodes/pi-1', { method: 'PUT', body, certificate: api.issueFor(administrator) })
  t.match(late, { code: 503, headers: { 'retry-after': '1' }, text: /"retryAfterSeconds":1/ })
})

test('a client over its share gets 429 as Kubernetes sends it, and an administrator beside it is served', async (t) => {
  const api = await startApi({ log: quietLog(t), over: { clock: standing } })
  t.teardown(api.stop)
  const certificate = api.issueFor(nodeIdentity('pi-1'))
  const path = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/pi-1'
  const answers: Got[] = []
  while (answers.length < 200 && answers.at(-1)?.code !== 429) answers.push(await send(api, path, { certificate }))
  t.match(answers.at(-1), { code: 429, headers: { 'retry-after': /^\d+$/, 'content-type': 'application/json' } })
  t.match(JSON.parse(answers.at(-1)?.text ?? ''), {
    kind: 'Status',
    status: 'Failure',
    reason: 'TooManyRequests',
    code: 429,
    message: 'Too many requests, please try again later.',
    details: { retryAfterSeconds: Number },
  })
  t.match(await send(api, path, { certificate: api.issueFor(administrator) }), { code: 404 })
})

test('large answers cost more of the share than small ones', async (t) => {
  const api = await startApi({ log: quietLog(t), over: { clock: standing } })
  t.teardown(api.stop)
  const args = ['x'.repeat(1_000_000)]
  const { metadata, ...pod } = aPod({ name: 'large', nodeName: 'pi-1', containers: [{ name: 'a', image: 'a', args }] })
  await api.store.create('pods', { ...pod, metadata: { name: metadata.name, namespace: 'default' } } as Pod)
  const certificate = api.issueFor(nodeIdentity('pi-1'))
  const codes: number[] = []
  while (codes.length < 500 && codes.at(-1) !== 429) {
    codes.push((await send(api, '/api/v1/pods?fieldSelector=spec.nodeName%3Dpi-1', { certificate })).code)
  }
  t.same([codes[0], codes.at(-1)], [200, 429])
  t.ok(codes.length < 200, `${codes.length} answers of a megabyte`)
})

test('credentials that are not valid are tried a bounded number of times', async (t) => {
  const api = await startApi({ log: quietLog(t), over: { clock: standing } })
  t.teardown(api.stop)
  const headers = { authorization: 'Bearer abcdef.0123456789abcdef' }
  const codes: number[] = []
  while (codes.length < 1000 && codes.at(-1) !== 429) codes.push((await send(api, '/api', { headers })).code)
  t.same([codes[0], codes.at(-1)], [401, 429])
})

test('a request whose client disconnects releases its seat', async (t) => {
  const api = await startApi({ log: quietLog(t) })
  t.teardown(api.stop)
  const { certificate: cert, key } = api.issueFor(nodeIdentity('pi-1'))
  const admin = api.issueFor(administrator)
  const executing = async (count: number) => {
    const line = `apiserver_flowcontrol_current_executing_requests{priority_level="system"} ${count}\n`
    while (!(await send(api, '/metrics', { certificate: admin })).text.includes(line)) await systemClock.sleep(5)
  }
  const socket = connect({ host: '127.0.0.1', port: api.port, ca: api.authority.certificate, cert, key })
  socket.write('POST /api/v1/nodes HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{')
  await executing(1)
  socket.destroy()
  await executing(0)
})

test('a port in use is reported', async (t) => {
  const api = await startApi({ log: quietLog(t) })
  t.teardown(api.stop)
  const second = startApi({ log: quietLog(t), over: { port: api.port } })
  await t.rejects(second, { message: `Cannot listen on 127.0.0.1:${api.port}` })
  t.type(apiServer, 'function')
})
