import { test } from 'tap'
import { aNode, aPod, type PodOverrides } from '../../api/testing/builders.ts'
import { finished } from '../../daemon/watchdog/steps.ts'
import { aCluster } from '../testing/scheduling.ts'
import { cluster } from './cluster.ts'

test('counts stay right when nodes come late, move to another zone, and go', async (t) => {
  const known = cluster()
  const labels = { app: 'web' }
  const zone = 'topology.kubernetes.io/zone'
  const inZone = (name: string) => aNode({ name: 'a', labels: { [zone]: name } })
  const zones = () => [...known.podClasses.in('default')].flatMap((podClass) => [...podClass.domains(zone)])
  known.place('x', aPod({ labels, requests: { cpu: '1' } }), 'a')
  t.same(zones(), [])
  known.putNode(inZone('1'))
  t.same([zones(), [...known.domains(zone)]], [[['1', 1]], [['1', 1]]])
  known.putNode(inZone('2'))
  t.same([zones(), [...known.domains(zone)]], [[['2', 1]], [['2', 1]]])
  t.equal(known.node('a')?.requested('cpu'), 1000)
  known.deleteNode('a')
  t.same([zones(), [...known.domains(zone)]], [[], []])
  known.putNode(aNode({ name: 'a' }))
  t.equal(known.node('a')?.requested('cpu'), 1000)
  known.remove('x')
  t.same([known.node('a')?.requested('cpu'), known.node('a')?.podCount], [0, 0])
})

const names = (known: ReturnType<typeof cluster>, start: number) => [...known.from(start)].map(({ name }) => name)

test('every node is visited once from any start, also after nodes came, went or were labelled', async (t) => {
  const known = aCluster(['a', 'b', 'c'].map((name) => ({ name })))
  t.same(
    [names(known, 0), names(known, 2), names(known, 7)],
    [
      ['a', 'b', 'c'],
      ['c', 'a', 'b'],
      ['b', 'c', 'a'],
    ],
  )
  known.deleteNode('a')
  known.deleteNode('a')
  known.putNode(aNode({ name: 'd' }))
  known.putNode(aNode({ name: 'b', labels: { disk: 'ssd' } }))
  t.same([names(known, 0), known.nodeCount, known.node('a')], [['b', 'c', 'd'], 3, undefined])
  t.same(names(cluster(), 5), [])
})

test('a node that changes without its labels keeps the counts of its pods', async (t) => {
  const known = aCluster([{ name: 'a' }], [{ nodeName: 'a', requests: { cpu: '1' } }])
  known.putNode(aNode({ name: 'a', allocatable: { cpu: '2' }, unschedulable: true }))
  const { allocatable, node } = known.node('a') ?? {}
  t.same([allocatable?.get('cpu'), node?.spec?.unschedulable, known.node('a')?.requested('cpu')], [2000, true, 1000])
})

const web: PodOverrides = { name: 'web', labels: { app: 'web' }, requests: { cpu: '1' } }
const state = (known: ReturnType<typeof cluster>) => [
  known.node('a')?.podCount,
  known.node('a')?.requested('cpu'),
  [...known.podClasses.in('default')].flatMap(({ byNode }) => [...byNode]),
]

test('a trial sees pods that came or went, and leaves everything as it was', async (t) => {
  const known = aCluster([{ name: 'a' }], [{ ...web, nodeName: 'a' }])
  const [here, guest] = [
    { key: 'default/web', pod: aPod(web) },
    { key: 'default/guest', pod: aPod({ ...web, name: 'guest' }) },
  ]
  const before = state(known)
  const look = function* () {
    yield
    return state(known)
  }
  t.same(finished(known.with([guest], 'a', look)), [2, 2000, [['a', 2]]])
  t.same(state(known), before)
  t.same(finished(known.without([here], 'a', look)), [0, 0, []])
  t.same(state(known), before)
  const swapped = known.without([here], 'a', function* ({ putBack, takeAway }) {
    yield
    putBack(here)
    const back = state(known)
    takeAway(here)
    return [back, state(known)]
  })
  t.same(finished(swapped), [before, [0, 0, []]])
  t.same(state(known), before)
})

test('a trial that fails leaves everything as it was', async (t) => {
  const known = aCluster([{ name: 'a' }], [{ ...web, nodeName: 'a' }])
  const before = state(known)
  const fail = function* (): Generator<undefined, never> {
    yield
    throw new Error('it fails')
  }
  const here = [{ key: 'default/web', pod: aPod(web) }]
  t.throws(() => finished(known.without(here, 'a', fail)), { message: 'it fails' })
  t.throws(() => finished(known.with([{ key: 'default/guest', pod: aPod() }], 'a', fail)), { message: 'it fails' })
  t.same(state(known), before)
})

test('a pod that is placed is nominated to no node, and its claims are used', async (t) => {
  const known = aCluster([{ name: 'a' }])
  const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }]
  const pod = aPod({ ...web, spec: { volumes } })
  known.nominate('default/web', pod, 'a')
  t.same([known.nominationOf('default/web'), known.nominatedTo('a').length], ['a', 1])
  known.place('default/web', pod, 'a')
  t.same([known.nominationOf('default/web'), known.nominatedTo('a')], [undefined, []])
  t.equal(known.volumes.isClaimUsed('default/data'), true)
  known.remove('default/web')
  t.same([known.volumes.isClaimUsed('default/data'), known.nodeOf('default/web')], [false, undefined])
})

test('a namespace has labels until it is gone', async (t) => {
  const known = cluster()
  t.equal(known.namespaceLabels('shop'), undefined)
  known.putNamespace('shop', {})
  t.same(known.namespaceLabels('shop'), {})
  known.putNamespace('shop', { team: 'a' })
  t.same(known.namespaceLabels('shop'), { team: 'a' })
  known.putNamespace('shop', undefined)
  t.equal(known.namespaceLabels('shop'), undefined)
})
