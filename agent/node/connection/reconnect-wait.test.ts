import { test } from 'tap'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { againWhenNetworkComesUp, networkWatch, reconnectCeilingMs, reconnectWaitMs } from './reconnect-wait.ts'

test('the longest wait follows the grace period of the controller, and is 20 s until it is known', (t) => {
  t.equal(reconnectCeilingMs(undefined), 20_000)
  t.equal(reconnectCeilingMs(50_000), 20_000)
  t.equal(reconnectCeilingMs(120_000), 48_000)
  t.equal(reconnectCeilingMs(10_000), 4_000)
  t.equal(reconnectCeilingMs(0), 2_000)
  t.equal(reconnectCeilingMs(86_400_000), 600_000)
  t.end()
})

test('an attempt under way and the longest wait after it end within the grace period', (t) => {
  const attemptMs = 15_000
  for (const graceMs of [30_000, 50_000, 120_000, 600_000]) {
    for (const failures of [0, 1, 5, 100, 10_000]) {
      const waitMs = reconnectWaitMs(failures, graceMs, () => 0.999_999)
      t.ok(attemptMs + waitMs < graceMs, `${failures} failures, ${graceMs} ms`)
    }
  }
  t.equal(
    reconnectWaitMs(100, undefined, () => 0),
    0,
    'with full jitter',
  )
  t.end()
})

function watched() {
  const clock = fakeClock()
  const state = new Set<string>(['link eth0 2'])
  const watch = networkWatch({ clock, random: () => 0.5, network: () => new Set(state) })
  return { clock, state, watch }
}

test('a wait ends a moment after a network came up, and otherwise in its time', async (t) => {
  const { clock, state, watch } = watched()
  const signal = new AbortController().signal
  const ends: string[] = []
  void watch.cameUpWithin(20_000, signal).then((isUp) => ends.push(`${clock.monotonicMs()} ${isUp}`))
  await clock.advance(19_999)
  t.same(ends, [])
  await clock.advance(1)
  t.same(ends, ['20000 false'])
  void watch.cameUpWithin(20_000, signal).then((isUp) => ends.push(`${clock.monotonicMs()} ${isUp}`))
  await clock.advance(4_200)
  state.clear()
  await clock.advance(2_000)
  state.add('link eth0 4')
  await clock.advance(1_500)
  t.same(ends.slice(1), ['27500 true'])
})

test('a network that came up between two waits ends the second one', async (t) => {
  const { clock, state, watch } = watched()
  const signal = new AbortController().signal
  const first = watch.cameUpWithin(1_000, signal)
  await clock.advance(1_000)
  t.equal(await first, false)
  state.add('route eth0 0100A8C0')
  const second = watch.cameUpWithin(20_000, signal)
  await clock.advance(500)
  t.equal(await second, true)
})

test('a wait ends at once when it is called off', async (t) => {
  const { clock, watch } = watched()
  const stopping = new AbortController()
  const waiting = watch.cameUpWithin(20_000, stopping.signal)
  await clock.advance(300)
  stopping.abort()
  t.equal(await waiting, false)
  t.equal(clock.sleepers, 0)
})

test('an attempt is begun again when a network comes up, and its own failure is passed on', async (t) => {
  const { clock, state, watch } = watched()
  const signal = new AbortController().signal
  const begun: AbortSignal[] = []
  let succeed: (value: string) => void = () => undefined
  const attempt = (own: AbortSignal) => {
    begun.push(own)
    return new Promise<string>((resolve, reject) => {
      succeed = resolve
      own.addEventListener('abort', () => reject(own.reason))
    })
  }
  const done = againWhenNetworkComesUp(watch, attempt, signal)
  await clock.advance(3_000)
  t.equal(begun.length, 1)
  state.add('link wlan0 1')
  await clock.advance(2_000)
  t.equal(begun.length, 2)
  t.ok(begun[0]?.aborted)
  succeed('connected')
  t.equal(await done, 'connected')
  t.equal(clock.sleepers, 0, 'the watch has ended')
  await t.rejects(
    againWhenNetworkComesUp(watch, () => Promise.reject(new Error('refused')), signal),
    { message: 'refused' },
  )
})
