import { test } from 'tap'
import { parseDurationMs } from './go-duration.ts'

test('durations are read as Go writes them', async (t) => {
  t.equal(parseDurationMs('1h30m'), 5_400_000)
  t.equal(parseDurationMs('1.5s'), 1500)
  t.equal(parseDurationMs('.5m'), 30_000)
  t.equal(parseDurationMs('-2s'), -2000)
  t.equal(parseDurationMs('+300ms'), 300)
  t.equal(parseDurationMs('2us'), 0.002)
  t.equal(parseDurationMs('0'), 0)
})

test('an invalid duration is refused: a unit is missing, unknown, or the number is too large', async (t) => {
  for (const text of ['', '5', 's', '1d', '1h 2m', '--1s', '.s', '9999999999h', '1'.repeat(100)]) {
    t.equal(parseDurationMs(text), undefined, text)
  }
})
