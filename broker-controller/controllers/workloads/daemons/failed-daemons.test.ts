import { test } from 'tap'
import { failedDaemons } from './failed-daemons.ts'

test('each failure on a node doubles the wait, up to a quarter of an hour', async (t) => {
  const failures = failedDaemons()
  t.equal(failures.waitMs('a', 0), 0)
  let nowMs = 0
  const waits: number[] = []
  for (let count = 0; count < 12; count++) {
    failures.deleted('a', nowMs)
    const waitMs = failures.waitMs('a', nowMs)
    waits.push(waitMs)
    nowMs += waitMs
    t.equal(failures.waitMs('a', nowMs), 0)
  }
  t.same(waits.slice(0, 4), [1_000, 2_000, 4_000, 8_000])
  t.equal(waits.at(-1), 900_000)
  t.equal(failures.waitMs('b', nowMs), 0, 'another node does not wait')
  failures.deleted('a', nowMs + 1_800_001)
  t.equal(failures.waitMs('a', nowMs + 1_800_001), 1_000, 'after half an hour it begins again')
})
