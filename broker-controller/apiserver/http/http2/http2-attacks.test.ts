import { channel } from 'node:diagnostics_channel'
import { EventEmitter, once } from 'node:events'
import { connect as connectTcp, type Socket } from 'node:net'
import { type Test, test } from 'tap'
import { administrator } from '../../../../api/identity.ts'
import { type Clock, systemClock } from '../../../../daemon/clock.ts'
import { metricsRegistry } from '../../../../daemon/metrics-registry.ts'
import { quietLog } from '../../../../daemon/testing/quiet-log.ts'
import { startApi } from '../../../testing/api-under-test.ts'
import {
  endHeaders,
  endStream,
  frame,
  frameTypes,
  indexed,
  lastIndexed,
  type RawHttp2Options,
  rawHttp2,
  requestBlock,
} from '../../../testing/raw-http2.ts'

const { headers, continuation, reset, settings, ping, goaway, data, windowUpdate } = frameTypes
const lists = '/api/v1/namespaces/default/configmaps'

async function anApi(t: Test, over: NonNullable<Parameters<typeof startApi>[0]['over']> = {}) {
  const registry = metricsRegistry()
  const api = await startApi({ log: quietLog(t), over: { ...over, registry } })
  t.teardown(api.stop)
  const { certificate: cert, key } = api.issueFor(administrator)
  const attack = async (more: Partial<RawHttp2Options> = {}) => {
    const serverEnd = nextAccepted(api.port)
    const client = await rawHttp2({ port: api.port, ca: api.authority.certificate, cert, key, ...more })
    t.teardown(() => client.socket.destroy())
    return { ...client, serverEnd: await serverEnd }
  }
  const figure = (name: string) => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(registry.text())?.[1] ?? 0)
  const refusals = (reason: string) => figure(`bramble_api_connection_refusals_total\\{reason="${reason}"\\}`)
  return { ...api, attack, figure, refusals }
}

/** The server's end of the next connection to this port: it is closed also where the client sees nothing of it. */
function nextAccepted(port: number): Promise<Socket> {
  const accepted = channel('net.server.socket')
  return new Promise((resolve) => {
    const look = (message: unknown) => {
      const { socket } = message as { readonly socket: Socket }
      if (socket.localPort !== port) return
      accepted.unsubscribe(look)
      resolve(socket)
    }
    accepted.subscribe(look)
  })
}

async function untilClosed(socket: Socket): Promise<void> {
  if (!socket.closed) await once(socket, 'close')
}

/** A clock whose sleeps take other times, in ms. `begun` resolves when the next of this time begins. */
function hastyClock(times: { readonly [ms: number]: number }) {
  const sleeps = new EventEmitter()
  const clock: Clock = {
    ...systemClock,
    sleep(ms, signal) {
      sleeps.emit(`${ms}`)
      return systemClock.sleep(times[ms] ?? ms, signal)
    },
  }
  return { clock, begun: (ms: number) => once(sleeps, `${ms}`) }
}

/** An honest request on a connection of its own. */
async function isServed(t: Test, { attack }: Awaited<ReturnType<typeof anApi>>): Promise<void> {
  const client = await attack()
  await client.send(frame(headers, endHeaders | endStream, 1, requestBlock('/healthz')))
  await client.until((frames) => frames.some(({ type }) => type === data))
  t.equal(client.frames.find(({ type }) => type === data)?.payload.toString(), 'ok')
}

const lastCode = (frames: readonly { readonly type: number; readonly payload: Buffer }[]) =>
  frames.findLast(({ type }) => type === goaway)?.payload.readUInt32BE(4)
const enhanceYourCalm = 11
const cancel = Buffer.of(0, 0, 0, 8)

test('a client that gives up its requests as it makes them is disconnected (CVE-2023-44487)', async (t) => {
  const api = await anApi(t)
  const client = await api.attack()
  const pair = (id: number) => {
    const request = frame(headers, endHeaders | endStream, id, requestBlock(lists))
    return Buffer.concat([request, frame(reset, 0, id, cancel)])
  }
  await client.send(...Array.from({ length: 5000 }, (_, index) => pair(2 * index + 1)))
  await client.closed
  t.equal(api.refusals('TooManyFrames'), 1)
  t.equal(
    api.figure('apiserver_request_total\\{verb="LIST",group="",resource="configmaps",subresource="",code="200"\\}'),
    0,
  )
  await isServed(t, api)
})

test('requests that are given up after they were begun are as few', async (t) => {
  const api = await anApi(t)
  const client = await api.attack()
  let given = 0
  while (!client.socket.destroyed && given < 2000) {
    const ids = Array.from({ length: 100 }, (_, index) => 2 * (given + index) + 1)
    const watch = (id: number) => frame(headers, endHeaders | endStream, id, requestBlock(`${lists}?watch=1`))
    await client.send(...ids.map(watch))
    const isBegun = () => client.frames.filter(({ type }) => type === headers).length === given + ids.length
    await client.until(isBegun).catch(() => undefined) // it is closed
    await client.send(...ids.map((id) => frame(reset, 0, id, cancel)))
    given += ids.length
  }
  t.ok(given >= 200 && given < 2000, `${given} watches`)
  t.equal(api.refusals('TooManyFrames'), 1)
  await isServed(t, api)
})

test('a header block without an end is refused (CONTINUATION flood)', async (t) => {
  const api = await anApi(t)
  const client = await api.attack()
  await client.send(frame(headers, endStream, 1, requestBlock('/healthz')))
  const filler = Buffer.concat([Buffer.of(0), Buffer.of(1, 97), Buffer.of(100), Buffer.alloc(100, 'x')])
  await client.send(...Array.from({ length: 10_000 }, () => frame(continuation, 0, 1, filler)))
  await client.closed
  t.notOk(client.frames.some(({ stream }) => stream === 1))
  await isServed(t, api)
})

test('floods of PING and of SETTINGS end the connection', async (t) => {
  const api = await anApi(t)
  const floods = [frame(ping, 0, 0, Buffer.alloc(8)), frame(settings, 0, 0, Buffer.of(0, 4, 0, 1, 0, 0))]
  for (const [index, flood] of floods.entries()) {
    const client = await api.attack()
    await client.send(...Array.from({ length: 200 }, () => flood))
    await client.closed
    t.equal(api.refusals('TooManyFrames'), index + 1)
    t.equal(lastCode(client.frames), enhanceYourCalm)
  }
  await isServed(t, api)
})

test('acknowledgements that the client does not read are not piled up', async (t) => {
  const api = await anApi(t)
  const client = await api.attack()
  client.socket.pause()
  client.socket.write(Buffer.concat(Array.from({ length: 100_000 }, () => frame(ping, 0, 0, Buffer.alloc(8)))))
  await untilClosed(client.serverEnd)
  t.equal(api.refusals('TooManyFrames') + api.refusals('NotHTTP'), 1)
  await isServed(t, api)
})

test('a block that unfolds into very many headers is not kept (HPACK bomb)', async (t) => {
  const api = await anApi(t)
  const client = await api.attack()
  const table = Buffer.concat([requestBlock('/healthz'), indexed('bomb', 'x'.repeat(3900))])
  const before = process.memoryUsage().rss
  for (let id = 1; id < 400 && !client.socket.destroyed; id += 2) {
    const block = id === 1 ? table : requestBlock('/healthz')
    await client.send(
      frame(headers, endStream, id, block),
      ...Array.from({ length: 6 }, () => frame(continuation, 0, id, Buffer.alloc(16_000, lastIndexed))),
      frame(continuation, endHeaders, id, Buffer.of(lastIndexed)),
    )
  }
  // Each block would be 375 MB.
  await isServed(t, api)
  t.ok(process.memoryUsage().rss - before < 200e6)
  t.notOk(
    client.frames.some(({ type }) => type === data),
    'none of them is answered',
  )
})

test('answers that the client has no window for are ended', async (t) => {
  const { clock } = hastyClock({ 1000: 2 })
  const api = await anApi(t, { clock })
  const text = 'x'.repeat(100_000)
  for (let number = 0; number < 5; number++) {
    const metadata = { name: `m-${number}`, namespace: 'default' }
    await api.store.create('configmaps', { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { text } })
  }
  const noWindow = [[4, 0]] as const
  const client = await api.attack({ settings: noWindow })
  const ids = Array.from({ length: 40 }, (_, index) => 2 * index + 1)
  // Long answers in slices, and short ones that are written at once.
  for (const id of ids) {
    const path = id % 4 === 1 ? lists : '/version'
    await client.send(frame(headers, endHeaders | endStream, id, requestBlock(path)))
  }
  const ended = () => new Set(client.frames.filter(({ type }) => type === reset).map(({ stream }) => stream))
  await client.until(() => ended().size === ids.length)
  t.same(
    [...ended()].sort((a, b) => a - b),
    ids,
  )
  t.equal(api.figure('bramble_api_slow_readers_ended_total'), ids.length)
  t.equal(api.figure('bramble_api_unread_bytes'), 0)
  await client.send(frame(windowUpdate, 0, 0, Buffer.of(0, 1, 0, 0)))
  await isServed(t, api)
})

/** A client that asks for more than the system buffers, with all windows open, and reads none of it. */
async function thatReadsNothing(api: Awaited<ReturnType<typeof anApi>>, begun: ReturnType<typeof hastyClock>['begun']) {
  const text = 'x'.repeat(500_000)
  for (let number = 0; number < 20; number++) {
    const metadata = { name: `m-${number}`, namespace: 'default' }
    await api.store.create('configmaps', { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { text } })
  }
  const openWindow = [[4, 0x7fff_ffff]] as const
  const client = await api.attack({ settings: openWindow })
  await client.send(frame(headers, endHeaders | endStream, 1, requestBlock(`${lists}?watch=1`)))
  await client.until((frames) => frames.some(({ stream }) => stream === 1))
  client.socket.pause()
  await client.send(frame(windowUpdate, 0, 0, Buffer.of(0x7f, 0, 0, 0)))
  const waiting = begun(1000)
  for (const id of [3, 5, 7, 9]) await client.send(frame(headers, endHeaders | endStream, id, requestBlock(lists)))
  await waiting
  return client
}

test('the server ends beside a client that reads nothing', async (t) => {
  const { clock, begun } = hastyClock({ 5000: 50 })
  const api = await anApi(t, { clock })
  await thatReadsNothing(api, begun)
  await api.stop()
  t.pass('ended')
})

test('the server ends beside a handshake that comes late', async (t) => {
  const { clock } = hastyClock({ 5000: 50 })
  const api = await anApi(t, { clock })
  const raw = connectTcp(api.port, '127.0.0.1')
  t.teardown(() => raw.destroy())
  await once(raw, 'connect')
  await isServed(t, api) // the connection before it is accepted by then
  const closed = once(raw.resume(), 'close')
  await Promise.all([api.stop(), closed])
  t.pass('ended before the time for handshakes')
})

test('the connection of a client that reads nothing is closed, although a watch is open on it', async (t) => {
  const { clock, begun } = hastyClock({ 1000: 2 })
  // With room for a process that stands still before it reads the first request.
  const connectionTimes = { headersTimeout: 5_000, connectionsCheckingInterval: 5 }
  const api = await anApi(t, { clock, connectionTimes })
  const client = await thatReadsNothing(api, begun)
  await untilClosed(client.serverEnd)
  t.equal(api.refusals('Timeout'), 1)
})

test('a connection has at most a hundred streams', async (t) => {
  const api = await anApi(t)
  const ids = Array.from({ length: 150 }, (_, index) => 2 * index + 1)
  const watches = ids.map((id) => frame(headers, endHeaders | endStream, id, requestBlock(`${lists}?watch=1`)))
  const client = await api.attack()
  await client.send(...watches)
  const count = (wanted: number) => client.frames.filter(({ type }) => type === wanted).length
  await client.until(() => count(reset) + count(headers) === ids.length)
  t.same([count(reset), count(headers)], [50, 100])
  const informed = await api.attack()
  await informed.until((frames) => frames.some(({ type }) => type === settings))
  await informed.send(frame(settings, 1, 0), ...watches)
  await informed.closed
  t.equal(api.refusals('NotHTTP'), 1, 'one that has acknowledged the limit')
  await isServed(t, api)
})

test('a client that sends nothing, or not all of a request, is not waited for', async (t) => {
  const connectionTimes = {
    headersTimeout: 5_000, // with room for a process that stands still before it reads a first request
    requestTimeout: 5_000,
    keepAliveTimeout: 50,
    connectionsCheckingInterval: 5,
  }
  const api = await anApi(t, { connectionTimes })
  const silent = await api.attack()
  await silent.closed
  const half = await api.attack()
  await half.send(frame(headers, 0, 1, requestBlock('/healthz')))
  await half.closed
  const slow = await api.attack()
  await slow.send(frame(headers, endHeaders, 1, requestBlock(lists, true)), frame(data, 0, 1, Buffer.from('{')))
  await slow.closed
  t.ok(slow.frames.some(({ type, stream }) => type === reset && stream === 1))
  t.equal(api.refusals('Timeout'), 1)
})

test('what is not HTTP/2 ends the connection', async (t) => {
  const api = await anApi(t)
  const client = await api.attack({ preface: 'GET / HTTP/1.1\r\nHost: x\r\n\r\n' })
  await client.closed
  t.equal(api.refusals('NotHTTP'), 1)
  await isServed(t, api)
})
