import { getEventListeners } from 'node:events'
import { readFile } from 'node:fs/promises'
import { test } from 'tap'
import { compareInstants, rfc3339, rfc3339Micro, sinceBootMs, systemClock, wholeSeconds } from './clock.ts'
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

test('a sleep of a year is not cut short', async (t) => {
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

test('the clock of tests waits for files, also where the machine stood still meanwhile', async (t) => {
  let reads = 0
  const reading = Promise.resolve().then(async () => {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_500)
    for (; reads < 50; reads++) await readFile('/proc/uptime')
  })
  await fakeClock().settle()
  t.equal(reads, 50)
  await reading
})

test('what others wrote as an instant is read in whole seconds, or is invalid', async (t) => {
  t.equal(wholeSeconds('2026-01-02T03:04:05.678Z'), '2026-01-02T03:04:05Z')
  t.equal(wholeSeconds('2026-01-02T04:04:05+01:00'), '2026-01-02T03:04:05Z')
  t.equal(wholeSeconds('yesterday'), undefined)
  t.equal(wholeSeconds(undefined), undefined)
})

test('instants sort by time, and equal ones keep their order', async (t) => {
  const [early, late] = ['2026-01-02T03:04:05Z', '2026-01-02T03:04:06Z']
  t.same([late, early, late].sort(compareInstants), [early, late, late])
  t.equal(compareInstants(early, early), 0)
  t.equal(compareInstants(early, late), -1)
  t.equal(compareInstants(late, early), 1)
})

test('the clock of the machine has its date, and the time since it was started', async (t) => {
  t.ok(Math.abs(systemClock.wallMs() - Date.now()) < 5_000)
  const before = sinceBootMs()
  const uptimeMs = Number((await readFile('/proc/uptime', 'utf8')).split(' ')[0]) * 1000
  t.ok(uptimeMs > before - 5_000 && uptimeMs < sinceBootMs() + 5_000)
})

test('a sleep leaves no listener behind, however it ends', async (t) => {
  const abort = new AbortController()
  await systemClock.sleep(1, abort.signal)
  t.same(getEventListeners(abort.signal, 'abort'), [])
  const long = systemClock.sleep(3_600_000, abort.signal)
  t.equal(getEventListeners(abort.signal, 'abort').length, 1)
  abort.abort()
  await long
  t.same(getEventListeners(abort.signal, 'abort'), [])
})
