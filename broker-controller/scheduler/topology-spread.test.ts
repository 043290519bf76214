import { test } from 'tap'
import { aPod, type NodeOverrides } from '../../api/testing/builders.ts'
import { aCluster, type Bound, hostKey, inZone, refusalsOf, spreads, zoneKey } from '../testing/scheduling.ts'
import { spreadScores } from './topology-spread.ts'

const web = { labels: { app: 'web' } }
const zones = [inZone('a', '1'), inZone('b', '1'), inZone('c', '2')]
const on = (...names: readonly string[]): readonly Bound[] => names.map((nodeName) => ({ nodeName, ...web }))
const uneven = ["node(s) didn't match pod topology spread constraints"]
const unlabelled = ["node(s) didn't match pod topology spread constraints (missing required label)"]

test('a zone may be ahead of the emptiest by so many, and no more', async (t) => {
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
  t.same(
    refusalsOf(both, aCluster([...racks, loose], on('a', 'b'))),
    { c: unlabelled },
    'zone 3 is none to compare with',
  )
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
  t.notOk('a' in refusalsOf(pod, aCluster(nodes, on('a', 'c'))), 'the tainted zone is none')
})

test('preferred spreading favours the emptier zone, and the usual one the emptier machine before it', async (t) => {
  const scores = (pod: ReturnType<typeof aPod>, bound: readonly Bound[]) => {
    const known = aCluster([...zones, { name: 'd' }], bound)
    return spreadScores(pod, [...known.from(0)], known)
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
    return spreadScores(aPod({ ...web, nodeSelector: { [zoneKey]: '1' }, spec }), [...known.from(0)], known)
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
  t.same(spreadScores(pod, [...known.from(0)], known), [100, 0, 0])
})

test('a greater skew makes differences between zones matter less', async (t) => {
  const known = aCluster(zones, on('a', 'a', 'c'))
  const score = (maxSkew: number) => {
    const spec = spreads({ whenUnsatisfiable: 'ScheduleAnyway', maxSkew })
    return spreadScores(aPod({ ...web, spec }), [...known.from(0)], known)
  }
  t.same(score(1), [33, 33, 100])
  t.same(score(8), [80, 80, 100])
})
