/**
 * No request holds the event loop for more than 100 ms. The objects here are costly by what their fields mean together; `bench/budget.ts`
 * measures each list and map of each kind, with each verb, which takes minutes.
 */
import { test } from 'tap'
import { turnsAboveBudget } from '../../daemon/testing/turn-budget.ts'
import { handmadeCases } from '../testing/budget/object-cases.ts'

test('no object that is costly by what its fields mean together holds the event loop for longer than its budget', async (t) => {
  const { count, above } = await turnsAboveBudget(handmadeCases({ verbs: ['POST', 'PUT over large'] }))
  t.same(above, [])
  t.ok(count > 50, `${count} requests`)
})

test('no patch or apply of thousands of items with names holds the event loop for longer than its budget', async (t) => {
  const verbs = ['POST', 'strategic', 'apply']
  const { count, above } = await turnsAboveBudget(handmadeCases({ only: 'variables of a container', verbs }))
  t.same(above, [])
  t.equal(count, 6)
})
