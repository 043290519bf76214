import { setImmediate as immediate } from 'node:timers/promises'
import { test } from 'tap'
import { inTurns } from './turns.ts'

test('waiting readers are resumed in order, a few in each turn of the event loop', async (t) => {
  const turn = inTurns(3)
  const resumed: number[] = []
  for (let i = 0; i < 7; i++) turn(() => void resumed.push(i))
  t.same(resumed, [], 'none before the changes that are being made are complete')
  await immediate()
  t.same(resumed, [0, 1, 2])
  turn(() => void resumed.push(7))
  await immediate()
  t.same(resumed, [0, 1, 2, 3, 4, 5])
  await immediate()
  await immediate()
  t.same(resumed, [0, 1, 2, 3, 4, 5, 6, 7])
  turn(() => void resumed.push(8))
  await immediate()
  t.equal(resumed.at(-1), 8)
})
