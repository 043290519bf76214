import { test } from 'tap'
import { elapsedMs } from './trusted-time.ts'

test('what runs is no older than the boot, and nothing is known without a date', async (t) => {
  const at = (now: string | undefined) => ({
    nowMs: () => (now === undefined ? undefined : Date.parse(now)),
    uptimeMs: () => 60_000,
  })
  const start = '2026-01-01T00:00:00Z'
  t.equal(elapsedMs(start, at('2026-01-01T00:00:30Z'), true), 30_000)
  t.equal(elapsedMs('1970-01-01T00:00:00Z', at('2026-01-01T00:00:30Z'), true), 60_000, 'its date was wrong')
  t.equal(elapsedMs(start, at('2026-01-01T01:00:00Z'), false), 3600_000, 'what has ended may be of an earlier boot')
  t.equal(elapsedMs(start, at('2025-01-01T00:00:00Z'), true), 0)
  t.equal(elapsedMs('', at('2025-01-01T00:00:00Z'), true), 0)
  t.equal(elapsedMs(start, at(undefined), true), undefined)
})
