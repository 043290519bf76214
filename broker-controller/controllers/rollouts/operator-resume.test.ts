import { test } from 'tap'
import { newResume } from './operator-resume.ts'

const nowMs = Date.parse('2026-01-01T12:00:00Z')

test('a resume counts from when the controller sees it, whatever the date of the operator is', async (t) => {
  for (const resumedAt of ['2026-01-01T12:00:00Z', '2031-05-06T07:08:09Z', '1970-01-01T00:00:01Z']) {
    const resumed = newResume({}, resumedAt, nowMs)
    t.same(resumed, { resumedMs: nowMs, resumedAt })
    t.equal(newResume(resumed ?? {}, resumedAt, nowMs + 60_000), undefined, 'once')
    t.match(newResume(resumed ?? {}, '2026-01-02T00:00:00Z', nowMs + 60_000), { resumedMs: nowMs + 60_000 })
  }
})

test('there is no resume without a date, and none that an earlier version has seen', async (t) => {
  t.equal(newResume({}, undefined, nowMs), undefined)
  t.equal(newResume({}, 'soon', nowMs), undefined)
  const resumedAt = '2026-01-01T10:00:00Z'
  t.equal(newResume({ resumedMs: Date.parse(resumedAt) }, resumedAt, nowMs), undefined)
})
