import { test } from 'tap'
import type { Node } from '../../../api/node.ts'
import { labelledPools, poolsAnnotation } from '../../../api/storage/pools.ts'
import { aNode } from '../../../api/testing/builders.ts'
import { rewrite } from '../../store/rewrite.ts'
import { volumeWorld } from '../../testing/volume-world.ts'
import { poolElsewhere } from './pool-labels.ts'

const id = '11111111-1111-4111-8111-111111111111'
const reporting = (...ids: readonly string[]) => ({
  [poolsAnnotation]: JSON.stringify(ids.map((one) => ({ id: one, path: '/pool' }))),
})

function aWorld(t: Parameters<typeof volumeWorld>[0]) {
  const { store, clock, ...world } = volumeWorld(t)
  world.start()
  const settle = () => world.settle(200)
  return {
    async join(name: string, ...ids: readonly string[]) {
      const { metadata, ...node } = aNode({ name, annotations: reporting(...ids) })
      const { uid: _uid, resourceVersion: _version, ...own } = metadata
      await store.create('nodes', { ...node, metadata: own })
      await settle()
    },
    async report(name: string, ...ids: readonly string[]) {
      const key = { namespace: '', name }
      const change = (node: Node) => ({ ...node, metadata: { ...node.metadata, annotations: reporting(...ids) } })
      await rewrite({ store, clock }, 'nodes', { key, change })
      await settle()
    },
    async leave(name: string) {
      await store.delete('nodes', { namespace: '', name })
      await settle()
    },
    holders: async () =>
      (await store.list('nodes')).items
        .filter((node) => labelledPools(node).includes(id))
        .map((node) => node.metadata.name),
    events: async () =>
      (await store.list('events')).items.map(({ reason, involvedObject }) => [reason, involvedObject.name]),
  }
}

test('a disk that is moved to another machine takes its volumes along when the first one reports that it is gone', async (t) => {
  const { join, report, holders, events } = aWorld(t)
  await join('pi-1', id)
  await join('pi-2')
  await report('pi-1')
  await report('pi-2', id)
  t.same([await holders(), await events()], [['pi-2'], []])
  await report('pi-2')
  await report('pi-1', id)
  t.same(await holders(), ['pi-1'], 'and back')
})

test('a machine with a new name has the volumes of its pool as soon as the Node of its old name is deleted', async (t) => {
  const { join, leave, holders, events } = aWorld(t)
  await join('old', id)
  await join('new', id)
  t.same(await holders(), ['old'], 'never two at once')
  t.same(await events(), [['PoolElsewhere', 'new']])
  await leave('old')
  t.same(await holders(), ['new'])
})

test('the Event names the Node that has the pool, and what to do', async (t) => {
  const node = aNode({ name: 'new', annotations: reporting(id) })
  const old = (ready: 'True' | 'False') => aNode({ name: 'old', conditions: [{ type: 'Ready', status: ready }] })
  t.equal(
    poolElsewhere(node, () => undefined),
    undefined,
  )
  t.match(
    poolElsewhere(node, () => old('False')),
    { message: /delete that Node: kubectl delete node old$/ },
  )
  t.match(
    poolElsewhere(node, () => old('True')),
    { message: /The disk of one of them is a copy: remove it$/ },
  )
  const labelled = aNode({ name: 'new', annotations: reporting(id), labels: { [`pool.bramble.dev/${id}`]: '' } })
  t.equal(
    poolElsewhere(labelled, () => old('True')),
    undefined,
  )
})
