import { test } from 'tap'
import { aNode, aPod } from '../../api/testing/builders.ts'
import { type NodeInfo, nodeInfo } from './node-usage.ts'
import { placements } from './placements.ts'

const pod = aPod({ name: 'web', requests: { cpu: '1' } })

function opened(...names: readonly string[]) {
  const nodes = new Map<string, NodeInfo>()
  const open = (name: string) => void nodes.set(name, nodeInfo(aNode({ name })))
  for (const name of names) open(name)
  const counted: string[] = []
  const placed: string[] = []
  const counters = {
    enter: ({ metadata }: typeof pod, node: string) => void counted.push(`${metadata.name} enters ${node}`),
    leave: ({ metadata }: typeof pod, node: string) => void counted.push(`${metadata.name} leaves ${node}`),
  }
  return {
    ...placements(nodes, counters, (key) => void placed.push(key)),
    ...{ nodes, open, counted, placed },
    podsOn: (name: string) => nodes.get(name)?.podCount,
  }
}

test('a pod is on one node: the last on which it was placed', async (t) => {
  const { place, remove, nodeOf, podsOn, counted, placed } = opened('a', 'b')
  place('default/web', pod, 'a')
  place('default/web', pod, 'b')
  t.same([nodeOf('default/web'), podsOn('a'), podsOn('b')], ['b', 0, 1])
  remove('default/web')
  remove('default/web')
  t.same([nodeOf('default/web'), podsOn('b')], [undefined, 0])
  t.same(counted, ['web enters a', 'web leaves a', 'web enters b', 'web leaves b'])
  t.same(placed, ['default/web', 'default/web'])
})

test('a pod of a node that is not known yet is counted when that node comes', async (t) => {
  const { place, remove, moved, nodeOf, podsOn, open, counted } = opened()
  place('default/web', pod, 'a')
  place('default/gone', aPod({ name: 'gone' }), 'a')
  place('default/other', aPod({ name: 'other' }), 'b')
  remove('default/gone')
  t.same([nodeOf('default/web'), counted], ['a', []])
  moved('a', () => open('a'))
  t.same([podsOn('a'), counted], [1, ['web enters a']])
  place('default/other', aPod({ name: 'other' }), 'a')
  moved('b', () => open('b'))
  t.same([podsOn('a'), podsOn('b')], [2, 0], 'it waits for that node no longer')
})

test('the pods of a node that goes are counted again when it is back', async (t) => {
  const { place, moved, nodeOf, podsOn, open, nodes, counted } = opened('a')
  place('default/web', pod, 'a')
  moved('a', () => void nodes.delete('a'))
  t.same([nodeOf('default/web'), counted.at(-1)], ['a', 'web leaves a'])
  moved('a', () => open('a'))
  t.same([podsOn('a'), counted.at(-1)], [1, 'web enters a'])
})

test('while a node changes its pods are off it', async (t) => {
  const { place, moved, podsOn } = opened('a')
  place('default/web', pod, 'a')
  moved('a', () => void t.equal(podsOn('a'), 0))
  t.equal(podsOn('a'), 1)
})

test('a pod of a trial is counted without being placed', async (t) => {
  const { enter, leave, nodeOf, podsOn, moved, counted } = opened('a')
  const guest = { pod, nodeName: 'a' }
  enter('default/guest', guest)
  t.same([podsOn('a'), nodeOf('default/guest')], [1, undefined])
  leave('default/guest', guest)
  t.same([podsOn('a'), counted], [0, ['web enters a', 'web leaves a']])
  moved('a', () => {})
  t.equal(podsOn('a'), 0)
})
