import { test } from 'tap'
import { fine, wrong } from './condition-check.ts'
import { type Settled, settle } from './settling.ts'

const hot = wrong('TooHot', 'Too hot')
const hotter = wrong('TooHot', 'Too hot: gpu')
const cool = fine('Cool', 'Cool')
const patience = { riseMs: 20, holdMs: 60 }
/** One reading at each time, and what the condition is after it. */
const after = (...readings: readonly (readonly [ms: number, found: typeof hot | undefined])[]) =>
  readings.reduce<Settled | undefined>((before, [ms, found]) => settle(before, found, ms, patience), undefined)

test('evidence counts when it has lasted, and then until there was none for a while', async (t) => {
  for (const [what, settled, status] of [
    ['nothing is wrong', after([0, cool]), 'False'],
    ['there is no source', after([0, undefined]), undefined],
    ['the first sign', after([0, hot]), 'False'],
    ['signs for a while', after([0, hot], [19, hot]), 'False'],
    ['signs for long enough', after([0, hot], [20, hot]), 'True'],
    ['signs that were interrupted', after([0, hot], [10, cool], [20, hot]), 'False'],
    ['signs again for long enough', after([0, hot], [10, cool], [20, hot], [40, hot]), 'True'],
    ['it has just ended', after([0, hot], [20, hot], [21, cool]), 'True'],
    ['it ended a while ago', after([0, hot], [20, hot], [79, cool]), 'True'],
    ['it ended long enough ago', after([0, hot], [20, hot], [80, cool]), 'False'],
    ['it flaps', after([0, hot], [20, hot], [70, cool], [75, hot], [100, cool]), 'True'],
    ['it flapped and ended', after([0, hot], [20, hot], [70, cool], [75, hot], [135, cool]), 'False'],
    ['the source is gone at first', after([0, hot], [20, hot], [79, undefined]), 'True'],
    ['the source is gone', after([0, hot], [20, hot], [80, undefined]), undefined],
  ] as const) {
    t.equal(settled?.shown.status, status, what)
  }
})

test('the condition shows what was found last, and that signs are not proven yet', async (t) => {
  t.equal(after([0, hot])?.shown.reason, 'TooHotNotProven')
  t.equal(after([0, cool], [1, hot])?.shown.reason, 'Cool', 'what it showed before stays')
  t.equal(after([0, hot], [20, hotter])?.shown.message, 'Too hot: gpu')
  t.equal(after([0, hot], [20, hot], [21, hotter])?.shown.message, 'Too hot: gpu')
  t.equal(after([0, hot], [20, hot], [21, cool])?.shown.message, 'Too hot', 'while it is held')
})

test('without a time to rise the first evidence counts', async (t) => {
  t.equal(settle(undefined, hot, 0, { holdMs: 60 })?.shown.status, 'True')
})
