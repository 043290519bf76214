import { test } from 'tap'
import { aNode } from '../../api/testing/builders.ts'
import { finished } from '../../daemon/watchdog/steps.ts'
import { cluster } from './cluster.ts'
import { nodeCounts } from './node-counts.ts'
import { type NodeInfo, nodeInfo } from './node-usage.ts'

test('a node that lists an image under one name twice counts once', async (t) => {
  const images = [
    { names: ['app:latest', 'app:latest'], sizeBytes: 1 },
    { names: ['app:latest'], sizeBytes: 2 },
  ]
  const known = cluster()
  known.putNode(aNode({ name: 'a', status: { ...aNode().status, images } }))
  t.equal(known.carriers('app:latest'), 1)
  known.putNode(aNode({ name: 'b', status: { ...aNode().status, images } }))
  t.equal(known.carriers('app:latest'), 2, 'also of a node that came after the count')
  known.deleteNode('b')
  known.putNode(aNode({ name: 'a' }))
  t.equal(known.carriers('app:latest'), 0)
})

test('images are counted that no node had at first, and more than are counted at one time', async (t) => {
  const named = (...names: readonly string[]) => ({ ...aNode().status, images: [{ names, sizeBytes: 1 }] })
  const known = cluster()
  known.putNode(aNode({ name: 'a' }))
  t.equal(known.carriers('app:1'), 0)
  known.putNode(aNode({ name: 'a', status: named('app:1', 'app:2') }))
  t.equal(known.carriers('app:1'), 1)
  const others = Array.from({ length: 2000 }, (_, other) => known.carriers(`other:${other}`))
  t.ok(others.every((count) => count === 0))
  known.putNode(aNode({ name: 'b', status: named('app:2') }))
  t.same([known.carriers('app:1'), known.carriers('app:2')], [1, 2])
})

test('all images of a pod are counted in one walk over the nodes, however many they are', async (t) => {
  const names = Array.from({ length: 1500 }, (_, index) => `app:${index}`)
  let walks = 0
  class Nodes extends Map<string, NodeInfo> {
    override values() {
      walks += 1
      return super.values()
    }
  }
  const status = { ...aNode().status, images: [{ names: ['app:7', 'app:7'], sizeBytes: 1 }, { names: ['app:7'] }] }
  const counts = nodeCounts(new Nodes([['a', nodeInfo(aNode({ name: 'a', status }))]]))
  finished(counts.prepareCarriers(names))
  t.same([counts.carriers('app:7'), counts.carriers('app:1499'), walks], [1, 0, 1])
})

test('nodes are counted by the values of a label, before and after it is first asked for', async (t) => {
  const nodes = new Map<string, NodeInfo>()
  const counts = nodeCounts(nodes)
  const join = (name: string, labels: { readonly [label: string]: string }) => {
    const info = nodeInfo(aNode({ name, labels }))
    nodes.set(name, info)
    counts.countLabels(info.labels, 1)
  }
  const part = (name: string) => {
    counts.countLabels(nodes.get(name)?.labels ?? {}, -1)
    nodes.delete(name)
  }
  const zones = () => Object.fromEntries(counts.domains('zone'))
  join('a', { zone: 'attic' })
  t.same([counts.hasLabel('zone'), counts.hasLabel('disk'), zones()], [true, false, { attic: 1 }])
  join('b', { zone: 'attic' })
  join('c', { zone: 'cellar' })
  join('d', { disk: 'ssd' })
  t.same(zones(), { attic: 2, cellar: 1 })
  for (const name of ['a', 'c']) part(name)
  t.same(zones(), { attic: 1 })
  part('b')
  t.same([counts.hasLabel('zone'), zones(), counts.hasLabel('disk')], [false, {}, true])
})

test('labels are counted again when more were asked for than are kept', async (t) => {
  const known = cluster()
  known.putNode(aNode({ name: 'a', labels: { zone: 'attic' } }))
  t.equal(known.domains('zone').get('attic'), 1)
  for (let other = 0; other < 300; other++) t.equal(known.domains(`other-${other}`).size, 0)
  known.putNode(aNode({ name: 'b', labels: { zone: 'attic' } }))
  t.equal(known.domains('zone').get('attic'), 2)
})
