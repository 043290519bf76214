import { test } from 'tap'
import { returnGrace } from './return-grace.ts'

const startedMs = 1_000
const at = (second: number) => startedMs + second * 1_000

test('grace is given for as long as twenty nodes come back in each period', async (t) => {
  const grace = returnGrace(startedMs)
  const left = [1_000, 900, 880, 861, 800, 0, 0]
  t.same(
    left.map((awaited, index) => grace.isGiven(awaited, at(5 * index))),
    [false, true, true, false, true, true, false],
  )
})

test('once all came back nothing more is given, nor ten minutes after the start', async (t) => {
  const grace = returnGrace(startedMs)
  t.notOk(grace.isOver(at(600)))
  t.ok(grace.isOver(at(601)))
  grace.isGiven(30, at(5))
  t.ok(grace.isGiven(0, at(10)))
  t.ok(grace.isOver(at(10)))
  t.notOk(grace.isGiven(30, at(15)), 'later nodes do not count as earlier ones')

  const slow = returnGrace(startedMs)
  slow.isGiven(1_000, at(595))
  t.ok(slow.isGiven(980, at(600)))
  t.notOk(slow.isGiven(960, at(601)))
})
