import { test } from 'tap'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { failedPods } from './failed-pods.ts'

test('each failure on a node doubles the wait, up to a quarter of an hour', async (t) => {
  const clock = fakeClock()
  const failures = failedPods(clock, 15 * 60_000)
  t.equal(failures.waitMs('a'), 0)
  const waits: number[] = []
  for (let count = 0; count < 12; count++) {
    failures.deleted('a')
    const waitMs = failures.waitMs('a')
    waits.push(waitMs)
    await clock.advance(waitMs - 1)
    t.equal(failures.waitMs('a'), 1)
    await clock.advance(1)
    t.equal(failures.waitMs('a'), 0)
  }
  t.same(waits.slice(0, 4), [1_000, 2_000, 4_000, 8_000])
  t.equal(waits.at(-1), 900_000)
  t.equal(failures.waitMs('b'), 0, 'another node does not wait')
})

test('after half an hour without a failure the waits begin again', async (t) => {
  const clock = fakeClock()
  const failures = failedPods(clock, 15 * 60_000)
  for (let count = 0; count < 3; count++) failures.deleted('a')
  await clock.advance(1_799_999)
  failures.deleted('a')
  t.equal(failures.waitMs('a'), 8_000)
  await clock.advance(1_800_000)
  t.equal(failures.waitMs('a'), 0)
  failures.deleted('a')
  t.equal(failures.waitMs('a'), 1_000)
})
