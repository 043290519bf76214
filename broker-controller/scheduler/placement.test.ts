import { test } from 'tap'
import type { Pod } from '../../api/pod.ts'
import { aPod, requiringNodes } from '../../api/testing/builders.ts'
import { finished } from '../../daemon/watchdog/steps.ts'
import { aClusterWithVolumes, storedClass, using } from '../testing/pods-with-claims.ts'
import { aCluster } from '../testing/scheduling.ts'
import { aStoredClaim, aStoredVolume } from '../testing/volume-objects.ts'
import type { ClusterCache } from './cluster.ts'
import { nodesToFind, placePod } from './placement.ts'

test('a large fleet is sampled, a small one is not', async (t) => {
  t.same([1, 100, 101, 1000, 5000, 10_000].map(nodesToFind), [1, 100, 100, 420, 500, 500])
})

test('a pod that asks for nodes by name is tried on these alone', async (t) => {
  const named = (name: string) => ({ key: 'metadata.name', operator: 'In', values: [name] })
  const asking = (...terms: readonly (readonly string[])[]) =>
    aPod({ spec: requiringNodes(...terms.map((names) => ({ matchFields: names.map(named) }))) })
  const known = aCluster([{ name: 'a', unschedulable: true }, { name: 'b' }, { name: 'c' }])
  const place = (pod: Pod) => {
    const placement = finished(placePod(pod, known, 0, () => 0))
    return placement.found ? placement.nodeName : placement.message
  }
  t.equal(place(asking(['c'])), 'c')
  t.equal(place(asking(['a'], ['b'])), 'b')
  t.equal(
    place(asking(['a'])),
    "0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't satisfy plugin(s) [NodeAffinity].",
  )
  t.equal(place(asking(['a', 'b'])), '0/3 nodes are available: pod affinity terms conflict.')
})

const placed = (pod: Pod, known: ClusterCache, start = 0) => finished(placePod(pod, known, start, () => 0))
const nodeOf = (pod: Pod, known: ClusterCache, start = 0) => {
  const placement = placed(pod, known, start)
  return placement.found ? placement.nodeName : placement.message
}
const whole = { requests: { cpu: '4' } }

test('a pod that fits nowhere waits with the reason of each node, and with what refused it', async (t) => {
  const known = aCluster(
    [{ name: 'a', unschedulable: true }, { name: 'b' }, { name: 'c' }],
    [
      { nodeName: 'b', ...whole },
      { nodeName: 'c', ...whole },
    ],
  )
  const placement = placed(aPod(whole), known)
  if (placement.found) return t.fail('it has no room')
  t.equal(placement.message, '0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu.')
  t.same([...placement.refusedBy].sort(), ['NodeResourcesFit', 'NodeUnschedulable'])
  t.same([...placement.refusals.keys()], ['a', 'b', 'c'])
  t.equal(nodeOf(aPod(), aCluster([])), 'no nodes available to schedule pods')
})

test('a pod that rules out every node has that reason alone, and no node is looked at', async (t) => {
  const conflict = [{ key: 'metadata.name', operator: 'In', values: [] }]
  const none = placed(aPod({ spec: requiringNodes({ matchFields: conflict }) }), aCluster([{ name: 'a' }]))
  t.match(none, { found: false, message: '0/1 nodes are available: pod affinity terms conflict.' })
  t.same(none.found ? undefined : [[...none.refusedBy], none.refusals.size], [['NodeAffinity'], 0])
  const claim = placed(aPod({ spec: using('data') }), aClusterWithVolumes({}))
  t.match(claim, { message: '0/2 nodes are available: persistentvolumeclaim "data" not found.' })
  t.same(claim.found ? undefined : [...claim.refusedBy], ['VolumeRestrictions'])
  const empty = placed(aPod({ spec: using('data') }), aClusterWithVolumes({ nodes: [] }))
  t.match(empty, { message: 'no nodes available to schedule pods' })
})

test('the names of a pod are tried alone, and one that does not exist is not a node', async (t) => {
  const named = (...values: readonly string[]) =>
    aPod({ spec: requiringNodes({ matchFields: [{ key: 'metadata.name', operator: 'In', values }] }), ...whole })
  const known = aCluster([{ name: 'a' }, { name: 'b' }], [{ nodeName: 'a', requests: { cpu: '1' } }])
  t.equal(nodeOf(named('gone', 'b'), known), 'b')
  const placement = placed(named('a'), known)
  t.same(placement.found ? undefined : [...placement.refusedBy].sort(), ['NodeAffinity', 'NodeResourcesFit'])
  t.equal(nodeOf(named('gone'), known), "0/2 nodes are available: 2 node(s) didn't satisfy plugin(s) [NodeAffinity].")
})

test('a pod goes to the node that was promised to it while it fits there, else to the best one', async (t) => {
  const pod = aPod({ name: 'web', priority: 10, requests: { cpu: '1' } })
  const busy = { nodeName: 'b', requests: { cpu: '2' } }
  const promised = (requests: { readonly cpu: string }) => {
    const known = aCluster([{ name: 'a' }, { name: 'b' }], [{ ...busy, requests }])
    known.nominate('default/web', pod, 'b')
    return nodeOf(pod, known)
  }
  t.equal(promised({ cpu: '3' }), 'b', 'although the other one is emptier')
  t.equal(promised({ cpu: '3500m' }), 'a')
})

test('room that was promised is kept from pods that do not matter more', async (t) => {
  const known = aCluster([{ name: 'a' }])
  known.nominate('default/promised', aPod({ name: 'promised', priority: 10, ...whole }), 'a')
  const refused = '0/1 nodes are available: 1 Insufficient cpu.'
  const at = (priority: number) => nodeOf(aPod({ name: 'web', priority, requests: { cpu: '1' } }), known)
  t.same([at(9), at(10), at(11)], [refused, refused, 'a'])
  t.equal(nodeOf(aPod({ name: 'promised', priority: 10, ...whole }), known), 'a', 'it is its own')
})

test('of a large fleet so many nodes are looked at as are enough, from the start on', async (t) => {
  const known = aCluster(Array.from({ length: 120 }, (_, index) => ({ name: `n${index}` })))
  const seen = (start: number) => {
    let looked = 0
    const walked: ClusterCache = {
      ...known,
      nodeCount: known.nodeCount,
      *from(first) {
        for (const one of known.from(first)) {
          looked++
          yield one
        }
      },
    }
    return [placed(aPod(), walked, start).found, looked]
  }
  t.same(seen(0), [true, 100])
  t.same(seen(110), [true, 100])
})

test('what the claims of a pod get is part of its place; nothing, where all are bound', async (t) => {
  const late = storedClass('late', { volumeBindingMode: 'WaitForFirstConsumer' })
  const claims = [aStoredClaim('data', { spec: { storageClassName: 'late' } })]
  const delayed = placed(aPod({ spec: using('data') }), aClusterWithVolumes({ classes: [late], claims }))
  t.match(delayed, { found: true, volumes: { bindings: [], provisions: [{ metadata: { name: 'data' } }] } })
  const annotations = { 'pv.kubernetes.io/bind-completed': 'yes' }
  const bound = aStoredClaim('data', { metadata: { annotations }, spec: { volumeName: 'disk' } })
  const ready = aClusterWithVolumes({ claims: [bound], volumes: [aStoredVolume('disk')] })
  t.same(placed(aPod({ spec: using('data') }), ready), { found: true, nodeName: 'a', volumes: undefined })
  t.match(placed(aPod(), ready), { found: true, volumes: undefined })
})
