import { test } from 'tap'
import { frameBudget } from './frame-budget.ts'

test('a budget allows a burst, and as much per second after it', async (t) => {
  const budget = frameBudget({ burst: 3, perSecond: 2 })
  const spent = (...times: number[]) => times.map((nowMs) => budget.spend(nowMs))
  t.same(spent(5000, 5000, 5000, 5000), [true, true, true, false])
  t.same(spent(5499, 5500, 5500, 6000), [false, true, false, true])
  t.same(spent(60_000, 60_000, 60_000, 60_000), [true, true, true, false], 'it holds no more than the burst')
})
