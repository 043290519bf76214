import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import { type Test, test } from 'tap'
import { systemClock } from '../../../daemon/clock.ts'
import { proxyExchange } from './proxy-exchange.ts'
import { requestHeaders } from './proxy-headers.ts'

/** A connection to a server that answers a request with these bytes, and leaves the connection open. */
async function connectionTo(t: Test, answer: string): Promise<Socket> {
  const accepted: Socket[] = []
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    accepted.push(socket)
    socket.on('error', () => undefined).once('data', () => socket.write(answer))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('The server has no port')
  const connection = connect({ port: address.port, host: '127.0.0.1', allowHalfOpen: true })
  t.teardown(() => {
    for (const socket of [connection, ...accepted]) socket.destroy()
    server.close()
  })
  await once(connection, 'connect')
  return connection
}

function exchange(connection: Socket, method: string, rewriteLocation = (location: string) => location) {
  const headers = ['Host', 'api']
  const raw = { method, path: '/p', query: '', headers, address: undefined, body: Readable.from([]) }
  return proxyExchange({
    connection,
    scheme: 'http',
    raw,
    path: '/',
    headers: requestHeaders({ method, headers, address: undefined, uri: '/p', isUpgrade: false }),
    isUpgrade: false,
    rewriteLocation,
    clock: systemClock,
  })
}

test('the connection ends with the answer, where the server leaves it open', async (t) => {
  for (const method of ['GET', 'HEAD']) {
    const connection = await connectionTo(
      t,
      `HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n${method === 'GET' ? 'ok' : ''}`,
    )
    const closed = once(connection, 'close')
    const answer = await exchange(connection, method)
    if (answer.kind !== 'proxied') throw new Error(`${method}: ${answer.kind}`)
    // The body of an answer to HEAD is not read.
    if (method === 'GET') t.equal(Buffer.concat(await Readable.from(answer.pieces).toArray()).toString(), 'ok')
    await closed
    t.ok(connection.destroyed, method)
  }
})

test('an upgrade that was not requested is an error, and ends the connection', async (t) => {
  const connection = await connectionTo(t, 'HTTP/1.1 101 Yes\r\nConnection: Upgrade\r\nUpgrade: a\r\n\r\n')
  const closed = once(connection, 'close')
  await t.rejects(exchange(connection, 'GET'), { message: /an upgrade that was not requested/ })
  await closed
  t.ok(connection.destroyed)
})

test('an invalid status counts as a failure of the server, and ends the connection', async (t) => {
  for (const code of ['099', '600', '999']) {
    const connection = await connectionTo(t, `HTTP/1.1 ${code} Odd\r\nContent-Length: 0\r\n\r\n`)
    const closed = once(connection, 'close')
    const message = `error trying to reach service: invalid status code ${Number(code)}`
    await t.rejects(exchange(connection, 'GET'), { code: 503, message }, code)
    await closed
  }
  const connection = await connectionTo(t, 'HTTP/1.1 599 Odd\r\nContent-Length: 0\r\n\r\n')
  t.match(await exchange(connection, 'GET'), { kind: 'proxied', code: 599 })
})

test('a server that sends informational responses without end is a failure, and ends the connection', async (t) => {
  const hint = 'HTTP/1.1 103 Early Hints\r\n\r\n'
  const answer = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'
  t.match(await exchange(await connectionTo(t, hint.repeat(5) + answer), 'GET'), { code: 200 })
  const connection = await connectionTo(t, hint.repeat(6))
  await t.rejects(exchange(connection, 'GET'), { code: 503, message: /too many 1xx informational responses/ })
  t.ok(connection.destroyed)
})

test('links of a page are rewritten, and its length is left out', async (t) => {
  const body = '<a href="/x">'
  const head = (more: string) => `HTTP/1.1 200 OK\r\n${more}Content-Length: ${body.length}\r\n\r\n`
  const answerTo = async (headers: string) => {
    const answer = await exchange(await connectionTo(t, head(headers) + body), 'GET', (url) => `/proxy${url}`)
    if (answer.kind !== 'proxied') throw new Error(answer.kind)
    return { headers: answer.headers, text: Buffer.concat(await Readable.from(answer.pieces).toArray()).toString() }
  }
  const page = await answerTo('Content-Type: text/html; charset=utf-8\r\n')
  t.same(page, { headers: ['Content-Type', 'text/html; charset=utf-8'], text: '<a href="/proxy/x">' })
  for (const other of ['', 'Content-Type: text/plain\r\n', 'Content-Type: text/html\r\nContent-Encoding: br\r\n']) {
    t.equal((await answerTo(other)).text, body, other)
  }
})
