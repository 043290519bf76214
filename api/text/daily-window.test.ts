import { test } from 'tap'
import { isWindowOpen, readDailyWindow, windowOpensMs, windowStartText } from './daily-window.ts'

const at = (time: string) => Date.parse(`2026-01-02T${time}Z`)
const night = { fromMinute: 120, toMinute: 300 }
const overMidnight = { fromMinute: 1380, toMinute: 60 }

test('a window is two different times of day', async (t) => {
  t.same(readDailyWindow('02:00-05:00'), night)
  t.same(readDailyWindow('23:00-01:00'), overMidnight)
  for (const written of ['', '02:00', '2:00-5:00', '02:00-02:00', '24:00-01:00', '02:60-03:00', ' 02:00-05:00'])
    t.equal(readDailyWindow(written), undefined, written)
})

test('a window is open from its beginning up to its end, also over midnight', async (t) => {
  t.same(
    ['01:59', '02:00', '04:59', '05:00'].map((time) => isWindowOpen(night, at(time))),
    [false, true, true, false],
  )
  t.same(
    ['22:59', '23:00', '00:59', '01:00'].map((time) => isWindowOpen(overMidnight, at(time))),
    [false, true, true, false],
  )
})

test('a closed window opens later on the same day, or on the next', async (t) => {
  t.equal(windowOpensMs(night, at('01:00')), at('02:00'))
  t.equal(windowOpensMs(night, at('05:00')), at('02:00') + 86_400_000)
  t.equal(windowOpensMs(night, at('02:00')), at('02:00') + 86_400_000)
  t.equal(windowStartText(night), '02:00')
})
