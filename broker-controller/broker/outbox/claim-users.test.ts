import { test } from 'tap'
import { aNode, aPod, type PodOverrides } from '../../../api/testing/builders.ts'
import { claimUsersIndex } from './claim-users.ts'

const node = aNode({ name: 'pi-1' })
const uses = (name: string, over: PodOverrides = {}) =>
  aPod({
    ...{ name: 'db-0', uid: 'db-0', nodeName: 'pi-1', ...over },
    spec: { volumes: [{ name: 'data', persistentVolumeClaim: { claimName: name } }] },
  })

test('a change of a pod concerns other nodes only by a claim for one pod', async (t) => {
  const index = claimUsersIndex((key) => key === 'default/single')
  const { update } = index
  const [a, b] = [uses('single', { uid: 'a' }), uses('single', { uid: 'b', nodeName: 'pi-2' })]
  t.same(update(a, undefined), ['pi-1'])
  t.same(update(b, undefined), ['pi-1', 'pi-2'])
  t.same(update(undefined, a), ['pi-2'])
  const shared = uses('shared', { uid: 'c' })
  t.same(update(shared, undefined), [])
  t.same(index.nodesUsing('default/shared'), ['pi-1'])
  const moved = aNode({ name: 'pi-1', labels: { zone: 'a' } })
  t.equal(index.mayMove('pi-1', node, moved), true)
  t.equal(index.mayMove('pi-1', node, node), false)
  update(undefined, shared)
  t.equal(index.mayMove('pi-1', node, moved), false, 'no pod of it uses claims')
  t.same(index.nodesUsing('default/shared'), [])
})

test('the pods that use a claim are those of its namespace, as they are now', async (t) => {
  const { update, podsUsing, nodesUsing } = claimUsersIndex(() => false)
  const first = uses('data', { uid: 'a', nodeName: '' })
  const other = uses('data', { uid: 'b', namespace: 'batch' })
  update(first, undefined)
  update(other, undefined)
  t.same([podsUsing('default/data'), nodesUsing('default/data')], [[first], []], 'it has no node yet')
  const bound = uses('data', { uid: 'a' })
  update(bound, first)
  t.same([podsUsing('default/data'), nodesUsing('default/data')], [[bound], ['pi-1']])
  update(undefined, bound)
  t.same([podsUsing('default/data'), podsUsing('batch/data'), podsUsing('unknown/data')], [[], [other], []])
})

test('a node with two pods on a claim is named once, until both are gone', async (t) => {
  const { update, nodesUsing, mayMove } = claimUsersIndex((key) => key === 'default/data')
  const [a, b] = [uses('data', { uid: 'a' }), uses('data', { uid: 'b' })]
  update(a, undefined)
  t.same(update(b, undefined), ['pi-1'])
  t.same(update(undefined, a), ['pi-1'])
  const relabelled = aNode({ name: 'pi-1', labels: { zone: 'attic' } })
  t.equal(mayMove('pi-1', relabelled, node), true, 'the other pod is there')
  t.equal(mayMove('pi-2', relabelled, node), false)
  t.equal(mayMove('pi-1', undefined, node), true, 'the node was deleted')
  t.same([update(undefined, b), nodesUsing('default/data'), mayMove('pi-1', relabelled, node)], [[], [], false])
})
