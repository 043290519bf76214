import { test } from 'tap'
import { fakeClock } from '../testing/fake-clock.ts'
import { loopWatch } from './loop-watch.ts'

test('a loop that sleeps long lives, one that is busy long hangs', async (t) => {
  const clock = fakeClock()
  const watch = loopWatch(clock, 60_000)
  const own = watch.clockFor('status')
  const slept = own.sleep(3600_000)
  await clock.advance(3599_000)
  t.same(watch.stuck(), [])
  await clock.advance(1_000)
  await slept
  await clock.advance(60_001)
  t.same(watch.stuck(), ['status'])
  void own.sleep(1_000)
  t.same(watch.stuck(), [], 'it came back')
})
