import { test } from 'tap'
import type { Pod } from '../../api/pod.ts'
import { aPod, type NodeOverrides } from '../../api/testing/builders.ts'
import { finished } from '../../daemon/watchdog/steps.ts'
import { aCluster, type Bound, hostKey, inZone, refusalsOf, spreads, zoneKey } from '../testing/scheduling.ts'
import type { ClusterCache } from './cluster.ts'
import { spreadRulesOf, spreadScores } from './topology-spread.ts'

const web = { labels: { app: 'web' } }
const zones = [inZone('a', '1'), inZone('b', '1'), inZone('c', '2')]
const on = (...names: readonly string[]): readonly Bound[] => names.map((nodeName) => ({ nodeName, ...web }))
const uneven = ["node(s) didn't match pod topology spread constraints"]
const unlabelled = ["node(s) didn't match pod topology spread constraints (missing required label)"]

test('a zone may be ahead of the emptiest by at most so many', async (t) => {
  const pod = aPod({ ...web, spec: spreads({}) })
  t.same(refusalsOf(pod, aCluster(zones, on('a'))), { a: uneven, b: uneven })
  t.same(refusalsOf(pod, aCluster(zones, on('a', 'c'))), {})
  t.same(refusalsOf(aPod({ ...web, spec: spreads({ maxSkew: 2 }) }), aCluster(zones, on('a'))), {})
  t.same(refusalsOf(aPod({ spec: spreads({}) }), aCluster(zones, on('a'))), {}, 'who is not counted does not tip it')
  t.same(refusalsOf(pod, aCluster([...zones, { name: 'd' }])), { d: unlabelled })
})

test('what is leaving, elsewhere or another thing does not count', async (t) => {
  const pod = aPod({ ...web, spec: spreads({}) })
  const metadata = { deletionTimestamp: '2026-01-01T00:00:00Z' }
  const known = aCluster(zones, [
    { nodeName: 'a', ...web, metadata },
    { nodeName: 'a', ...web, namespace: 'other' },
    { nodeName: 'a', labels: { app: 'db' } },
  ])
  t.same(refusalsOf(pod, known), {})
})

test('nodes the pod does not ask for count only when its policy includes them, tainted ones unless it excludes them', async (t) => {
  const nodes = [inZone('a', '1', { labels: { ssd: '1' } }), inZone('b', '2')]
  const wanting = (more: object) => aPod({ ...web, nodeSelector: { ssd: '1' }, spec: spreads(more) })
  t.same(Object.keys(refusalsOf(wanting({}), aCluster(nodes, on('a')))), ['b'], 'its only zone has no rival')
  t.match(refusalsOf(wanting({ nodeAffinityPolicy: 'Ignore' }), aCluster(nodes, on('a'))), { a: uneven })
  const tainted = [inZone('a', '1'), inZone('b', '2', { taints: [{ key: 'x', effect: 'NoSchedule' }] })]
  t.match(refusalsOf(aPod({ ...web, spec: spreads({}) }), aCluster(tainted, on('a'))), { a: uneven })
  const honest = aPod({ ...web, spec: spreads({ nodeTaintsPolicy: 'Honor' }) })
  t.same(Object.keys(refusalsOf(honest, aCluster(tainted, on('a')))), ['b'])
})

test('with too few zones the emptiest counts as empty, and a version spreads by itself', async (t) => {
  const known = aCluster(zones, on('a', 'c'))
  t.same(Object.keys(refusalsOf(aPod({ ...web, spec: spreads({ minDomains: 3 }) }), known)), ['a', 'b', 'c'])
  const labels = { app: 'web', version: '2' }
  const versions = aCluster(zones, [...on('a', 'a'), { nodeName: 'c', labels }])
  t.same(Object.keys(refusalsOf(aPod({ labels, spec: spreads({ matchLabelKeys: ['version'] }) }), versions)), ['c'])
})

test('several constraints hold together, on nodes that have all their labels', async (t) => {
  const known = aCluster([...zones, { name: 'd' }], on('a', 'c', 'd'))
  const both = aPod({ ...web, spec: spreads({}, { topologyKey: hostKey }) })
  t.same(refusalsOf(both, known), { a: uneven, c: uneven, d: unlabelled })
})

test('the emptiest of several zones counts, with all that match in them', async (t) => {
  const three = [inZone('a', '1'), inZone('b', '2'), inZone('c', '3')]
  const pod = aPod({ ...web, spec: spreads({}) })
  t.same(Object.keys(refusalsOf(pod, aCluster(three, on('a', 'a', 'a', 'b', 'c', 'c')))), ['a', 'c'])
  const versions = ['1', '2'].map((version): Bound => ({ nodeName: 'a', labels: { app: 'web', version } }))
  const mixed = aCluster(three, [...versions, ...on('b', 'c')])
  t.same(Object.keys(refusalsOf(pod, mixed)), ['a'], 'pods of several versions count together')
  const third = aCluster(three, [...versions, { nodeName: 'a', labels: { app: 'web', version: '2' } }, ...on('b', 'c')])
  const lenient = aPod({ ...web, spec: spreads({ maxSkew: 2 }) })
  t.same(Object.keys(refusalsOf(lenient, third)), ['a'], 'each of them')
})

test('a constraint without a selector counts no pod', async (t) => {
  const spec = spreads({ labelSelector: undefined })
  t.same(refusalsOf(aPod({ ...web, spec }), aCluster(zones, on('a', 'a', 'a'))), {})
})

test('a node without the label of one constraint does not count for the others', async (t) => {
  const inRack = (name: string, zone: string, rack: string) => inZone(name, zone, { labels: { rack } })
  const both = aPod({ ...web, spec: spreads({}, { topologyKey: 'rack', maxSkew: 9 }) })
  const racks = [inRack('a', '1', 'r'), inRack('b', '2', 'r')]
  const loose = inZone('c', '3')
  t.same(refusalsOf(both, aCluster([...racks, loose], on('a', 'b'))), { c: unlabelled }, 'zone 3 is not compared')
  t.same(
    refusalsOf(both, aCluster([...racks, inRack('c', '3', 's')], on('a', 'b'))),
    { a: uneven, b: uneven },
    'with all labels it is',
  )
  const onLoose = aCluster([...racks, { ...loose, labels: { [zoneKey]: '1' } }], on('c', 'b'))
  t.same(refusalsOf(both, onLoose), { b: uneven, c: unlabelled }, 'nor do its pods')
})

test('where taints count, a node without one that repels the pod is still a domain', async (t) => {
  const taints = [{ key: 'x', effect: 'NoSchedule' }] as const
  const nodes = [inZone('a', '1'), inZone('b', '2', { taints }), inZone('c', '3')]
  const pod = aPod({ ...web, spec: spreads({ nodeTaintsPolicy: 'Honor' }) })
  t.match(refusalsOf(pod, aCluster(nodes, on('a'))), { a: uneven })
  t.notOk('a' in refusalsOf(pod, aCluster(nodes, on('a', 'c'))), 'the tainted zone does not count')
})

test('preferred spreading favours the emptier zone, and the usual one the emptier machine before it', async (t) => {
  const scores = (pod: ReturnType<typeof aPod>, bound: readonly Bound[]) => {
    const known = aCluster([...zones, { name: 'd' }], bound)
    return finished(spreadScores(pod, [...known.from(0)], known))
  }
  const soft = aPod({ ...web, spec: spreads({ whenUnsatisfiable: 'ScheduleAnyway' }) })
  t.same(scores(soft, on('a', 'a', 'c')), [33, 33, 100, 0], 'a node without the label comes last')
  t.equal(scores(aPod({ ...web, spec: spreads({}) }), on('a')), undefined, 'a strict one does not count here')
  t.equal(scores(aPod(), on('a')), undefined, 'like no other pod')
  const [a = 0, b = 0, c = 0] = scores(aPod(web), on('a')) ?? []
  t.ok(a < b && b < c, `${a} < ${b} < ${c}`)
  const leaving = { nodeName: 'a', ...web, metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }
  t.same(scores(soft, [leaving]), [100, 100, 100, 0], 'a terminating pod does not count')
  const usual = scores(aPod(web), [leaving, ...on('b')]) ?? []
  t.ok((usual[0] ?? 0) > (usual[1] ?? 0), 'nor for the usual spreading')
})

test('preferred spreading counts the pods of the nodes that the policies include', async (t) => {
  const scores = (more: object, bound = on('a', 'c', 'c'), nodes: readonly NodeOverrides[] = zones) => {
    const known = aCluster(nodes, bound)
    const spec = spreads({ whenUnsatisfiable: 'ScheduleAnyway', ...more })
    return finished(spreadScores(aPod({ ...web, nodeSelector: { [zoneKey]: '1' }, spec }), [...known.from(0)], known))
  }
  t.same(scores({}), [0, 0, 100], 'the pod does not ask for zone 2: nothing there counts')
  t.same(scores({ nodeAffinityPolicy: 'Ignore' }), [100, 100, 33])
  const somewhere = [...zones, { name: 'd' }]
  t.same(scores({ nodeAffinityPolicy: 'Ignore' }, on('a', 'c', 'c'), somewhere), [100, 100, 33, 0])
  const taints = [{ key: 'x', effect: 'NoSchedule' }] as const
  const tainted = [inZone('a', '1'), inZone('b', '1'), inZone('c', '2', { taints })]
  const honest = { nodeAffinityPolicy: 'Ignore', nodeTaintsPolicy: 'Honor' }
  t.same(scores(honest, on('a', 'c', 'c'), tainted), [0, 0, 100])
  t.same(scores({ nodeAffinityPolicy: 'Ignore' }, on('a', 'c', 'c'), tainted), [100, 100, 33])
})

test('a node needs the labels of every preference for a score, and its pods do not count otherwise', async (t) => {
  const inRack = (name: string, zone: string, rack: string) => inZone(name, zone, { labels: { rack } })
  const known = aCluster([inRack('a', '1', 'r'), inRack('b', '2', 's'), inZone('c', '1')], on('c', 'c', 'b'))
  const soft = { whenUnsatisfiable: 'ScheduleAnyway' } as const
  const pod = aPod({ ...web, spec: spreads(soft, { ...soft, topologyKey: 'rack' }) })
  t.same(finished(spreadScores(pod, [...known.from(0)], known)), [100, 0, 0])
})

test('a greater skew makes differences between zones matter less', async (t) => {
  const known = aCluster(zones, on('a', 'a', 'c'))
  const score = (maxSkew: number) => {
    const spec = spreads({ whenUnsatisfiable: 'ScheduleAnyway', maxSkew })
    return finished(spreadScores(aPod({ ...web, spec }), [...known.from(0)], known))
  }
  t.same(score(1), [33, 33, 100])
  t.same(score(8), [80, 80, 100])
})

/** How many nodes are read to find out how the pod must be spread. */
function nodesRead(pod: Pod, known: ClusterCache): number {
  let count = 0
  const from = function* (start: number) {
    for (const usage of known.from(start)) {
      count++
      yield usage
    }
  }
  finished(spreadRulesOf(pod, { ...known, from }))
  return count
}

test('a fleet is read node by node only where its labels, a node selector or taints make nodes differ', async (t) => {
  const known = aCluster(zones, on('a'))
  const partly = aCluster([...zones, { name: 'd' }], on('a'))
  const [zone, both] = [spreads({}), spreads({}, { topologyKey: hostKey })]
  t.equal(nodesRead(aPod({ ...web, spec: zone }), known), 0)
  t.equal(nodesRead(aPod({ ...web, spec: zone }), partly), 0, 'a node without the only label has no domain')
  t.equal(nodesRead(aPod({ ...web, spec: both }), known), 0, 'every node has both labels')
  t.equal(nodesRead(aPod({ ...web, spec: both }), partly), 8, 'one node has one of two labels')
  const nodeSelector = { [zoneKey]: '1' }
  t.equal(nodesRead(aPod({ ...web, nodeSelector, spec: zone }), known), 3)
  t.equal(nodesRead(aPod({ ...web, nodeSelector, spec: spreads({ nodeAffinityPolicy: 'Ignore' }) }), known), 0)
  t.equal(nodesRead(aPod({ ...web, spec: spreads({ nodeTaintsPolicy: 'Honor' }) }), known), 3)
})

test('the counts of pods that are all alike are not copied', async (t) => {
  const known = aCluster(zones, on('a', 'b', 'c'))
  const [rule] = finished(spreadRulesOf(aPod({ ...web, spec: spreads({}) }), known))
  const [alike] = known.podClasses.in('default')
  t.equal(rule?.counts, alike?.domains(zoneKey))
  t.same(
    [...(rule?.counts ?? [])],
    [
      ['1', 2],
      ['2', 1],
    ],
  )
})

/** The scores of the named nodes, where the pod fits. */
function scoresOf(pod: Pod, known: ClusterCache, ...names: readonly string[]) {
  const fitting = names.flatMap((name) => known.node(name) ?? [])
  return finished(spreadScores(pod, fitting, known))
}

test('the usual spreading counts pods on tainted nodes, but none on nodes that the pod does not ask for', async (t) => {
  const ssd = { labels: { ssd: '1' } }
  const asked = aCluster([inZone('a', '1', ssd), inZone('b', '1'), inZone('c', '2', ssd)], on('b'))
  t.same(scoresOf(aPod({ ...web, nodeSelector: { ssd: '1' } }), asked, 'a', 'c'), [100, 100])
  const taints = [{ key: 'x', effect: 'NoSchedule' }] as const
  const tainted = aCluster([inZone('a', '1'), inZone('b', '1', { taints }), inZone('c', '2')], on('b'))
  // Zone 1: ln(2 + 2) + 4 for its pod, and 2 for an empty machine.
  t.same(scoresOf(aPod(web), tainted, 'a', 'c'), [85, 100], '(6 + 7 - 7) / 7')
})

test('for the usual spreading, nodes without a zone are one zone more, but get no share of it', async (t) => {
  const known = aCluster([inZone('a', '1'), inZone('b', '2'), { name: 'c' }], on('a', 'a', 'a'))
  // a: 3 ln(3 + 2) + 2 by machine and 3 ln(3 + 2) + 4 by zone, b: 2 + 4, c: 2 by machine alone.
  t.same(scoresOf(aPod(web), known, 'a', 'b', 'c'), [12, 75, 100], '16, 6 and 2')
})

test('two machines with the same hostname label are two for the usual spreading', async (t) => {
  const labels = { [hostKey]: 'raspberrypi' }
  const known = aCluster(
    [
      { name: 'a', labels },
      { name: 'b', labels },
    ],
    on('a'),
  )
  t.same(scoresOf(aPod(web), known, 'a', 'b'), [66, 100], 'ln(2 + 2) + 2 and 2')
})

test('a node that lacks the label of one preference adds no domain to the others', async (t) => {
  const inRack = (name: string, zone: string, rack: string) => inZone(name, zone, { labels: { rack } })
  const known = aCluster([inRack('a', '1', 'r'), inRack('b', '2', 's'), inZone('c', '3')], on('a', 'a', 'a', 'b'))
  const soft = { whenUnsatisfiable: 'ScheduleAnyway' } as const
  const pod = aPod({ ...web, spec: spreads(soft, { ...soft, topologyKey: 'rack' }) })
  t.same(scoresOf(pod, known, 'a', 'b', 'c'), [37, 100, 0], '6 ln(2 + 2) and 2 ln(2 + 2)')
})
