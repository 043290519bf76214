/** No message of a node, checkpoint, selector, patch or certificate request holds the event loop for more than 100 ms. */
import { test } from 'tap'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { turnsAboveBudget } from '../../daemon/testing/turn-budget.ts'
import { memoryStore } from '../store/memory-store.ts'
import { inputCases } from '../testing/budget/input-cases.ts'

test('no input that is not the body of an object holds the event loop for longer than its budget', async (t) => {
  const clock = fakeClock()
  const { count, above } = await turnsAboveBudget(inputCases({ openStore: async () => memoryStore({ clock }), clock }))
  t.same(above, [])
  t.ok(count > 70, `${count} inputs`)
})
