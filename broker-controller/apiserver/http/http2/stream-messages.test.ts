import { once } from 'node:events'
import { connect, createServer, type OutgoingHttpHeaders } from 'node:http2'
import { type AddressInfo, connect as connectTcp, createServer as createTcpServer, Socket } from 'node:net'
import { type Test, test } from 'tap'
import { systemClock } from '../../../../daemon/clock.ts'
import { proxyExchange } from '../../proxy/proxy-exchange.ts'
import { requestHeaders } from '../../proxy/proxy-headers.ts'
import { streamMessages } from './stream-messages.ts'

/** What a server of HTTP/1.1 gets when a request of HTTP/2 is passed on to it; it answers once it has read `end`. */
async function passedOn(t: Test, head: OutgoingHttpHeaders, body: string | undefined, end: string): Promise<string> {
  let received = ''
  const behind = createTcpServer((socket) => {
    t.teardown(() => socket.destroy())
    socket
      .on('error', () => undefined)
      .on('data', (piece) => {
        received += piece.toString('latin1')
        if (received.includes(end)) socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
      })
  })
  const server = createServer()
  for (const one of [behind, server]) {
    await once(one.listen(0, '127.0.0.1'), 'listening')
    t.teardown(() => one.close())
  }
  server.on('stream', async (stream, headers, _, rawHeaders: readonly string[] = []) => {
    stream.on('error', () => undefined)
    const session = { socket: new Socket(), close: () => undefined, gaveUp: () => undefined }
    const { incoming, body: sent } = streamMessages(stream, { headers, rawHeaders }, session)
    const connection = connectTcp((behind.address() as AddressInfo).port, '127.0.0.1')
    await once(connection, 'connect')
    const method = incoming.method ?? ''
    const raw = { method, path: '/', query: '', headers: incoming.rawHeaders, address: undefined, body: sent }
    const given = requestHeaders({ method, headers: raw.headers, address: undefined, uri: '/', isUpgrade: false })
    const more = {
      path: '/',
      headers: given,
      isUpgrade: false,
      rewriteLocation: (to: string) => to,
      clock: systemClock,
    }
    await proxyExchange({ connection, scheme: 'http', raw, ...more })
    stream.respond({ ':status': 200 })
    stream.end()
  })
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  t.teardown(() => session.destroy())
  const stream = session.request({ ':path': '/', ...head }, { endStream: body === undefined })
  if (body !== undefined) stream.end(body)
  await once(stream, 'response')
  stream.resume()
  return received
}

test('a body that is passed on cannot be read as another request', async (t) => {
  const second = 'DELETE /all HTTP/1.1\r\nHost: x\r\n\r\n'
  for (const method of ['GET', 'DELETE', 'OPTIONS', 'POST', 'PATCH']) {
    const text = await passedOn(t, { ':method': method }, second, `${second}\r\n`)
    t.match(text, /^transfer-encoding: chunked\r$/im, method)
    t.notMatch(text, /^content-length:/im)
    t.ok(text.includes(`\r\n\r\n${second.length.toString(16)}\r\n${second}\r\n`), 'it is a chunk')
  }
  const known = await passedOn(t, { ':method': 'POST', 'content-length': second.length }, second, second)
  t.notMatch(known, /^transfer-encoding:/im)
  t.match(known, new RegExp(`^content-length: ${second.length}\r$`, 'im'))
  const none = await passedOn(t, { ':method': 'GET' }, undefined, '\r\n\r\n')
  t.notMatch(none, /^(transfer-encoding|content-length):/im)
})

test('the host that is passed on is that of the request, and cookies are in one line', async (t) => {
  const head = { ':authority': 'api:6443', host: 'other', cookie: ['a=1', 'b=2'] }
  const text = await passedOn(t, head, undefined, '\r\n\r\n')
  t.same(text.match(/^host:.*$/gim), ['host: api:6443'])
  t.same(text.match(/^cookie:.*$/gim), ['cookie: a=1; b=2'])
})
