import { type Test, test } from 'tap'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { fakeRuntime } from '../../testing/fake-runtime.ts'
import { imagePuller, pulledMessage, pullingMessage } from './image-puller.ts'

function world(t: Test, parallel = 2) {
  const clock = fakeClock()
  const runtime = fakeRuntime(clock)
  const puller = imagePuller({ runtime, clock, log: quietLog(t) }, { parallel, stallMs: 60_000 })
  const ended: string[] = []
  const progressTexts: string[] = []
  const pull = (image: string) => {
    runtime.registry.add(image)
    puller.pull(
      { image, credentials: [] },
      { ended: () => ended.push(image), goesOn: (progress) => progressTexts.push(pullingMessage(image, progress)) },
    )
  }
  const begun = () => runtime.calls.filter(({ method }) => method === 'pullImage').map(({ subject }) => subject)
  return { clock, runtime, puller, pull, begun, ended, progressTexts }
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

test('how long the registries have sent nothing', async (t) => {
  const { clock, runtime, puller, pull } = world(t, 1)
  const letGo = runtime.holdPulls('silent')
  const silentMs = (image: string) => {
    const state = puller.stateOf({ image, credentials: [] }, 0)
    return state.state === 'pulling' ? state.silentMs : undefined
  }
  pull('a:1')
  await clock.advance(5_000)
  pull('b:1')
  await clock.advance(1_000)
  t.equal(silentMs('a:1'), 6_000)
  t.equal(silentMs('b:1'), 6_000, 'behind one that is silent it is no use to wait longer')
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
    const state = puller.stateOf({ image: 'a:1', credentials: [] }, 0)
    return state.state === 'failed' ? state.retryInMs : state.state
  }
  t.equal(await failAfter(0), 10_000)
  t.equal(await failAfter(600_000), 20_000)
  t.equal(await failAfter(600_001), 10_000)
})

test('of many pulls the last ones are known', async (t) => {
  const { clock, puller, pull } = world(t)
  const stateOf = (image: string) => puller.stateOf({ image, credentials: [] }, 0).state
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
