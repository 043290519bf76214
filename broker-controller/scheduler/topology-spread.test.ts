import { test } from 'tap'
import { aPod } from '../../api/testing/builders.ts'
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
  const soon = aPod({ ...web, nodeSelector: { [zoneKey]: '1' }, spec: soft.spec })
  t.same(scores(soon, on('a', 'c', 'c'))?.length, 4)
})
