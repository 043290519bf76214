import { test } from 'tap'
import { backoffMs, connectionFailures } from './backoff.ts'

const settings = { firstMs: 200, maxMs: 30_000 }

test('the wait may be twice as long after every failure, up to a limit', async (t) => {
  const longest = (failures: number) => backoffMs(failures, settings, () => 1)
  t.same([0, 1, 2, 7, 8, 5000].map(longest), [200, 400, 800, 25_600, 30_000, 30_000])
})

test('the wait is spread over its whole length', async (t) => {
  t.equal(
    backoffMs(3, settings, () => 0),
    0,
  )
  t.equal(
    backoffMs(3, settings, () => 0.5),
    800,
  )
})

test('failed attempts count until one succeeds, and short connections until one lasts', async (t) => {
  const failures = connectionFailures(10_000)
  const counts: number[] = []
  const after = (what: () => void) => {
    what()
    counts.push(failures.count)
  }
  after(failures.refused)
  after(failures.refused)
  after(() => failures.ended(9_999))
  after(failures.refused)
  after(() => failures.ended(0))
  after(() => failures.ended(10_000))
  after(() => failures.ended(0))
  after(failures.refused)
  after(failures.reset)
  t.same(counts, [1, 2, 1, 2, 2, 0, 1, 2, 0])
})
