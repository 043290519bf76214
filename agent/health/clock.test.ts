import { test } from 'tap'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { type ClockReading, clockSynchronized, controllerTime, likelyDate } from './clock.ts'

const up: ClockReading = { synchronized: undefined, uptimeMs: 3_600_000, controller: undefined }
const exactly = (aheadMs: number) => ({ aheadMs, isExact: true })
const atLeast = (aheadMs: number) => ({ aheadMs, isExact: false })

test('a machine without a source of time has no such condition', async (t) => {
  t.equal(clockSynchronized(up), undefined)
  t.equal(clockSynchronized({ ...up, controller: atLeast(5_000_000) }), undefined, 'an old message proves nothing')
})

test('a clock that no time server ever set becomes a condition after a while', async (t) => {
  t.match(clockSynchronized({ ...up, synchronized: true }), { status: 'False', reason: 'ClockSynchronized' })
  t.match(clockSynchronized({ ...up, synchronized: false }), { status: 'True', reason: 'ClockNotSynchronized' })
  t.match(clockSynchronized({ ...up, synchronized: false, uptimeMs: 60_000 }), { reason: 'ClockNotSynchronizedYet' })
})

test('a clock behind the earliest possible time becomes a condition, with or without a controller', async (t) => {
  t.match(clockSynchronized({ ...up, behindKnownMs: 56 * 365 * 86_400_000 }), {
    status: 'True',
    reason: 'ClockBehindKnownTime',
    message: /more than a year behind/,
  })
  t.equal(clockSynchronized({ ...up, behindKnownMs: 5_000 }), undefined)
})

test("a clock that differs from the controller's becomes a condition, which names the difference", async (t) => {
  t.match(clockSynchronized({ ...up, controller: exactly(29_000) }), { status: 'False' })
  t.match(clockSynchronized({ ...up, controller: exactly(31_000) }), {
    status: 'True',
    reason: 'ClockAheadOfController',
    message: /more than 30 seconds ahead/,
  })
  t.match(clockSynchronized({ ...up, synchronized: true, controller: exactly(-7_300_000) }), {
    reason: 'ClockBehindController',
    message: /more than an hour behind/,
  })
  t.match(clockSynchronized({ ...up, controller: atLeast(-50 * 365 * 86_400_000) }), {
    reason: 'ClockBehindController',
    message: /more than a year behind/,
  })
})

test('what an old message proves is that it is not earlier now, and a clock that is set is right at once', async (t) => {
  const clock = fakeClock(0)
  const time = controllerTime({ sinceBootMs: clock.monotonicMs, wallMs: clock.wallMs })
  t.equal(time.difference(), undefined)
  time.observe(Date.parse('2026-05-05T10:00:00Z'), false)
  await clock.advance(60_000)
  t.match(time.difference(), { isExact: false, aheadMs: -Date.parse('2026-05-05T10:00:00Z') })
  clock.setWall(Date.parse('2026-05-05T10:01:02Z'))
  t.match(time.difference(), { aheadMs: 2_000 })
  time.observe(Date.parse('2026-05-05T10:01:01Z'), true)
  t.same(time.difference(), { aheadMs: 1_000, isExact: true })
})

test('the date is that of a time server or the controller, else the clock where that is plausible', async (t) => {
  const facts = { wallMs: 10_000_000, earliestMs: 9_000_000, synchronized: undefined, controller: undefined }
  t.equal(likelyDate(facts), 10_000_000)
  t.equal(likelyDate({ ...facts, wallMs: 0 }), undefined, 'in the past')
  t.equal(likelyDate({ ...facts, wallMs: 10 * 365 * 86_400_000 }), undefined, 'years ahead')
  t.equal(likelyDate({ ...facts, synchronized: false }), undefined, 'a time server is still waited for')
  t.equal(likelyDate({ ...facts, synchronized: true, wallMs: 0 }), 0)
  t.equal(likelyDate({ ...facts, wallMs: 0, controller: exactly(-9_500_000) }), 9_500_000)
  t.equal(likelyDate({ ...facts, wallMs: 0, controller: atLeast(-9_500_000) }), undefined)
  for (const aheadMs of [2_000, -2_000]) t.equal(likelyDate({ ...facts, controller: exactly(aheadMs) }), 10_000_000)
  t.equal(likelyDate({ ...facts, controller: exactly(2_001) }), 9_997_999)
  t.equal(likelyDate({ ...facts, controller: exactly(-2_001) }), 10_002_001)
})
