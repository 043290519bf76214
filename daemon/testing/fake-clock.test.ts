import { test } from 'tap'
import { yieldTurn } from '../limits/turn-limit.ts'
import { fakeClock } from './fake-clock.ts'

/** Work that takes this long, and waits for nothing. */
function busy(ms: number): void {
  for (const until = performance.now() + ms; performance.now() < until; );
}

test('work that leaves long turns is done when the time has passed', async (t) => {
  const clock = fakeClock()
  let steps = 0
  const work = async () => {
    await clock.sleep(1_000)
    for (; steps < 30; steps++) {
      await yieldTurn()
      busy(30)
    }
  }
  void work()
  await clock.advance(999)
  t.equal(steps, 0)
  await clock.advance(1)
  t.equal(steps, 30)
})
