import { test } from 'tap'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { watchClock } from './clock-jumps.ts'

test('a date that jumps is noticed within ten seconds, one that is corrected slowly is not', async (t) => {
  const clock = fakeClock()
  const stop = new AbortController()
  let jumps = 0
  const running = watchClock(clock, () => jumps++).run(stop.signal)
  await clock.advance(60_000)
  t.equal(jumps, 0)
  for (const ms of [86_400_000, -86_400_000, 1500]) {
    const before = jumps
    clock.setWall(clock.wallMs() + ms)
    await clock.advance(10_000)
    t.equal(jumps, before + 1, `${ms} ms`)
  }
  clock.setWall(clock.wallMs() + 500)
  await clock.advance(60_000)
  t.equal(jumps, 3)
  stop.abort()
  await clock.settle()
  await running
})
