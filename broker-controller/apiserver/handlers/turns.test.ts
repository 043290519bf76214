import { setImmediate as immediate } from 'node:timers/promises'
import { test } from 'tap'
import { inTurns, pauses } from './turns.ts'

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

test('long work lets other work be done at its pauses, and short work does not wait', async (t) => {
  let nowMs = 0
  const pause = pauses({ monotonicMs: () => nowMs })
  const done: string[] = []
  const step = async (name: string, tookMs: number) => {
    nowMs += tookMs
    setImmediate(() => done.push('other'))
    await pause()
    done.push(name)
  }
  await step('short', 9)
  t.same(done, ['short'])
  await step('long', 1)
  t.same(done, ['short', 'other', 'other', 'long'])
  await step('short again', 9)
  t.same(done.at(-1), 'short again', 'the time is counted from the last pause')
  await immediate()
  t.equal(done.length, 6)
})
