import { connect, type Socket } from 'node:net'
import { type Test, test } from 'tap'
import { systemClock } from '../../../daemon/clock.ts'
import { freePort } from '../../testing/free-port.ts'
import { type HealthServerTimes, healthServers } from './health-servers.ts'

test('any request is answered at once, until the port is closed', async (t) => {
  const port = await freePort()
  const servers = healthServers('127.0.0.1')
  t.teardown(() => servers.close(port))
  await servers.open(port, () => ({ status: 503, headers: { 'X-Load-Balancing-Endpoint-Weight': '0' }, body: '{}' }))
  const answer = await fetch(`http://127.0.0.1:${port}/any/path`, { method: 'POST', body: 'x' })
  t.equal(answer.status, 503)
  t.equal(answer.headers.get('x-load-balancing-endpoint-weight'), '0')
  t.equal(await answer.text(), '{}')
  await t.rejects(
    servers.open(port, () => ({ status: 200, headers: {}, body: '' })),
    {
      message: `Cannot listen on port ${port}`,
    },
  )
  await servers.close(port)
  await t.rejects(fetch(`http://127.0.0.1:${port}/`))
  await servers.close(port)
})

const endless = 600_000
/** No connection ends by itself. */
const noEnd: HealthServerTimes = {
  idleMs: endless,
  headersTimeout: endless,
  requestTimeout: endless,
  connectionsCheckingInterval: 20,
  keepAliveTimeout: endless,
}
const halfHead = 'GET / HTTP/1.1\r\nHost: x\r\nX: '
const wholeHead = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'

async function opened(t: Test, times: Partial<HealthServerTimes>): Promise<number> {
  const port = await freePort()
  const servers = healthServers('127.0.0.1', { ...noEnd, ...times })
  t.teardown(() => servers.close(port))
  await servers.open(port, () => ({ status: 200, headers: {}, body: '{}' }))
  return port
}

type Client = { readonly socket: Socket; readonly closed: Promise<string> }

/** `closed`: what the server has sent when it closes the connection. */
async function aClient(t: Test, port: number, text: string): Promise<Client> {
  const socket = connect(port, '127.0.0.1').on('error', () => undefined)
  t.teardown(() => socket.destroy())
  let received = ''
  socket.setEncoding('latin1').on('data', (part: string) => {
    received += part
  })
  const closed = new Promise<string>((resolve) => socket.once('close', () => resolve(received)))
  await new Promise((resolve) => socket.once('connect', resolve))
  socket.write(text)
  return { socket, closed }
}

test('connections without a request, half of one or an answer behind them are closed when they are idle', async (t) => {
  const idle = await opened(t, { idleMs: 50 })
  t.equal(await (await aClient(t, idle, '')).closed, '')
  t.equal(await (await aClient(t, idle, halfHead)).closed, '')
  const kept = await opened(t, { keepAliveTimeout: 50 })
  t.match(await (await aClient(t, kept, wholeHead)).closed, /^HTTP\/1.1 200 /)
})

test('a request of which a byte arrives now and then is closed, too', async (t) => {
  const bodyHead = 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n'
  for (const [status, start, times] of [
    [408, halfHead, { headersTimeout: 100 }],
    // The answer does not wait for the body. Node.js allows no request less time than its headers.
    [200, bodyHead, { headersTimeout: 100, requestTimeout: 100 }],
  ] as const) {
    const { socket, closed } = await aClient(t, await opened(t, times), start)
    const ended = new AbortController()
    const dripping = (async () => {
      for (; !ended.signal.aborted; await systemClock.sleep(10, ended.signal)) socket.write('x')
    })()
    t.equal((await closed).slice(0, 12), `HTTP/1.1 ${status}`)
    ended.abort()
    await dripping
  }
})

test('connections are bounded: the oldest is closed for a new one, and a balancer is answered', async (t) => {
  const port = await opened(t, {})
  const clients: Client[] = []
  while (clients.length < 40) clients.push(await aClient(t, port, clients.length % 2 === 0 ? '' : halfHead))
  t.equal((await fetch(`http://127.0.0.1:${port}/`)).status, 200)
  t.same(await Promise.all(clients.slice(0, 9).map(({ closed }) => closed)), Array(9).fill(''), '41 - 32')
  t.equal(clients.filter(({ socket }) => !socket.closed).length, 31)
})
