import { request as httpsRequest } from 'node:https'
import { connect as connectPlain, type Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { type Test, test } from 'tap'
import { administrator, peerControllerIdentity } from '../../../api/identity.ts'
import { systemClock } from '../../../daemon/clock.ts'
import { metricsRegistry } from '../../../daemon/metrics-registry.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { type ApiTestSettings, type ApiUnderTest, startApi } from '../../testing/api-under-test.ts'
import { bearer, tokenClients } from '../../testing/token-clients.ts'

type Given = Pick<NonNullable<ApiTestSettings['over']>, 'connectionLimits' | 'connectionTimes' | 'log'>

async function anApi(
  t: Test,
  over: Given,
): Promise<{ api: ApiUnderTest; refusals: (reason: string) => Promise<number> }> {
  const registry = metricsRegistry()
  const api = await startApi({ log: quietLog(t), over: { ...over, registry } })
  t.teardown(api.stop)
  const refusals = async (reason: string) => {
    const line = new RegExp(`^bramble_api_connection_refusals_total\\{reason="${reason}"\\} (\\d+)`, 'm')
    return Number(line.exec(registry.text())?.[1] ?? 0)
  }
  return { api, refusals }
}

/** What the server sends until it closes the connection. */
function untilClosed(socket: Socket): Promise<string> {
  let text = ''
  socket.on('data', (piece: Buffer) => {
    text += piece.toString()
  })
  socket.on('error', () => undefined)
  return new Promise((resolve) => socket.once('close', () => resolve(text)))
}

async function stranger(t: Test, api: ApiUnderTest): Promise<TLSSocket> {
  const socket = connectTls({ host: '127.0.0.1', port: api.port, ca: api.authority.certificate })
  t.teardown(() => socket.destroy())
  await new Promise((resolve) => socket.once('secureConnect', resolve))
  return socket
}

function administratorsAnswer(api: ApiUnderTest): Promise<number | undefined> {
  const { certificate: cert, key } = api.issueFor(administrator)
  return new Promise((resolve, reject) => {
    const options = { ca: api.authority.certificate, cert, key, agent: false }
    const request = httpsRequest(`${api.url}/api/v1/nodes`, options, (answer) => {
      answer.resume()
      answer.on('end', () => resolve(answer.statusCode))
    })
    request.on('error', reject)
    request.end()
  })
}

test('a connection that never ends its handshake is closed', async (t) => {
  const { api, refusals } = await anApi(t, { connectionTimes: { handshakeTimeout: 50 } })
  const silent = connectPlain(api.port, '127.0.0.1')
  t.teardown(() => silent.destroy())
  await untilClosed(silent)
  t.equal(await refusals('Handshake'), 1)
})

test('headers that do not end, a body that does not end and a connection without a request are closed', async (t) => {
  const connectionTimes = { headersTimeout: 100, requestTimeout: 200, connectionsCheckingInterval: 20 }
  const { api, refusals } = await anApi(t, { connectionTimes })
  const slowHeaders = await stranger(t, api)
  slowHeaders.write('GET /version HTTP/1.1\r\nHost: ')
  t.match(await untilClosed(slowHeaders), /^HTTP\/1.1 408 /)

  const { certificate: cert, key } = api.issueFor(administrator)
  const slowBody = connectTls({ host: '127.0.0.1', port: api.port, ca: api.authority.certificate, cert, key })
  t.teardown(() => slowBody.destroy())
  const head =
    'POST /api/v1/nodes HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{'
  slowBody.write(head)
  t.match(await untilClosed(slowBody), /^HTTP\/1.1 408 /)

  t.match(await untilClosed(await stranger(t, api)), /^HTTP\/1.1 408 /)
  t.equal(await refusals('Timeout'), 3)
})

test('an idle kept connection is closed', async (t) => {
  const { api } = await anApi(t, { connectionTimes: { keepAliveTimeout: 50 } })
  const socket = await stranger(t, api)
  socket.write('GET /version HTTP/1.1\r\nHost: x\r\n\r\n')
  t.match(await untilClosed(socket), /^HTTP\/1.1 200 /)
})

test('requests that are not HTTP or have too large headers are answered and counted', async (t) => {
  const { api, refusals } = await anApi(t, {})
  const other = await stranger(t, api)
  other.write('\x10\x0c\x00\x04MQTT')
  t.match(await untilClosed(other), /^HTTP\/1.1 400 /)
  const large = await stranger(t, api)
  large.write(`GET /version HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(300 * 1024)}\r\n\r\n`)
  t.match(await untilClosed(large), /^HTTP\/1.1 431 /)
  t.same([await refusals('NotHTTP'), await refusals('HeadersTooLarge')], [1, 1])
})

test('connections without a client certificate are bounded: the oldest is closed for a new one', async (t) => {
  for (const [connectionLimits, reason] of [
    [{ strangersPerAddress: 3 }, 'AddressLimit'],
    [{ strangers: 3 }, 'StrangerLimit'],
  ] as const) {
    const { api, refusals } = await anApi(t, { connectionLimits })
    const oldest = connectPlain(api.port, '127.0.0.1')
    const closed = untilClosed(oldest)
    const held = [await stranger(t, api), await stranger(t, api)]
    t.equal(await refusals(reason), 0)
    t.equal(await administratorsAnswer(api), 200, 'a client with a certificate, which is a stranger until it shows it')
    t.equal(await closed, '')
    t.equal(await refusals(reason), 1)
    t.notOk(held.some(({ destroyed }) => destroyed))
  }
})

test('connections with a trusted certificate do not count as connections without one', async (t) => {
  const { api } = await anApi(t, { connectionLimits: { strangersPerAddress: 1 } })
  const { certificate: cert, key } = api.issueFor(administrator)
  for (let number = 0; number < 3; number++) {
    const socket = connectTls({ host: '127.0.0.1', port: api.port, ca: api.authority.certificate, cert, key })
    t.teardown(() => socket.destroy())
    socket.write('GET /version HTTP/1.1\r\nHost: x\r\n\r\n')
    const first = await new Promise<Buffer>((resolve) => socket.once('data', resolve))
    t.match(first.toString(), /^HTTP\/1.1 200 /)
  }
})

test('one user holds a bounded number of connections', async (t) => {
  const { api, refusals } = await anApi(t, { connectionLimits: { perUser: 1 } })
  const { certificate: cert, key } = api.issueFor(administrator)
  const open = () => connectTls({ host: '127.0.0.1', port: api.port, ca: api.authority.certificate, cert, key })
  const first = open()
  t.teardown(() => first.destroy())
  first.write('GET /version HTTP/1.1\r\nHost: x\r\n\r\n')
  await new Promise((resolve) => first.once('data', resolve))
  t.equal(await untilClosed(open()), '')
  t.equal(await refusals('UserLimit'), 1)
})

test('controllers, which pass on the requests of all users, hold more', async (t) => {
  const { api } = await anApi(t, { connectionLimits: { perUser: 1, all: 8 } })
  const { certificate: cert, key } = api.issueFor(peerControllerIdentity)
  for (let number = 0; number < 3; number++) {
    const socket = connectTls({ host: '127.0.0.1', port: api.port, ca: api.authority.certificate, cert, key })
    t.teardown(() => socket.destroy())
    socket.write('GET /version HTTP/1.1\r\nHost: x\r\n\r\n')
    const first = await new Promise<Buffer>((resolve) => socket.once('data', resolve))
    t.match(first.toString(), /^HTTP\/1.1 200 /)
  }
})

/** Another stranger from this address, which sends nothing. */
async function silentFrom(t: Test, api: ApiUnderTest, localAddress: string): Promise<Socket> {
  const socket = connectPlain({ port: api.port, host: '127.0.0.1', localAddress })
  socket.on('error', () => undefined)
  t.teardown(() => socket.destroy())
  await new Promise((resolve) => socket.once('connect', resolve))
  return socket
}

test('strangers of its own address and of others do not close the stream of a client with a token', async (t) => {
  const { api, refusals } = await anApi(t, { connectionLimits: { strangersPerAddress: 4, strangers: 8 } })
  const { editor, open, admin } = tokenClients(t, api)
  const token = await editor('shop', 'operator')
  const watch = await open('/api/v1/namespaces/shop/configmaps?watch=1', bearer(token))
  for (let count = 0; count < 12; count++) await silentFrom(t, api, '127.0.0.1')
  for (let count = 0; count < 24; count++) await silentFrom(t, api, `127.0.0.${2 + (count % 6)}`)
  // Those that send requests, too, are strangers.
  for (let count = 0; count < 12; count++) {
    const speaking = await stranger(t, api)
    speaking.on('error', () => undefined).write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')
    await new Promise((resolve) => speaking.once('data', resolve).once('close', resolve))
  }
  while ((await refusals('AddressLimit')) < 8 || (await refusals('StrangerLimit')) < 16) await systemClock.sleep(5)
  await admin('POST', '/api/v1/namespaces/shop/configmaps', { metadata: { name: 'seen' } })
  while (!watch.text().includes('"seen"') && !watch.isOver()) await systemClock.sleep(5)
  t.equal(watch.isOver(), false)
})

test('the service accounts of a namespace hold as many connections as one user; further ones count as strangers', async (t) => {
  const { api } = await anApi(t, { connectionLimits: { strangersPerAddress: 1, perUser: 2 } })
  const { editor, open } = tokenClients(t, api)
  const tokens = [await editor('shop', 'a'), await editor('shop', 'b'), await editor('shop', 'c')]
  const watches = []
  for (const token of tokens) watches.push(await open('/api/v1/namespaces/shop/configmaps?watch=1', bearer(token)))
  const other = await silentFrom(t, api, '127.0.0.1')
  await watches[2]?.ended
  t.same(
    watches.map(({ isOver }) => isOver()),
    [false, false, true],
  )
  t.notOk(other.destroyed)
})

test('a refused token identifies no connection', async (t) => {
  const { api } = await anApi(t, { connectionLimits: { strangersPerAddress: 1 } })
  const socket = await stranger(t, api)
  const closed = untilClosed(socket)
  socket.write('GET /api HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer abcdef.0123456789abcdef\r\n\r\n')
  await new Promise((resolve) => socket.once('data', resolve))
  await silentFrom(t, api, '127.0.0.1')
  t.match(await closed, /^HTTP\/1.1 401 /)
})

test('many bad connections write few log lines', async (t) => {
  const lines: string[] = []
  const write = (message: string) => void lines.push(message)
  const log = { ...quietLog(t), info: write, warn: write, error: write }
  const { api, refusals } = await anApi(t, { connectionTimes: { handshakeTimeout: 20 }, log })
  for (let round = 0; round < 10; round++) {
    const sockets = Array.from({ length: 20 }, () => connectPlain(api.port, '127.0.0.1'))
    for (const socket of sockets) socket.write('no TLS at all')
    await Promise.all(sockets.map(untilClosed))
  }
  while ((await refusals('Handshake')) < 200) await systemClock.sleep(5)
  t.ok(lines.length <= 5, `${lines.length} lines`)
})
