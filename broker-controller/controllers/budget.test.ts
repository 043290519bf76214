/**
 * No controller holds the event loop for more than 20 ms, over the largest objects that the API accepts and very many pods: what it does is
 * done in everybody's turn, also where one user's object makes it work.
 */
import { test } from 'tap'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { turnCost } from '../../daemon/testing/turn-budget.ts'
import { controllerCase, controllerCases } from '../testing/budget/controller-cases.ts'
import { podCountCases } from '../testing/budget/pod-count-cases.ts'
import { rolloutCases } from '../testing/budget/rollout-cases.ts'

const budgetMs = 20

test('no controller holds the event loop for longer than its budget', { timeout: 900_000 }, async (t) => {
  const above: string[] = []
  const options = { log: quietLog(t), pods: 3_000 }
  const others = [...podCountCases, ...rolloutCases].map((one) => controllerCase(one, options))
  for (const one of [...controllerCases(options), ...others]) {
    const { ms } = await turnCost(one, { enoughMs: budgetMs, runs: 9 })
    await one.end()
    t.comment(`${one.what}: ${ms.toFixed(1)} ms`)
    if (ms > budgetMs) above.push(`${one.what}: ${ms.toFixed(0)} ms`)
  }
  t.same(above, [])
})
