import { once } from 'node:events'
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type IncomingHttpHeaders,
  type IncomingHttpStatusHeader,
  type OutgoingHttpHeaders,
} from 'node:http2'
import { get as httpsGet } from 'node:https'
import { type Test, test } from 'tap'
import { administrator, type Identity, nodeIdentity } from '../../../../api/identity.ts'
import { systemClock } from '../../../../daemon/clock.ts'
import { metricsRegistry } from '../../../../daemon/metrics-registry.ts'
import { quietLog } from '../../../../daemon/testing/quiet-log.ts'
import { startApi } from '../../../testing/api-under-test.ts'
import { whyNoKubectl } from '../../../testing/kubectl.ts'

type Api = Awaited<ReturnType<typeof anApi>>
type Over = NonNullable<Parameters<typeof startApi>[0]['over']>

async function anApi(t: Test, over: Over = {}) {
  const registry = metricsRegistry()
  const api = await startApi({ log: quietLog(t), over: { ...over, registry } })
  t.teardown(api.stop)
  return { ...api, registry }
}

/** `undefined`: without a certificate. */
function aSession(t: Test, api: Api, identity: Identity | undefined = administrator, settings: object = {}) {
  const issued = identity.user === '' ? undefined : api.issueFor(identity)
  const session = connect(api.url, {
    ca: api.authority.certificate,
    settings: { enablePush: false, ...settings },
    ...(issued && { cert: issued.certificate, key: issued.key }),
  })
  session.on('error', () => undefined)
  t.teardown(() => session.destroy())
  return session
}

/** Resolves when the session is closed, also where the connection is reset with what this client sent last. */
const closeOf = (session: ClientHttp2Session) => new Promise<void>((resolve) => session.once('close', resolve))

const noCertificate = { user: '', groups: [] }

type Answer = { readonly head: IncomingHttpHeaders & IncomingHttpStatusHeader; readonly text: string }

async function answerOf(stream: ClientHttp2Stream): Promise<Answer> {
  const [head] = (await once(stream, 'response')) as [Answer['head']]
  const pieces: Buffer[] = []
  for await (const piece of stream) pieces.push(piece)
  return { head, text: Buffer.concat(pieces).toString() }
}

function send(session: ClientHttp2Session, path: string, head: OutgoingHttpHeaders = {}, body?: string) {
  const stream = session.request({ ':path': path, ...head }, { endStream: body === undefined })
  if (body !== undefined) stream.end(body)
  return answerOf(stream)
}

/** Resolves when the metric has this value. */
async function sampleIs({ registry }: Api, line: RegExp): Promise<void> {
  while (!line.test(registry.text())) await systemClock.sleep(10)
}

const configMaps = '/api/v1/namespaces/default/configmaps'
const aMap = (name: string, text = '') =>
  ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' }, data: { text } }) as const

test('requests over HTTP/2', async (t) => {
  const api = await anApi(t)
  const session = aSession(t, api)

  await t.test('the certificate of the connection identifies the client of each stream', async (t) => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => send(session, '/api/v1/nodes')))
    for (const { head, text } of answers) {
      t.match(head, { ':status': 200, 'content-type': 'application/json', 'cache-control': 'no-cache, private' })
      t.equal(JSON.parse(text).kind, 'NodeList')
      t.notOk('connection' in head || 'transfer-encoding' in head)
    }
    const node = aSession(t, api, nodeIdentity('pi-1'))
    t.match(await send(node, configMaps), { head: { ':status': 403 }, text: /system:node:pi-1/ })
  })

  await t.test('bodies and the head of an answer', async (t) => {
    const body = JSON.stringify(aMap('a', 'ü'.repeat(300_000)))
    const json = { 'content-type': 'application/json' }
    t.match((await send(session, configMaps, { ':method': 'POST', ...json }, body)).head, { ':status': 201 })
    const got = await send(session, `${configMaps}/a`)
    t.ok(JSON.parse(got.text).data.text === 'ü'.repeat(300_000), 'in slices')
    const head = await send(session, `${configMaps}/a`, { ':method': 'HEAD' })
    t.match(head, { head: { ':status': 200, 'content-length': String(Buffer.byteLength(got.text)) }, text: '' })
    const large = JSON.stringify(aMap('b', 'x'.repeat(4_000_000)))
    t.match(await send(session, configMaps, { ':method': 'POST', ...json }, large), {
      head: { ':status': 413 },
      text: /RequestEntityTooLarge/,
    })
    const waiting = session.request({ ':method': 'POST', ':path': configMaps, expect: '100-continue', ...json })
    await once(waiting, 'continue')
    waiting.end(JSON.stringify(aMap('c')))
    t.match((await answerOf(waiting)).head, { ':status': 201 })
    t.match((await send(session, configMaps, { ':method': 'DELETE' })).head, { ':status': 200 })
  })

  await t.test('each line of a repeated header is read', async (t) => {
    const { text } = await send(
      session,
      '/apis/authentication.k8s.io/v1/selfsubjectreviews',
      {
        ':method': 'POST',
        'impersonate-user': 'ada',
        'impersonate-group': ['two', 'system:masters'],
      },
      '{}',
    )
    t.match(JSON.parse(text), { status: { userInfo: { username: 'ada', groups: ['two', 'system:masters'] } } })
  })

  await t.test('what is not an API request is refused, and the session continues', async (t) => {
    t.match((await send(session, '/nowhere')).head, { ':status': 404 })
    t.match((await send(session, '/version', { ':method': 'ODD' })).head, { ':status': 405 })
    const tunnel = session.request({ ':method': 'CONNECT', ':authority': 'other:1' })
    t.ok(Number((await answerOf(tunnel)).head[':status']) >= 400)
    const unread = session.request({ ':method': 'POST', ':path': '/nowhere' })
    const { head } = await answerOf(unread)
    t.match(head, { ':status': 404 })
    if (!unread.closed) await once(unread, 'close')
    t.match((await send(session, '/healthz')).text, 'ok')
  })
})

test('a watch over HTTP/2 is sent as it happens, and ends with its stream', async (t) => {
  const api = await anApi(t)
  const session = aSession(t, api)
  const watch = async () => {
    const stream = session.request({ ':path': `${configMaps}?watch=1&resourceVersion=${await api.store.version()}` })
    await once(stream, 'response')
    return stream
  }
  const watches = await Promise.all([watch(), watch(), watch()])
  const [first, second, third] = watches
  const arrived = Promise.all(watches.map((one) => once(one, 'data')))
  await api.store.create('configmaps', aMap('a'))
  for (const [line] of await arrived)
    t.match(JSON.parse(String(line)), { type: 'ADDED', object: { metadata: { name: 'a' } } })
  await sampleIs(api, /^apiserver_longrunning_requests 3$/m)
  first?.close(constants.NGHTTP2_CANCEL)
  await sampleIs(api, /^apiserver_longrunning_requests 2$/m)
  second?.close(constants.NGHTTP2_NO_ERROR)
  await sampleIs(api, /^apiserver_longrunning_requests 1$/m)
  t.match((await send(session, '/healthz')).text, 'ok', 'the others are served')
  const ended = Promise.all([third && once(third, 'end'), closeOf(session)])
  await api.stop()
  await ended
})

test('kubectl negotiates HTTP/2', { skip: whyNoKubectl() }, async (t) => {
  const api = await anApi(t)
  const { code, stdout, stderr } = await api.kubectl(['get', 'namespaces', '-v=8'], {
    env: { GODEBUG: 'http2debug=1' },
  })
  t.equal(code, 0)
  t.match(stdout, /^default +Active/m)
  t.match(stderr, /http2: Transport received HEADERS flags=\S*END_HEADERS/)
  t.notMatch(stderr, /Keep-Alive: /, 'a header of HTTP/1.1')
})

test('a client without HTTP/2 is served with HTTP/1.1 on the same port', async (t) => {
  const api = await anApi(t)
  const { certificate: cert, key } = api.issueFor(administrator)
  const request = httpsGet(`${api.url}/healthz`, { ca: api.authority.certificate, cert, key })
  const [response] = await once(request, 'response')
  t.equal(response.httpVersion, '1.1')
  response.resume()
})

test('a refused stranger has no further request on its session', async (t) => {
  const api = await anApi(t)
  const session = aSession(t, api, noCertificate)
  t.match((await send(session, '/api/v1/nodes')).head, { ':status': 403 })
  if (!session.closed) await closeOf(session)
  t.pass('closed')
})
