import { type Test, test } from 'tap'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { fakeRuntime } from '../../testing/fake-runtime.ts'
import { imagePuller, pulledMessage, pullingMessage } from './image-puller.ts'

function world(t: Test, parallel = 2) {
  const clock = fakeClock()
  const runtime = fakeRuntime(clock)
  const log = quietLog(t)
  const puller = imagePuller({ runtime, clock, log }, { parallel, stallMs: 60_000 })
  const ended: string[] = []
  const progressTexts: string[] = []
  const pull = (image: string) => {
    runtime.registry.add(image)
    puller.pull(
      { image, credentials: [] },
      {
        uid: 'pod',
        ended: () => ended.push(image),
        goesOn: (progress) => progressTexts.push(pullingMessage(image, progress)),
      },
    )
  }
  const begun = () => runtime.calls.filter(({ method }) => method === 'pullImage').map(({ subject }) => subject)
  return { clock, log, runtime, puller, pull, begun, ended, progressTexts }
}

test('pulls above the limit are queued, and the message includes the waiting time', async (t) => {
  const { clock, runtime, puller, pull, begun, ended } = world(t)
  let letGo = runtime.holdPulls()
  for (const image of ['a:1', 'b:1', 'c:1', 'a:1']) pull(image)
  await clock.advance(5_000)
  t.same(begun(), ['a:1', 'b:1'])
  const first = letGo
  letGo = runtime.holdPulls()
  first()
  await clock.advance(2_000)
  t.same(begun(), ['a:1', 'b:1', 'c:1'])
  t.same(ended, ['a:1', 'a:1', 'b:1'], 'an image is pulled once for all who wait')
  letGo()
  await clock.settle()
  t.same(puller.timesOf({ image: 'c:1', credentials: [] }), { tookMs: 2_000, waitedMs: 5_000 })
})

test('a pull counts for the pods that wait for it: another pod asks for it, and is notified of its end', async (t) => {
  const { clock, runtime, puller } = world(t)
  const wanted = { image: 'a:1', credentials: [] }
  const letGo = runtime.holdPulls()
  runtime.registry.add('a:1')
  const notified: string[] = []
  const pullFor = (uid: string) =>
    puller.pull(wanted, { uid, ended: () => notified.push(uid), goesOn: () => undefined })
  const stateFor = (uid: string) => puller.stateOf(wanted, { uid, sinceMs: 0 }).state
  pullFor('first')
  await clock.settle()
  t.same([stateFor('first'), stateFor('late')], ['pulling', 'none'])
  pullFor('late')
  t.equal(stateFor('late'), 'pulling')
  letGo()
  await clock.settle()
  t.same(notified, ['first', 'late'])
  t.equal(runtime.calls.filter(({ method }) => method === 'pullImage').length, 1)
})

test('how long the registries have sent nothing', async (t) => {
  const { clock, runtime, puller, pull } = world(t, 1)
  const letGo = runtime.holdPulls('silent')
  const silentMs = (image: string) => {
    const state = puller.stateOf({ image, credentials: [] }, { uid: 'pod', sinceMs: 0 })
    return state.state === 'pulling' ? state.silentMs : undefined
  }
  pull('a:1')
  await clock.advance(5_000)
  pull('b:1')
  await clock.advance(1_000)
  t.equal(silentMs('a:1'), 6_000)
  t.equal(silentMs('b:1'), 6_000, 'a pull behind a silent one does not wait longer')
  const letGoOfNext = runtime.holdPulls()
  letGo()
  await clock.advance(2_000)
  t.equal(silentMs('a:1'), undefined)
  pull('c:1')
  await clock.advance(20_000)
  t.same([silentMs('b:1'), silentMs('c:1')], [0, 0], 'one that fetches is waited for')
  letGoOfNext()
  await clock.settle()
})

test('waiters of a long pull are notified every three minutes', async (t) => {
  const { clock, runtime, pull, progressTexts } = world(t)
  const letGo = runtime.holdPulls()
  pull('a:1')
  await clock.advance(179_000)
  t.same(progressTexts, [])
  await clock.advance(200_000)
  t.same(progressTexts, Array(2).fill('Pulling image "a:1": 1 of 2 layers are here, 0.5 MB of 1.0 MB fetched'))
  letGo()
  await clock.advance(600_000)
  t.equal(progressTexts.length, 2)
  t.equal(clock.sleepers, 0)
})

test('the wait after a failure starts again at 10 s when the last failure is more than ten minutes ago', async (t) => {
  const { clock, runtime, puller, pull } = world(t)
  const failAfter = async (ms: number) => {
    await clock.advance(ms)
    runtime.failNext('pullImage')
    pull('a:1')
    await clock.settle()
    const state = puller.stateOf({ image: 'a:1', credentials: [] }, { uid: 'pod', sinceMs: 0 })
    return state.state === 'failed' ? state.retryInMs : state.state
  }
  t.equal(await failAfter(0), 10_000)
  t.equal(await failAfter(600_000), 20_000)
  t.equal(await failAfter(600_001), 10_000)
})

test('of many pulls the last ones are known', async (t) => {
  const { clock, puller, pull } = world(t)
  const stateOf = (image: string) => puller.stateOf({ image, credentials: [] }, { uid: 'pod', sinceMs: 0 }).state
  for (let image = 0; image <= 500; image++) pull(`a:${image}`)
  await clock.settle()
  t.equal(stateOf('a:0'), 'none')
  t.equal(stateOf('a:1'), 'pulled')
  t.equal(stateOf('a:500'), 'pulled')
})

test('durations and sizes are written as Kubernetes writes them', async (t) => {
  const pulledText = (tookMs: number, waitedMs: number) => pulledMessage('a:1', { tookMs, waitedMs }, 12_345)
  t.equal(
    pulledText(845.7, 0),
    'Successfully pulled image "a:1" in 845ms (845ms including waiting). Image size: 12345 bytes.',
  )
  t.match(pulledText(1_500, 121_734), 'in 1.5s (2m3.234s including waiting)')
  t.equal(pulledMessage('a:1', undefined, 1), 'Container image "a:1" already present on machine')
})

test('the state of an image follows its pull, and an older pull does not change it', async (t) => {
  const { clock, log, puller, runtime, pull } = world(t)
  const wanted = { image: 'a:1', credentials: [] }
  t.same(puller.stateOf(wanted, { uid: 'pod', sinceMs: 0 }), { state: 'none' })
  t.equal(puller.timesOf(wanted), undefined)
  await clock.advance(1_000)
  pull('a:1')
  t.equal(puller.timesOf(wanted), undefined)
  await clock.advance(500)
  const [tookMs, pulledAtMs] = [puller.timesOf(wanted)?.tookMs ?? -1, 1_000]
  t.same(puller.stateOf(wanted, { uid: 'pod', sinceMs: pulledAtMs + tookMs }), { state: 'pulled', agoMs: 500 - tookMs })
  t.same(puller.stateOf(wanted, { uid: 'pod', sinceMs: pulledAtMs + tookMs + 1 }), { state: 'none' })
  runtime.failNext('pullImage', 'Failed', 'no such image')
  pull('b:1')
  await clock.advance(4_000)
  t.same(puller.stateOf({ image: 'b:1', credentials: [] }, { uid: 'pod', sinceMs: 0 }), {
    state: 'failed',
    message: 'no such image',
    failedMsAgo: 4_000,
    retryInMs: 6_000,
  })
  t.match(log.lines, [
    { level: 'info', message: 'Image pulled', facts: { image: 'a:1', tookMs } },
    {
      level: 'warn',
      message: 'Image not pulled',
      facts: { image: 'b:1', retryInMs: 10_000, error: { message: 'no such image' } },
    },
  ])
})

test('the wait after failures doubles up to five minutes', async (t) => {
  const { clock, runtime, puller, pull } = world(t)
  const waits: number[] = []
  for (let failures = 0; failures < 7; failures++) {
    runtime.failNext('pullImage')
    pull('a:1')
    await clock.settle()
    const state = puller.stateOf({ image: 'a:1', credentials: [] }, { uid: 'pod', sinceMs: 0 })
    waits.push(state.state === 'failed' ? state.retryInMs : 0)
    await clock.advance(waits.at(-1) ?? 0)
  }
  t.same(waits, [10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000])
})

test('each of the credentials is tried once, in order, and the last refusal is the message', async (t) => {
  const { clock, runtime } = world(t)
  const tried: (string | undefined)[] = []
  let good = 'none'
  const pullImage: typeof runtime.pullImage = async (_, { credentials }) => {
    tried.push(credentials?.username)
    if (credentials?.username !== good) throw new Error(`${credentials?.username ?? 'anonymous'} is denied`)
  }
  const puller = imagePuller({ runtime: { pullImage }, clock, log: quietLog(t) }, { parallel: 1, stallMs: 60_000 })
  const as = (username: string) => ({ username, password: 'p', identityToken: '' })
  const pull = async (...names: readonly string[]) => {
    const wanted = { image: 'a:1', credentials: names.map(as) }
    puller.pull(wanted, { uid: 'pod', ended: () => undefined, goesOn: () => undefined })
    await clock.settle()
    return { state: puller.stateOf(wanted, { uid: 'pod', sinceMs: 0 }), tried: tried.splice(0) }
  }
  t.match(await pull('one', 'two'), { state: { state: 'failed', message: 'two is denied' }, tried: ['one', 'two'] })
  t.match(await pull(), { state: { state: 'failed', message: 'anonymous is denied' }, tried: [undefined] })
  good = 'two'
  t.match(await pull('one', 'two', 'three'), { state: { state: 'pulled' }, tried: ['one', 'two'] })
  t.match(await pull('three'), { state: { state: 'failed', retryInMs: 10_000 } }, 'other credentials, another pull')
})

test('an agent that stops calls off its pulls, starts none of those in line, and logs no failure', async (t) => {
  const { clock, log, runtime, puller, pull, begun, ended } = world(t, 1)
  runtime.holdPulls()
  const stopping = new AbortController()
  const running = puller.run(stopping.signal)
  pull('a:1')
  pull('b:1')
  await clock.advance(31_000)
  t.match(log.lines, [{ level: 'info', message: 'Image still being pulled', facts: { image: 'a:1', layers: 2 } }])
  stopping.abort()
  await running
  await clock.advance(1_000)
  t.same(begun(), ['a:1'])
  t.same(ended, ['a:1'])
  t.same(log.messages('warn'), [])
})

test('a pull of a second and of a minute change the unit', async (t) => {
  const spanOf = (tookMs: number) => /in (\S+) /.exec(pulledMessage('a:1', { tookMs, waitedMs: 0 }, 1))?.[1]
  t.same([999, 1_000, 59_999, 60_000].map(spanOf), ['999ms', '1s', '59.999s', '1m0s'])
})
