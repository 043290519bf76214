import { test } from 'tap'
import { rfc3339, rfc3339Micro, systemClock } from './clock.ts'
import { fakeClock } from './testing/fake-clock.ts'

test('instants are written as Kubernetes reads them', async (t) => {
  const at = Date.parse('2026-01-02T03:04:05.678Z')
  t.equal(rfc3339(at), '2026-01-02T03:04:05Z')
  t.equal(rfc3339Micro(at), '2026-01-02T03:04:05.678000Z')
})

test('a sleep ends at its time, or when it is called off', async (t) => {
  const before = systemClock.monotonicMs()
  await systemClock.sleep(5)
  t.ok(systemClock.monotonicMs() - before >= 4)
  const abort = new AbortController()
  const long = systemClock.sleep(3_600_000, abort.signal)
  abort.abort()
  await long
  await systemClock.sleep(3_600_000, abort.signal)
  t.pass('neither waited')
})

test('a sleep of a year is no short one', async (t) => {
  const abort = new AbortController()
  let hasEnded = false
  const year = systemClock.sleep(365 * 86_400_000, abort.signal).then(() => {
    hasEnded = true
  })
  await systemClock.sleep(20)
  t.notOk(hasEnded)
  abort.abort()
  await year
})

test('the clock of tests wakes sleepers in order, each before the next', async (t) => {
  const clock = fakeClock()
  const woken: [string, number][] = []
  const sleeper = async (name: string, ms: number, again = 0) => {
    await clock.sleep(ms)
    woken.push([name, clock.monotonicMs()])
    if (again > 0) await sleeper(name, again)
  }
  const all = Promise.all([sleeper('slow', 300), sleeper('twice', 100, 100), sleeper('soon', 100)])
  await clock.advance(250)
  t.same(woken, [
    ['twice', 100],
    ['soon', 100],
    ['twice', 200],
  ])
  t.equal(clock.monotonicMs(), 250)
  t.equal(clock.sleepers, 1)
  await clock.advance(50)
  await all
  clock.setWall(0)
  t.equal(clock.monotonicMs(), 300, 'a new date moves no time')
  t.equal(clock.wallMs(), 0)
})
