import { test } from 'tap'
import { fakeClock } from '../testing/fake-clock.ts'
import { finished, type Steps, slices, sortedInSteps } from './steps.ts'

function* counting(to: number, onStep: (step: number) => void = () => undefined): Steps<number> {
  for (let step = 1; step <= to; step++) {
    onStep(step)
    yield
  }
  return to
}

test('all steps at once give the result', async (t) => {
  t.equal(finished(counting(3)), 3)
})

test('many items are sorted in steps as they are in one, and equal ones keep their order', async (t) => {
  for (const length of [0, 1, 255, 256, 257, 2_000, 5_001]) {
    const items = Array.from({ length }, (_, at) => ({ at, rank: (at * 7919) % 97 }))
    const compare = (a: { readonly rank: number }, b: { readonly rank: number }) => a.rank - b.rank
    t.same(finished(sortedInSteps(items, compare)), items.toSorted(compare), `${length} items`)
  }
})

test('a step of a sort is short, however many items there are', async (t) => {
  let [compared, most] = [0, 0]
  const items = Array.from({ length: 30_000 }, (_, at) => String((at * 7919) % 30_000))
  const compare = (a: string, b: string) => {
    compared++
    return a < b ? -1 : 1
  }
  const steps = sortedInSteps(items, compare)
  while (steps.next().done !== true) {
    most = Math.max(most, compared)
    compared = 0
  }
  t.ok(most < 5_000, `${most} comparisons in a step`)
})

test('other work is done after each slice of long work, and not within one', async (t) => {
  let nowMs = 0
  const done: string[] = []
  const work = slices(10, { monotonicMs: () => nowMs })
  const steps = counting(4, (step) => {
    nowMs += 5
    done.push(`step ${step}`)
    if (step % 2 === 1) setImmediate(() => done.push('other'))
  })
  t.equal(await work.run(steps), 4)
  t.same(done, ['step 1', 'step 2', 'other', 'step 3', 'step 4', 'other'])
})

test('work that begins after a pause has a whole slice', async (t) => {
  const clock = fakeClock()
  const work = slices(10, clock)
  await clock.advance(60_000)
  work.begin()
  let others = 0
  setImmediate(() => others++)
  await work.run(counting(3))
  t.equal(others, 0)
})
