import { test } from 'tap'
import { fakeClock } from '../testing/fake-clock.ts'
import { finished, type Steps, slices } from './steps.ts'

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
