import { test } from 'tap'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { checkpointWriter } from './pod-checkpoint.ts'

test('the copy follows within ten minutes, and no more often however much changes', async (t) => {
  const clock = fakeClock()
  const made = { saves: 0, copies: 0 }
  const checkpoint = {
    load: async () => undefined,
    save: async () => void made.saves++,
    keepCopy: async () => void made.copies++,
  }
  const remembered = { desired: { epoch: 'one', version: 1, pods: [] }, endings: {} }
  const keeping = checkpointWriter({ checkpoint, clock, random: () => 0.5, log: quietLog(t) }, () => remembered)
  const stopping = new AbortController()
  const running = keeping.run(stopping.signal)
  await clock.advance(610_000)
  t.same(made, { saves: 0, copies: 1 }, 'of what the life before left')
  await clock.advance(7200_000)
  t.equal(made.copies, 1)
  for (let minute = 0; minute < 60; minute++) {
    keeping.wake()
    await clock.advance(60_000)
  }
  t.equal(made.saves, 60)
  t.ok(made.copies >= 5 && made.copies <= 7, `${made.copies} copies`)
  await clock.advance(600_000)
  const { copies } = made
  await clock.advance(7200_000)
  t.equal(made.copies, copies)
  keeping.wake()
  stopping.abort()
  await running
  t.same(made, { saves: 61, copies }, 'who stops writes what is new, and that once')
})
