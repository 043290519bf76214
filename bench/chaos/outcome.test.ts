import { test } from 'tap'
import { allRun, type ContainerRun, outcomeOf, type Round, summaryOf } from './outcome.ts'

const run = (role: string, node: string, firstS: number, lastS: number): ContainerRun => ({ role, node, firstS, lastS })
/** Two replicas and one container with data, of which machine `a` has one each; the fault is from 100 to 160. */
const round = (runs: readonly ContainerRun[], more: Partial<Round> = {}): Round => ({
  ...{ replicas: 2, withData: ['data-0'], victim: 'a', startS: 100, endS: 160, lostRecords: 0 },
  runs,
  ...more,
})
const other = run('web', 'b', 10, 160)

test('a fault that ends no container has no effect', async (t) => {
  t.same(outcomeOf(round([run('web', 'a', 10, 160), other, run('data-0', 'a', 10, 160)])), {
    ...{ allRanS: 0, endedElsewhere: 0, moved: 0, ranTwice: 0, lostRecords: 0 },
  })
})

test('containers that come back on their machine have not moved', async (t) => {
  const runs = [
    ...[run('web', 'a', 10, 101), run('web', 'a', 120, 160), other],
    ...[run('data-0', 'a', 10, 101), run('data-0', 'a', 125, 160)],
  ]
  const { allRanS = 0, ...counts } = outcomeOf(round(runs, { lostRecords: 3 }))
  t.equal(Math.round(allRanS), 25)
  t.same(counts, { endedElsewhere: 0, moved: 0, ranTwice: 0, lostRecords: 3 })
})

test('a replica that moves runs as soon as the other machine has it', async (t) => {
  const data = run('data-0', 'b', 10, 160)
  const moved = outcomeOf(round([run('web', 'a', 10, 100), run('web', 'b', 130, 160), other, data]))
  t.equal(Math.round(moved.allRanS ?? 0), 30)
  t.equal(moved.moved, 1)
})

test('what the table must show as a fault', async (t) => {
  const web = [run('web', 'a', 10, 160), other]
  const twice = outcomeOf(round([...web, run('data-0', 'a', 10, 130), run('data-0', 'b', 120, 160)]))
  t.equal(twice.ranTwice, 1)
  const ended = outcomeOf(round([run('web', 'a', 10, 160), run('web', 'b', 10, 110), run('data-0', 'a', 10, 160)]))
  t.equal(ended.endedElsewhere, 1)
  t.equal(ended.allRanS, undefined, 'a replica is missing at the end')
  const before = outcomeOf(round([...web, run('web', 'b', 10, 99), run('data-0', 'a', 10, 160)]))
  t.equal(before.endedElsewhere, 0, 'what ended before the fault does not count')
  t.notOk(allRun(round([run('web', 'a', 10, 110), other, run('data-0', 'a', 10, 160)]), 160))
})

test('the rounds of a fault are one row', async (t) => {
  const of = (allRanS: number | undefined, moved = 0) => ({
    allRanS,
    endedElsewhere: 1,
    moved,
    ranTwice: 0,
    lostRecords: 2,
  })
  t.same(summaryOf([of(10, 2), of(30.04), of(20), of(undefined)]), ['4', '20.0 s; 30.0 s', '1', '4', '2', '0', '8'])
  t.same(summaryOf([of(undefined)])[1], '')
})
