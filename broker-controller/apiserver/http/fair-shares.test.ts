import { type Test, test } from 'tap'
import { type Clock, systemClock } from '../../../daemon/clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { startApi } from '../../testing/api-under-test.ts'
import { endHeaders, endStream, frame, frameTypes, indexed, rawHttp2, requestBlock } from '../../testing/raw-http2.ts'
import { bearer, tokenClients } from '../../testing/token-clients.ts'
import { defaultFlowLimits, type FlowLimits } from '../flow-control/flow-levels.ts'

async function anApi(t: Test, over: { flowLimits?: Partial<FlowLimits>; clock?: Clock } = {}) {
  const api = await startApi({ log: quietLog(t), over })
  t.teardown(api.stop)
  return { ...api, ...tokenClients(t, api) }
}

/** No time passes for the shares of clients: a machine that is slow does not refill them. */
const standing: Clock = { ...systemClock, monotonicMs: () => 0 }

const maps = (namespace: string) => `/api/v1/namespaces/${namespace}/configmaps`
const watchOf = (namespace: string) => `${maps(namespace)}?watch=1`

/** The limits of service accounts, with few streams. */
function fewStreams(flow: number, level: number): Partial<FlowLimits> {
  const accounts = defaultFlowLimits['workload-low']
  const limits = { flow: { ...accounts.flow, streams: flow }, level: { ...accounts.level, streams: level } }
  return { 'workload-low': limits }
}

/** The limits of a level, with a burst of so many requests. */
function fewRequests(name: 'workload-low' | 'catch-all', flow: number, level: number): Partial<FlowLimits> {
  const own = defaultFlowLimits[name]
  const limits = {
    flow: { ...own.flow, rate: { perSecond: 10, burst: flow } },
    level: { ...own.level, rate: { perSecond: 100, burst: level } },
  }
  return { [name]: limits }
}

test('service accounts of one namespace cannot take the watches of others', async (t) => {
  const { editor, open, admin } = await anApi(t, { flowLimits: fewStreams(6, 8) })
  const robots = [await editor('tenant', 'a'), await editor('tenant', 'b'), await editor('tenant', 'c')]
  const [honest, third] = [await editor('shop', 'operator'), await editor('third', 'operator')]
  const held = []
  for (const robot of [...robots, ...robots, ...robots.slice(0, 2)]) {
    held.push(await open(watchOf('tenant'), bearer(robot)))
  }
  t.same([...new Set(held.map(({ code }) => code))], [200])
  t.equal((await open(watchOf('tenant'), bearer(robots[2] ?? ''))).code, 429, 'the namespace has the whole level')
  const kept = [await open(watchOf('shop'), bearer(honest)), await open(watchOf('shop'), bearer(honest))]
  const late = await open(watchOf('third'), bearer(third))
  t.same(
    [...kept, late].map(({ code }) => code),
    [200, 200, 200],
    'the level was full',
  )
  for (const newest of held.slice(5)) {
    t.equal(await newest.ended, true, 'the newest watches of the namespace with most end, as a watch does')
  }
  await admin('POST', maps('shop'), { metadata: { name: 'seen' } })
  while (!kept.every(({ text }) => text().includes('"seen"'))) await systemClock.sleep(5)
  t.same(
    held.map(({ isOver }) => isOver()),
    [false, false, false, false, false, true, true, true],
  )
})

test('an operator of controllers opens sixty watches, on connections of their own or on one', async (t) => {
  const { editor, open, port, authority, admin } = await anApi(t)
  const operator = await editor('operators', 'shop')
  const own = await Promise.all(Array.from({ length: 60 }, () => open(watchOf('operators'), bearer(operator))))
  const client = await rawHttp2({ port, ca: authority.certificate })
  t.teardown(() => client.socket.destroy())
  const block = Buffer.concat([requestBlock(watchOf('operators')), indexed('authorization', `Bearer ${operator}`)])
  for (let at = 0; at < 60; at++)
    await client.send(frame(frameTypes.headers, endHeaders | endStream, 2 * at + 1, block))
  const name = 'seen-by-all'
  const seen = (frames: typeof client.frames) =>
    frames.filter(({ type, payload }) => type === frameTypes.data && payload.includes(name)).length
  await admin('POST', maps('operators'), { metadata: { name } })
  await client.until((frames) => seen(frames) === 60)
  while (!own.every(({ text }) => text().includes(name))) await systemClock.sleep(5)
  t.same([...new Set(own.map(({ code }) => code))], [200])
})

test('an operator that sends without a limit of its own waits for its turn, and is served', async (t) => {
  const { flow, level } = defaultFlowLimits['workload-low']
  const limits = {
    ...{ flow: { ...flow, rate: { perSecond: 100, burst: 5 } }, level },
    queue: { longestMs: 60_000, perFlow: 100, inLevel: 100 },
  }
  const { editor, open } = await anApi(t, { flowLimits: { 'workload-low': limits } })
  const operator = await editor('operators', 'shop')
  const answers = await Promise.all(Array.from({ length: 40 }, () => open(maps('operators'), bearer(operator))))
  t.same([...new Set(answers.map(({ code }) => code))], [200])
})

test('streams of one connection of HTTP/2 count one by one', async (t) => {
  const { editor, open, port, authority } = await anApi(t, { flowLimits: fewStreams(10, 20) })
  const [tenant, second] = [await editor('tenant', 'a'), await editor('tenant', 'b')]
  const client = await rawHttp2({ port, ca: authority.certificate })
  t.teardown(() => client.socket.destroy())
  const block = Buffer.concat([requestBlock(watchOf('tenant')), indexed('authorization', `Bearer ${tenant}`)])
  const ids = Array.from({ length: 10 }, (_, at) => 2 * at + 1)
  for (const id of ids) await client.send(frame(frameTypes.headers, endHeaders | endStream, id, block))
  await client.until((frames) => ids.every((id) => frames.some(({ stream }) => stream === id)))
  t.equal((await open(watchOf('tenant'), bearer(tenant))).code, 429)
  t.equal((await open(watchOf('tenant'), bearer(second))).code, 200, 'another account has its own limit')
})

test('impersonated users have the share of the one who impersonates them', async (t) => {
  const burst = 10
  const { editor, open } = await anApi(t, { clock: standing, flowLimits: fewRequests('workload-low', burst, 500) })
  const [tenant, honest] = [await editor('tenant', 'robot'), await editor('shop', 'operator')]
  const codes: number[] = []
  for (let at = 0; at < burst + 5; at++) {
    const user = { 'impersonate-user': `system:serviceaccount:tenant:none-${at}` }
    const { code, ended } = await open(maps('tenant'), { headers: { ...bearer(tenant).headers, ...user } })
    await ended
    codes.push(code)
  }
  t.same([codes[0], codes[burst - 1], codes[burst]], [403, 403, 429])
  t.equal((await open(maps('shop'), bearer(honest))).code, 200)
})

test('addresses that use up the share of strangers leave others theirs', async (t) => {
  const [flow, level] = [10, 50]
  const { open } = await anApi(t, { clock: standing, flowLimits: fewRequests('catch-all', flow, level) })
  const statusFrom = async (localAddress: string) => {
    const { code, ended } = await open('/version', { localAddress })
    await ended
    return code
  }
  const most = Array.from({ length: 6 }, (_, at) => `127.0.0.${at + 2}`)
  const codes = await Promise.all(
    most.map(async (address) => {
      const got: number[] = []
      for (let count = 0; count < flow; count++) got.push(await statusFrom(address))
      return got
    }),
  )
  const served = codes.flat().filter((code) => code === 200).length
  t.ok(served >= level && served < most.length * flow, `${served} of 60`)
  for (let count = 0; count < 5; count++) t.equal(await statusFrom('127.0.0.99'), 200)
})

test('health checks are answered though strangers of the same address have used up its share, as behind a load balancer', async (t) => {
  const { open } = await anApi(t, { clock: standing, flowLimits: fewRequests('catch-all', 3, 50) })
  const statusOf = async (path: string) => {
    const { code, ended } = await open(path)
    await ended
    return code
  }
  for (let count = 0; count < 3; count++) t.equal(await statusOf('/version'), 200)
  t.equal(await statusOf('/version'), 429)
  for (const path of ['/healthz', '/livez', '/readyz', '/readyz?verbose']) t.equal(await statusOf(path), 200, path)
  t.equal(await statusOf('/readyz/ping'), 429, 'as in Kubernetes: these paths alone')
})
