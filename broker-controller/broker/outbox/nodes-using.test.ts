import { test } from 'tap'
import { nodesUsing } from './nodes-using.ts'

test('a node is counted until its last pod that uses something is gone', async (t) => {
  const counts = nodesUsing()
  counts.add('shop', 'pi-1', 1)
  counts.add('shop', 'pi-1', 1)
  counts.add('shop', 'pi-2', 1)
  counts.add('other', 'pi-3', 1)
  t.same(counts.nodesOf('shop'), ['pi-1', 'pi-2'])
  counts.add('shop', 'pi-1', -1)
  t.same(counts.nodesOf('shop'), ['pi-1', 'pi-2'])
  counts.add('shop', 'pi-1', -1)
  t.same(counts.nodesOf('shop'), ['pi-2'])
  counts.add('shop', 'pi-2', -1)
  t.same(counts.nodesOf('shop'), [])
})

test('a pod that was never counted takes nothing from the others', async (t) => {
  const counts = nodesUsing()
  counts.add('shop', 'pi-1', -1)
  counts.add('shop', 'pi-1', 1)
  t.same(counts.nodesOf('shop'), ['pi-1'])
})
