import { test } from 'tap'
import { aNode, aPod, type PodOverrides } from '../../../api/testing/builders.ts'
import { drainPods, nextEvictions } from './drain-pods.ts'

const phase = (name: string, phase: string) => {
  const record = JSON.stringify({ id: 'a1', phase, since: '2026-01-02T03:00:00Z' })
  return aNode({ name, annotations: { 'bramble.dev/maintenance': record } })
}
const owned = (name: string, kind: string, over: PodOverrides = {}) =>
  aPod({
    ...{ name, nodeName: 'pi-1', uid: `uid-${name}` },
    ...over,
    metadata: {
      ownerReferences: [{ apiVersion: 'apps/v1', kind, name: 'owner', uid: 'o1', controller: true }],
      ...over.metadata,
    },
  })

test('pods of nodes that drain are those that kubectl drain evicts', async (t) => {
  const pods = [
    owned('web', 'ReplicaSet'),
    owned('log', 'DaemonSet'),
    aPod({ name: 'bare', nodeName: 'pi-1' }),
    owned('other', 'ReplicaSet', { nodeName: 'pi-2' }),
    owned('ending', 'ReplicaSet', { metadata: { deletionTimestamp: '2026-01-02T03:00:00Z' } }),
  ]
  const found = await drainPods([phase('pi-1', 'Draining'), phase('pi-2', 'Upgrading'), aNode()], () => pods)
  t.same([...found.keys()], ['pi-1'])
  t.same(
    found.get('pi-1')?.map(({ metadata }) => metadata.name),
    ['web', 'ending'],
  )
})

test('without a node that drains no pod is read', async (t) => {
  const found = await drainPods([aNode(), phase('pi-2', 'Done')], () => t.fail('pods were read') as never)
  t.equal(found.size, 0)
})

test('pods that a budget holds are evicted last, and those that are ending are not asked for', async (t) => {
  const ending = { metadata: { deletionTimestamp: '2026-01-02T03:00:00Z' } }
  const pods = [owned('held', 'ReplicaSet'), owned('ending', 'ReplicaSet', ending), owned('web', 'ReplicaSet')]
  const order = nextEvictions(pods, new Set(['uid-held'])).map(({ metadata }) => metadata.name)
  t.same(order, ['web', 'held'])
  const many = Array.from({ length: 80 }, (_, at) => owned(`web-${at}`, 'ReplicaSet'))
  t.equal(nextEvictions(many, new Set()).length, 50)
})
