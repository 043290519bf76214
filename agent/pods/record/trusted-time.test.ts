import { test } from 'tap'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { elapsedMs, systemTime } from './trusted-time.ts'

test('what runs is not older than the boot, and nothing is trusted without a date', async (t) => {
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

test('by a correct clock the age of what runs is not bounded', async (t) => {
  const clock = fakeClock()
  const time = systemTime(clock)
  t.equal(time.nowMs(), clock.wallMs())
  t.equal(elapsedMs(new Date(clock.wallMs() - 86_400_000).toISOString(), time, true), 86_400_000)
})
