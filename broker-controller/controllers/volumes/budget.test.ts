/** No controller of volumes holds the event loop for more than 20 ms. */
import { test } from 'tap'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { turnCost } from '../../../daemon/testing/turn-budget.ts'
import { volumeCases } from '../../testing/budget/volume-cases.ts'

const budgetMs = 20

test('claims that wait beside thousands of volumes, or are deleted beside thousands of pods, keep the event loop free', {
  timeout: 900_000,
}, async (t) => {
  const above: string[] = []
  for (const one of volumeCases(quietLog(t))) {
    const { ms } = await turnCost(one, { enoughMs: budgetMs })
    await one.end()
    t.comment(`${one.what}: ${ms.toFixed(1)} ms`)
    if (ms > budgetMs) above.push(`${one.what}: ${ms.toFixed(0)} ms`)
  }
  t.same(above, [])
})
