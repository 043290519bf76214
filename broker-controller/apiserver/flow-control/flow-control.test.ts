import { test } from 'tap'
import { isApiError } from '../../../api/api-error.ts'
import { administrator, anonymous, bootstrappersGroup, type Identity, nodeIdentity } from '../../../api/identity.ts'
import { limitLog } from '../../../daemon/log-limit.ts'
import { metricsRegistry } from '../../../daemon/metrics-registry.ts'
import { type FakeClock, fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { builtInKinds } from '../../assembly/control-plane.ts'
import { routeOf } from '../routes.ts'
import { type FlowAdmission, flowControl } from './flow-control.ts'
import {
  defaultFlowLimits,
  type Flow,
  type FlowLimits,
  type FlowShare,
  flowOf,
  mostExemptWatches,
  serviceAccountLimits,
  streamWeights,
} from './flow-levels.ts'

const nothing = new URLSearchParams()
const pods = routeOf('GET', '/api/v1/pods', nothing, builtInKinds)
const lease = routeOf(
  'PUT',
  '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/pi-1',
  nothing,
  builtInKinds,
)
const token: Identity = { user: 'system:bootstrap:abcdef', groups: [bootstrappersGroup] }

const user = (name: string): Flow => flowOf({ user: name, groups: [] }, pods, '192.0.2.1')
const account = (namespace: string, name: string): Flow => user(`system:serviceaccount:${namespace}:${name}`)
const from = (address: string): Flow => flowOf(anonymous, pods, address)
const node = (name: string): Flow => flowOf(nodeIdentity(name), pods, '192.0.2.1')

function aControl(t: Parameters<typeof quietLog>[0], more: Partial<FlowLimits> = {}) {
  const clock: FakeClock = fakeClock()
  const registry = metricsRegistry()
  const log = limitLog(quietLog(t), clock)
  const control = flowControl({ limits: { ...defaultFlowLimits, ...more }, clock, registry, log })
  /** How many of so many requests are admitted; each is over at once. */
  const burst = (flow: Flow, count: number) =>
    Array.from({ length: count }, () => {
      try {
        control.admit(flow, 0).release()
        return 1
      } catch {
        return 0
      }
    }).reduce<number>((sum, one) => sum + one, 0)
  return { clock, registry, burst, ...control }
}

const share = (more: Partial<FlowShare>): FlowShare => ({
  rate: { perSecond: 100, burst: 100 },
  seats: 100,
  streams: 100,
  ...more,
})

function retryAfter(act: () => unknown): number | undefined {
  try {
    act()
    return undefined
  } catch (error) {
    if (!isApiError(error, 'TooManyRequests')) throw error
    return error.details?.retryAfterSeconds
  }
}

function rethrown(error: unknown): never {
  throw error
}

test('each kind of client has a level of its own', async (t) => {
  t.same(flowOf(administrator, pods, '192.0.2.1').level, 'exempt')
  t.same(flowOf(nodeIdentity('pi-1'), lease, '192.0.2.1').level, 'leader-election')
  t.same(node('pi-1'), { level: 'system', key: 'system:node:pi-1' })
  t.same(flowOf(token, pods, '192.0.2.1'), { level: 'bootstrap', key: 'system:bootstrap:abcdef 192.0.2.1' })
  t.same(flowOf(anonymous, pods, '2001:db8::1').key, flowOf(anonymous, pods, '2001:db8::2').key)
  t.same(user('jane'), { level: 'global-default', key: 'jane' })
  t.same(account('shop', 'robot'), {
    level: 'workload-low',
    key: 'system:serviceaccount:shop:robot',
    owner: 'system:serviceaccounts:shop',
  })
})

test('a node over its rate gets 429 with Retry-After, and other nodes are served', async (t) => {
  const { burst, admit, clock, registry } = aControl(t)
  const { perSecond, burst: most } = defaultFlowLimits.system.flow.rate
  t.equal(burst(node('greedy'), 2 * most), most)
  t.equal(
    retryAfter(() => admit(node('greedy'), 0)),
    1,
  )
  t.equal(burst(node('modest'), 100), 100)
  await clock.advance(1000)
  t.equal(burst(node('greedy'), most), perSecond)
  t.match(registry.text(), /rejected_requests_total\{priority_level="system",reason="rate"\} \d+/)
})

test('a node that has used up its share still renews its lease', async (t) => {
  const { burst } = aControl(t)
  burst(node('pi-1'), 600)
  t.equal(burst(flowOf(nodeIdentity('pi-1'), lease, '192.0.2.1'), 5), 5)
})

test('administrators are served whatever all others do', async (t) => {
  const { burst } = aControl(t)
  for (let address = 0; address < 20; address++) burst(flowOf(anonymous, pods, `192.0.2.${address}`), 200)
  for (let name = 0; name < 10; name++) burst(node(`pi-${name}`), 600)
  t.equal(burst(flowOf(administrator, pods, '192.0.2.1'), 10_000), 10_000)
})

test('a flow over its own rate takes nothing from its level', async (t) => {
  const limits = {
    flow: share({ rate: { perSecond: 1, burst: 10 } }),
    level: share({ rate: { perSecond: 1, burst: 20 } }),
  }
  const { burst } = aControl(t, { system: limits })
  t.equal(burst(node('greedy'), 1_000), 10)
  t.equal(burst(node('modest'), 10), 10)
  t.equal(burst(node('third'), 10), 1, 'the level is used up, and a third of what it gains in five seconds is one')
})

test('large bodies and large answers cost more than small ones', async (t) => {
  const { admit, burst } = aControl(t)
  const admission = admit(node('pi-1'), 0)
  admission.readBody(3 * 1024 * 1024)
  admission.answered(6400 * 1024)
  admission.release()
  t.equal(burst(node('pi-1'), 1000), defaultFlowLimits.system.flow.rate.burst - 1 - 192 - 100)
})

test('the end of a long watch of one node costs that node, and not all nodes', async (t) => {
  const { admit, burst } = aControl(t)
  const watch = admit(node('watcher'), 1)
  watch.answered(4 * 1024 ** 3)
  watch.release()
  t.equal(burst(node('watcher'), 10), 0)
  t.equal(burst(node('modest'), 100), 100)
})

test('requests that run at one time are bounded, and a finished one makes room', async (t) => {
  const limits = { flow: share({ seats: 2 }), level: share({ seats: 3 }) }
  const { admit, registry } = aControl(t, { system: limits })
  const [first] = [admit(node('pi-1'), 0), admit(node('pi-1'), 0)]
  t.equal(
    retryAfter(() => admit(node('pi-1'), 0)),
    1,
  )
  admit(node('pi-2'), 0)
  t.equal(
    retryAfter(() => admit(node('pi-2'), 0)),
    1,
    'the level is full',
  )
  t.match(registry.text(), /current_executing_requests\{priority_level="system"\} 3/)
  first?.release()
  first?.release()
  t.equal(
    retryAfter(() => admit(node('pi-1'), 0)),
    undefined,
  )
  t.equal(
    retryAfter(() => admit(node('pi-1'), 0)),
    1,
  )
})

test('watches are bounded apart from requests', async (t) => {
  const limits = { flow: share({ seats: 1, streams: 2 }), level: share({ streams: 3 }) }
  const { admit } = aControl(t, { system: limits })
  const [first] = [admit(node('pi-1'), 1), admit(node('pi-1'), 1)]
  t.equal(
    retryAfter(() => admit(node('pi-1'), 1)),
    30,
  )
  t.equal(
    retryAfter(() => admit(node('pi-1'), 0)),
    undefined,
  )
  admit(node('pi-2'), 1)
  t.equal(
    retryAfter(() => admit(node('pi-2'), 1)),
    30,
  )
  first?.release()
  t.equal(
    retryAfter(() => admit(node('pi-2'), 1)),
    undefined,
  )
})

test('exempt clients have a bounded number of watches, and any number of requests', async (t) => {
  const { admit, registry } = aControl(t)
  const admin = flowOf(administrator, pods, '192.0.2.1')
  const requests = Array.from({ length: mostExemptWatches }, () => admit(admin, 0))
  const watches = Array.from({ length: mostExemptWatches }, () => admit(admin, 1))
  const refusal = () => retryAfter(() => admit(admin, 1))
  t.equal(refusal(), 30)
  t.match(registry.text(), /rejected_requests_total\{priority_level="exempt",reason="watches"\} 1/)
  t.equal(
    retryAfter(() => admit(admin, 0)),
    undefined,
  )
  for (const request of requests) request.release()
  t.equal(refusal(), 30, 'a request gives no place back')
  watches[0]?.release()
  watches[0]?.release()
  t.equal(refusal(), undefined)
  t.equal(refusal(), 30)
  watches[1]?.readBody(2 ** 30)
  watches[1]?.answered(2 ** 40)
  t.equal(
    retryAfter(() => admit(admin, 0)),
    undefined,
    'what an exempt client transfers is not charged',
  )
})

test('a flow whose level is used up keeps its own share', async (t) => {
  const limits = {
    flow: share({ rate: { perSecond: 1, burst: 10 } }),
    level: share({ rate: { perSecond: 100, burst: 1 } }),
  }
  const { admit, burst, clock } = aControl(t, { system: limits })
  t.equal(burst(node('pi-1'), 1), 1)
  t.equal(
    retryAfter(() => admit(node('pi-1'), 0)),
    1,
  )
  let served = 0
  for (let count = 0; count < 20; count++) {
    await clock.advance(20)
    served += burst(node('pi-1'), 1)
  }
  t.equal(served, 9)
})

test('a flow of several requests is bounded until each has ended', async (t) => {
  const { admit } = aControl(t, { system: { flow: share({ seats: 3 }), level: share({}) } })
  const own = () => admit(node('pi-1'), 0)
  const [first] = [own(), own(), own()]
  first?.release()
  own()
  t.equal(retryAfter(own), 1)
})

test('flows that use up their level leave the others their share of its rate', async (t) => {
  const { clock, burst } = aControl(t)
  let served = 0
  for (let tick = 0; tick < 200; tick++) {
    await clock.advance(100)
    for (let address = 0; address < 10; address++) burst(from(`192.0.2.${address}`), 3)
    // Three requests a second, beside 300.
    if (tick % 10 < 3) served += burst(from('198.51.100.7'), 1)
  }
  t.equal(served, 60)
})

test('each service account has its own rate, and those of a namespace share the level as one owner', async (t) => {
  const { burst } = aControl(t)
  const { flow, level } = defaultFlowLimits['workload-low']
  t.equal(burst(account('operators', 'a'), 600), flow.rate.burst)
  t.equal(burst(account('operators', 'b'), 600), flow.rate.burst)
  const tenant = Array.from({ length: 40 }, (_, at) => burst(account('tenant', `robot-${at}`), 100))
  const served = tenant.reduce((sum, one) => sum + one, 0)
  t.ok(served < level.rate.burst, 'the level is used up')
  t.equal(burst(account('monitoring', 'prometheus'), 100), 100, 'an owner that has used little is served')
  t.equal(burst(account('tenant', 'another'), 1), 0)
})

test('seats and streams of a full level go to the namespace with fewer, however many accounts the other has', async (t) => {
  const limits = { flow: share({ seats: 2, streams: 2 }), level: share({ seats: 4, streams: 4 }) }
  const { admit } = aControl(t, { 'workload-low': limits })
  const robots = ['a', 'b', 'c', 'd'].map((name) => account('tenant', name))
  const watches = robots.map((robot) => admit(robot, 1))
  for (const robot of robots) admit(robot, 0)
  t.equal(
    retryAfter(() => admit(account('tenant', 'e'), 0)),
    1,
  )
  t.equal(
    retryAfter(() => admit(account('shop', 'operator'), 0)),
    undefined,
  )
  t.equal(
    retryAfter(() => admit(account('tenant', 'e'), 1)),
    30,
  )
  admit(account('shop', 'operator'), 1)
  t.same(
    watches.map(({ displaced }) => displaced?.aborted),
    [false, false, false, true],
  )
})

test('a service account over its rate waits for its turn, in the order in which its requests came', async (t) => {
  const queue = { longestMs: 5_000, perFlow: 3, inLevel: 10 }
  const limits = { flow: share({ rate: { perSecond: 1, burst: 1 } }), level: share({}), queue }
  const { admitInTurn, clock } = aControl(t, { 'workload-low': limits })
  const { signal } = new AbortController()
  const order: string[] = []
  const send = (name: string) =>
    admitInTurn(account('shop', 'robot'), 0, signal).then(
      ({ release }) => {
        order.push(name)
        release()
      },
      (error: unknown) => void order.push(`${name} ${retryAfter(() => rethrown(error))}`),
    )
  const sent = ['a', 'b', 'c', 'd', 'e'].map(send)
  await sent[4]
  t.same(order, ['a', 'e 1'], 'three wait, and the next one is refused')
  await admitInTurn(account('shop', 'other'), 0, signal)
  for (let seconds = 0; seconds < 3; seconds++) await clock.advance(1_000)
  await Promise.all(sent)
  t.same(order, ['a', 'e 1', 'b', 'c', 'd'])
})

test('a full queue takes requests of the namespace with fewer, however many accounts the other has', async (t) => {
  const queue = { longestMs: 5_000, perFlow: 3, inLevel: 4 }
  const limits = { flow: share({ rate: { perSecond: 1, burst: 1 } }), level: share({}), queue }
  const { admitInTurn, clock } = aControl(t, { 'workload-low': limits })
  const { signal } = new AbortController()
  const send = (flow: Flow) =>
    admitInTurn(flow, 0, signal).then(
      () => 'served',
      (error: unknown) => `refused ${retryAfter(() => rethrown(error))}`,
    )
  const robots = [0, 1, 2].map((name) => account('tenant', `${name}`))
  const sent = robots.flatMap((robot) => [send(robot), send(robot), send(robot)])
  const others = [1, 2, 3].map(() => send(account('shop', 'operator')))
  for (let seconds = 0; seconds < 3; seconds++) await clock.advance(1_000)
  const served = ['served', 'served', 'served']
  t.same(await Promise.all(others), served)
  t.same(await Promise.all(sent), [...served, ...served, 'served', 'refused 1', 'refused 1'])
})

test('a request that has waited too long, or whose client is gone, leaves the queue', async (t) => {
  const queue = { longestMs: 5_000, perFlow: 3, inLevel: 10 }
  const limits = { flow: share({ seats: 1 }), level: share({}), queue }
  const { admitInTurn, clock } = aControl(t, { 'workload-low': limits })
  const robot = account('shop', 'robot')
  const gone = new AbortController()
  const running = await admitInTurn(robot, 0, gone.signal)
  const refused = admitInTurn(robot, 0, new AbortController().signal).catch((error: unknown) => error)
  for (let seconds = 0; seconds < 6; seconds++) await clock.advance(1_000)
  t.match(await refused, { reason: 'TooManyRequests', details: { retryAfterSeconds: 1 } })
  const left = admitInTurn(robot, 0, gone.signal).catch((error: unknown) => error)
  gone.abort()
  t.match(await left, { reason: 'TooManyRequests' })
  const next = admitInTurn(robot, 0, new AbortController().signal)
  running.release()
  ;(await next).release()
  t.pass('a seat that is free again is given at once')
})

test('a place for a stream is not waited for', async (t) => {
  const queue = { longestMs: 5_000, perFlow: 3, inLevel: 10 }
  const { admitInTurn } = aControl(t, { 'workload-low': { flow: share({ streams: 0 }), level: share({}), queue } })
  const refused = admitInTurn(account('shop', 'robot'), 1, new AbortController().signal)
  t.match(await refused.catch((error: unknown) => error), { details: { retryAfterSeconds: 30 } })
})

test('watches of service accounts are bounded by the memory of the machine', async (t) => {
  const gibibyte = 2 ** 30
  const streams = (bytes: number) => serviceAccountLimits(bytes).level.streams
  t.same(
    [0.25, 1, 2, 64].map((size) => streams(size * gibibyte)),
    [400, 1_024, 2_048, 4_000],
  )
})

test('a full level gives seats to flows with few', async (t) => {
  const { admit } = aControl(t)
  const { seats } = defaultFlowLimits['global-default'].flow
  for (const name of ['a', 'b', 'c']) for (let count = 0; count < seats; count++) retryAfter(() => admit(user(name), 0))
  for (const expected of [undefined, undefined, undefined, undefined]) {
    t.equal(
      retryAfter(() => admit(user('jane'), 0)),
      expected,
    )
  }
  t.equal(
    retryAfter(() => admit(user('c'), 0)),
    1,
    'the flows with most get none',
  )
})

test('one operator of controllers has sixty watches', async (t) => {
  const { admit } = aControl(t)
  const watches = Array.from({ length: 60 }, () => admit(account('operators', 'shop'), streamWeights.watch))
  t.notOk(watches.some(({ displaced }) => displaced?.aborted))
})

test('a flow with few streams takes the places of the newest streams of the flow with most', async (t) => {
  const limits = { flow: share({ streams: 6 }), level: share({ streams: 8 }) }
  const { admit, registry } = aControl(t, { 'global-default': limits })
  const ended = (streams: readonly FlowAdmission[]) => streams.map(({ displaced }) => displaced?.aborted)
  const most = Array.from({ length: 6 }, () => admit(user('most'), 1))
  const some = [admit(user('some'), 1), admit(user('some'), 1)]
  admit(user('few'), 1)
  t.same(ended(most), [false, false, false, false, false, true])
  admit(user('few'), 2)
  t.same(ended(most), [false, false, false, true, true, true])
  t.same(ended(some), [false, false])
  t.equal(
    retryAfter(() => admit(user('few'), 1)),
    30,
    'it would have more than any other is left with',
  )
  t.match(registry.text(), /bramble_api_displaced_streams_total\{priority_level="global-default"\} 3/)
  for (const stream of most) stream.release()
  t.equal(
    retryAfter(() => admit(user('few'), 3)),
    undefined,
    'those that were displaced are not counted twice',
  )
  t.equal(
    retryAfter(() => admit(user('third'), 1)),
    undefined,
  )
})
