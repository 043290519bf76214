/** No decision of the scheduler holds the event loop for more than 20 ms, whatever pods the API accepts or has stored. */
import { test } from 'tap'
import { turnsAboveBudget } from '../../daemon/testing/turn-budget.ts'
import { schedulerCases } from '../testing/budget/scheduler-cases.ts'

const mostMs = 20

test('no decision on a pod holds the event loop for longer than its budget', async (t) => {
  const { count, above } = await turnsAboveBudget(schedulerCases(), mostMs)
  t.same(above, [])
  t.ok(count > 15, `${count} decisions`)
})
