import { once } from 'node:events'
import { connect, type TLSSocket } from 'node:tls'
import { type Test, test } from 'tap'
import { WebSocket } from 'ws'
import { administrator, type Identity, nodeIdentity } from '../../../api/identity.ts'
import { systemClock } from '../../../daemon/clock.ts'
import { metricsRegistry } from '../../../daemon/metrics-registry.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { type ApiUnderTest, startApi } from '../../testing/api-under-test.ts'

const path = '/api/v1/configmaps?watch=1&resourceVersion='
const aMap = (name: string, text = '') =>
  ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' }, data: { text } }) as const

async function anApi(t: Test, over: Parameters<typeof startApi>[0]['over'] = {}) {
  const registry = metricsRegistry()
  const api = await startApi({ log: quietLog(t), over: { ...over, registry } })
  t.teardown(api.stop)
  const watches = () => Number(/^apiserver_longrunning_requests (\d+)$/m.exec(registry.text())?.[1])
  return { ...api, watches, metrics: () => registry.text() }
}

type Options = {
  readonly headers?: { readonly [name: string]: string }
  readonly anonymous?: boolean
  readonly identity?: Identity
}

function aSocket(t: Test, api: ApiUnderTest, from: string, protocols: string[] = [], options: Options = {}) {
  const { headers = {}, anonymous = false, identity = administrator } = options
  const { certificate: cert, key } = api.issueFor(identity)
  const socket = new WebSocket(`${api.url.replace('https', 'wss')}${path}${from}`, protocols, {
    ca: api.authority.certificate,
    headers,
    ...(!anonymous && { cert, key }),
  })
  t.teardown(() => socket.terminate())
  const messages: { readonly text: string; readonly isBinary: boolean }[] = []
  socket.on('message', (data: Buffer, isBinary) => messages.push({ text: String(data), isBinary }))
  const closed = new Promise<number>((resolve) => socket.once('close', resolve))
  socket.on('error', () => undefined)
  return { socket, messages, closed }
}

/** The code and the body of the answer to a handshake that is refused. */
async function refusalOf(socket: WebSocket): Promise<{ readonly code: number; readonly text: string }> {
  const [, answer] = (await once(socket, 'unexpected-response')) as [unknown, import('node:http').IncomingMessage]
  let text = ''
  for await (const piece of answer) text += String(piece)
  return { code: answer.statusCode ?? 0, text }
}

test('each event is a text message of one line, and the watch ends with its time-out', async (t) => {
  const api = await anApi(t)
  const from = await api.store.version()
  await api.store.create('configmaps', aMap('ü'))
  // With room for a process that stands still before it has sent the event.
  const { socket, messages, closed } = aSocket(t, api, `${from}&timeoutSeconds=5`)
  await once(socket, 'open')
  t.equal(socket.protocol, '')
  t.equal(await closed, 1000)
  const [{ text, isBinary } = { text: '', isBinary: true }] = messages
  t.equal(isBinary, false)
  t.match(JSON.parse(text), { type: 'ADDED', object: { metadata: { name: 'ü' } } })
  t.equal(text.indexOf('\n'), text.length - 1)
})

test('the subprotocol is the first that is offered, and never a token', async (t) => {
  const api = await anApi(t)
  const own = aSocket(t, api, '', ['base64.binary.k8s.io', 'other'])
  await once(own.socket, 'open')
  t.equal(own.socket.protocol, 'base64.binary.k8s.io')
  const prefix = 'base64url.bearer.authorization.k8s.io.'
  const token = `${prefix}${Buffer.from('no-token').toString('base64url')}`
  const wrong = aSocket(t, api, '', [token, 'other'], { anonymous: true })
  t.match(await refusalOf(wrong.socket), { code: 401, text: /"reason":"Unauthorized"/ })
  const alone = aSocket(t, api, '', [token], { anonymous: true })
  t.match(await refusalOf(alone.socket), { code: 401, text: /missing additional subprotocol/ })
})

test('a refused watch is answered as to any request', async (t) => {
  const api = await anApi(t)
  t.match(await refusalOf(aSocket(t, api, '', [], { identity: nodeIdentity('pi-1') }).socket), {
    code: 403,
    text: /system:node:pi-1/,
  })
  t.match(await refusalOf(aSocket(t, api, 'abc').socket), { code: 422, text: /ListOptions/ })
  const nowhere = aSocket(t, api, '', [], { headers: { Origin: 'null' } })
  t.match(await refusalOf(nowhere.socket), { code: 403, text: /invalid origin/ })
  const foreign = aSocket(t, api, '', [], { headers: { Origin: 'https://b.example', 'Sec-Fetch-Site': 'cross-site' } })
  t.match(await refusalOf(foreign.socket), { code: 403, text: /page of another site needs a bearer token/ })
  const local = aSocket(t, api, '', [], { headers: { Origin: 'http://localhost' } })
  await once(local.socket, 'open')
})

test('what a client sends has no effect, and its end ends the watch', async (t) => {
  const api = await anApi(t)
  const { socket, messages, closed } = aSocket(t, api, await api.store.version())
  await once(socket, 'open')
  for (let number = 0; number < 100; number++) socket.send(`message ${number}`)
  const arrived = once(socket, 'message')
  await api.store.create('configmaps', aMap('a'))
  await arrived
  t.equal(messages.length, 1)
  t.equal(api.watches(), 1)
  socket.close()
  await closed
  while (api.watches() !== 0) await systemClock.sleep(10)
})

test('a reader that takes nothing is disconnected', async (t) => {
  const clock = {
    ...systemClock,
    sleep: (ms: number, signal?: AbortSignal) => systemClock.sleep(ms === 1000 ? 2 : ms, signal),
  }
  const api = await anApi(t, { clock })
  const { certificate: cert, key } = api.issueFor(administrator)
  const frozen: TLSSocket = connect({ host: '127.0.0.1', port: api.port, ca: api.authority.certificate, cert, key })
  frozen.on('error', () => undefined)
  t.teardown(() => frozen.destroy())
  await once(frozen, 'secureConnect')
  frozen.pause()
  const handshake = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13']
  const head = [`GET ${path} HTTP/1.1`, 'Host: x', ...handshake, 'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==']
  frozen.write(`${head.join('\r\n')}\r\n\r\n`)
  while (api.watches() !== 1) await systemClock.sleep(10)
  let number = 0
  while (api.watches() !== 0) {
    // No more than the store remembers: the watch itself must not fall behind.
    if (number < 20) await api.store.create('configmaps', aMap(`m-${number++}`, 'x'.repeat(900_000)))
    await systemClock.sleep(10)
  }
  t.match(api.metrics(), /^bramble_api_slow_readers_ended_total 1$/m)
})
