import { test } from 'tap'
import { formatDuration, goDuration, parseDuration } from './duration.ts'

test('spans of time are read as Kubernetes writes them', async (t) => {
  const spans = {
    '10s': 10_000,
    '5m0s': 300_000,
    '1m30s': 90_000,
    '1h': 3_600_000,
    '250ms': 250,
    '1.5s': 1_500,
    '0': 0,
    '0s': 0,
  }
  for (const [text, ms] of Object.entries(spans)) t.equal(parseDuration(text), ms, text)
})

test('an invalid duration is refused, not guessed', async (t) => {
  for (const text of ['', '10', '10 s', '-5s', 's', '5x', '1m 30s', '..s', '1.s.'])
    t.equal(parseDuration(text), undefined, text)
})

test('a duration is written in its two largest units', async (t) => {
  t.equal(formatDuration(24 * 3600_000 - 1000), '23h59m')
  t.equal(formatDuration(76 * 3600_000), '3d4h')
  t.equal(formatDuration(24 * 3600_000), '1d')
  t.equal(formatDuration(3600_000 + 5_000), '1h')
  t.equal(formatDuration(12_900), '12s')
  t.equal(formatDuration(900), '0s')
  t.equal(formatDuration(-5), '0s')
})

test('spans of time are written as Go writes them', async (t) => {
  const written = [0, 1, 999, 1_000, 1_500, 59_999, 60_000, 300_000, 3_600_000, 14_400_500, 90_061_000, -90_000]
  t.same(written.map(goDuration), [
    '0s',
    '1ms',
    '999ms',
    '1s',
    '1.5s',
    '59.999s',
    '1m0s',
    '5m0s',
    '1h0m0s',
    '4h0m0.5s',
    '25h1m1s',
    '-1m30s',
  ])
})
