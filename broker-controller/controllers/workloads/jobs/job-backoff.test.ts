import { test } from 'tap'
import { backoffLeftMs, nextBackoff } from './job-backoff.ts'

const born = Date.parse('2026-01-01T00:00:00Z')
const at = (second: number) => born + second * 1000

test('failures in a row are counted, and the last of them is when the wait begins', async (t) => {
  const once = nextBackoff({ failures: 0 }, [], [at(5)])
  t.same(once, { failures: 1, lastFailureMs: at(5) })
  t.same(nextBackoff(once, [], [at(9), at(7)]), { failures: 3, lastFailureMs: at(9) })
  t.same(nextBackoff(once, [], []), once)
})

test('a success ends the row; what failed after it begins another', async (t) => {
  const row = { failures: 4, lastFailureMs: at(5) }
  t.same(nextBackoff(row, [at(6)], []), { failures: 0 })
  t.same(nextBackoff(row, [at(6)], [at(5), at(6)]), { failures: 0 })
  t.same(nextBackoff(row, [at(6), at(3)], [at(5), at(8), at(7)]), { failures: 2, lastFailureMs: at(8) })
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
  t.equal(left(1, -3600), 10_000, 'a clock that was set back makes it no longer')
})
