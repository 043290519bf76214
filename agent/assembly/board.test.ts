import { test } from 'tap'
import { agentBoard, writeEnds } from './board.ts'

test('a cell of the board has one writer', async (t) => {
  const cells = agentBoard()
  const write = writeEnds(cells)
  const { policies, localPods } = write('policies', 'localPods')
  policies.set('none')
  t.equal(cells.policies.get(), 'none')
  t.throws(() => write('pools', 'localPods'), { message: 'The cell localPods of the board has a writer already' })
  t.equal(localPods.get().isComplete, false)
})
