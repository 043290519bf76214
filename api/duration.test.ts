import { test } from 'tap'
import { formatDuration, parseDuration } from './duration.ts'

test('lengths of time are read as Kubernetes writes them', async (t) => {
  t.equal(parseDuration('24h'), 24 * 3600_000)
  t.equal(parseDuration('1h30m'), 90 * 60_000)
  t.equal(parseDuration('1.5s'), 1500)
  t.equal(parseDuration('500ms'), 500)
  t.equal(parseDuration('5m0s'), 300_000)
  t.equal(parseDuration('7d'), 7 * 24 * 3600_000)
  t.equal(parseDuration('0'), 0)
  for (const wrong of ['', '24', '-1h', 'h', '1h 30m', '1w', '1H', 'soon', '1e3s'])
    t.equal(parseDuration(wrong), undefined, wrong)
})

test('lengths of time are told in two units at most', async (t) => {
  t.equal(formatDuration(24 * 3600_000 - 1000), '23h59m')
  t.equal(formatDuration(76 * 3600_000), '3d4h')
  t.equal(formatDuration(3600_000), '1h')
  t.equal(formatDuration(12_900), '12s')
  t.equal(formatDuration(900), '0s')
  t.equal(formatDuration(-5), '0s')
})
