import { test } from 'tap'
import { type BackoffRecord, backoffLeftMs, nextBackoff, noticedAtMs } from './job-backoff.ts'

const born = Date.parse('2026-01-01T00:00:00Z')
const at = (second: number) => born + second * 1000
const next = (record: BackoffRecord, successes: readonly number[], failures: readonly number[], second = 100) =>
  nextBackoff(record, { successes, failures }, at(second))

test('failures in a row are counted, and the last of them is when the wait begins', async (t) => {
  const once = next({ failures: 0 }, [], [at(5)])
  t.same(once, { failures: 1, lastFailureMs: at(5) })
  t.same(next(once, [], [at(9), at(7)]), { failures: 3, lastFailureMs: at(9) })
  t.same(next(once, [], []), once)
})

test('a success ends the row; what failed after it begins another', async (t) => {
  const row = { failures: 4, lastFailureMs: at(5) }
  t.same(next(row, [at(6)], []), { failures: 0 })
  t.same(next(row, [at(6)], [at(5), at(6)]), { failures: 0 })
  t.same(next(row, [at(6), at(3)], [at(5), at(8), at(7)]), { failures: 2, lastFailureMs: at(8) })
})

test('the wait doubles from ten seconds to ten minutes', async (t) => {
  const left = (failures: number, second: number) => backoffLeftMs({ failures, lastFailureMs: at(0) }, at(second))
  t.equal(left(0, 0), 0)
  t.equal(left(1, 0), 10_000)
  t.equal(left(1, 9), 1000)
  t.equal(left(1, 11), 0)
  t.equal(left(2, 0), 20_000)
  t.equal(left(6, 0), 320_000)
  t.equal(left(7, 0), 600_000)
  t.equal(left(5000, 0), 600_000)
})

test('times of the future end no later than others: those of a node, or from before the date was set back', async (t) => {
  const ahead = next({ failures: 0 }, [], [at(5_000)])
  t.same(ahead, { failures: 1, lastFailureMs: at(100) })
  t.equal(backoffLeftMs(ahead, at(110)), 0)
  t.same(next({ failures: 1, lastFailureMs: at(5_000) }, [], []), { failures: 1, lastFailureMs: at(100) })

  t.equal(noticedAtMs(undefined, at(90), at(100)), undefined)
  t.equal(noticedAtMs(undefined, at(5_000), at(100)), at(100))
  t.equal(noticedAtMs(at(100), at(5_000), at(110)), at(100), 'the wait does not begin again')
  t.equal(noticedAtMs(at(100), at(5_000), at(6_000)), at(100), 'nor when the time has come')
  t.equal(noticedAtMs(at(100), at(5_000), at(10)), at(10), 'set back again')
})
