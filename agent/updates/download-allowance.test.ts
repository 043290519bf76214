import { test } from 'tap'
import { type DownloadFacts, type DownloadRules, downloadAllowance, spentWith } from './download-allowance.ts'

const at = (time: string) => Date.parse(`2026-01-02T${time}Z`)
const day = Math.floor(at('00:00') / 86_400_000)
const night = { fromMinute: 120, toMinute: 300 }
const overMidnight = { fromMinute: 23 * 60, toMinute: 60 }
const all = Number.MAX_SAFE_INTEGER

type Row = readonly [rules: Partial<DownloadRules>, facts: Partial<DownloadFacts>, expected: number | RegExp]
const rows: { readonly [sentence: string]: Row } = {
  'without rules all may be downloaded': [{}, {}, all],
  'a metered link waits for a budget': [{ isMetered: true }, {}, /updates\.bytesPerDay/],
  'a metered link has what its budget allows': [{ isMetered: true, bytesPerDay: 100 }, {}, 100],
  'what was downloaded on the day is taken off': [{ bytesPerDay: 100 }, { spent: { day, bytes: 40 } }, 60],
  'a budget that is used up waits': [{ bytesPerDay: 100 }, { spent: { day, bytes: 100 } }, /100 bytes/],
  'on the next day it is whole again': [{ bytesPerDay: 100 }, { spent: { day: day - 1, bytes: 100 } }, 100],
  'a clock that was ahead and is right now has its budget': [
    { bytesPerDay: 100 },
    { spent: { day: day + 900, bytes: 100 } },
    100,
  ],
  'before the window nothing is downloaded': [{ window: night }, { nowMs: at('01:59') }, /opens at 02:00 UTC/],
  'in the window all is': [{ window: night }, { nowMs: at('02:00') }, all],
  'after the window nothing is': [{ window: night }, { nowMs: at('05:00') }, /opens at 02:00 UTC/],
  'a window over midnight is open before it': [{ window: overMidnight }, { nowMs: at('23:30') }, all],
  'a window over midnight is open after it': [{ window: overMidnight }, { nowMs: at('00:59') }, all],
  'a window over midnight is closed at noon': [{ window: overMidnight }, { nowMs: at('12:00') }, /opens at 23:00/],
  'without a date the window is closed': [{ window: night }, { nowMs: undefined, uptimeMs: 86_399_999 }, /date/],
  'without a date for a day it is open': [{ window: night }, { nowMs: undefined, uptimeMs: 86_400_000 }, all],
}
for (const [sentence, [rules, facts, expected]] of Object.entries(rows)) {
  test(sentence, async (t) => {
    const given = { nowMs: at('10:00'), uptimeMs: 0, spent: undefined, ...facts }
    const allowed = downloadAllowance({ isMetered: false, ...rules }, given)
    if (typeof expected === 'number') t.same(allowed, { may: 'download', bytes: expected })
    else t.match(allowed, { may: 'wait', reason: expected })
  })
}

test('bytes are added to those of the day', async (t) => {
  const facts = { nowMs: at('10:00'), uptimeMs: 0 }
  t.same(spentWith({ ...facts, spent: { day, bytes: 5 } }, 7), { day, bytes: 12 })
  t.same(spentWith({ ...facts, spent: { day: day - 1, bytes: 5 } }, 7), { day, bytes: 7 })
  t.same(spentWith({ ...facts, nowMs: undefined, spent: undefined }, 7), { day: 0, bytes: 7 })
})
