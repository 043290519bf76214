import { test } from 'tap'
import type { Pod } from '../../api/pod.ts'
import { aNode, aPod, type NodeOverrides, type PodOverrides } from '../../api/testing/builders.ts'
import { finished } from '../../daemon/watchdog/steps.ts'
import { cluster } from './cluster.ts'
import { imageLocality } from './image-locality.ts'
import { placePod } from './placement.ts'
import { podNeeds } from './pod-needs.ts'
import { balancedAllocation, bestNode, leastAllocated } from './score.ts'

type Bound = PodOverrides & { readonly nodeName: string }

/** Where the pod goes, whatever the random choice is; undefined when it decides. */
function choice(pod: Pod, nodes: readonly NodeOverrides[], bound: readonly Bound[] = []): string | undefined {
  const known = cluster()
  for (const [i, over] of bound.entries()) known.place(`p${i}`, aPod({ ...over, name: `p${i}` }), over.nodeName)
  for (const over of nodes) known.putNode(aNode(over))
  const chosen = [0, 0.5, 0.99].map((chance) => {
    const placement = finished(placePod(pod, known, 0, () => chance))
    return placement.found ? placement.nodeName : placement.message
  })
  return chosen.every((name) => name === chosen[0]) ? chosen[0] : undefined
}

const two = [{ name: 'a' }, { name: 'b' }]

test('the emptier node is better, and equals are drawn by lot', async (t) => {
  const big = { requests: { cpu: '2', memory: '2Gi' } }
  t.equal(choice(aPod(), two, [{ nodeName: 'a', ...big }]), 'b')
  t.equal(choice(aPod(), two), undefined)
  t.equal(choice(aPod(), two, [{ nodeName: 'a' }]), 'b', 'who asks for nothing counts a little')
})

test('what stays free and how even it is, in figures', async (t) => {
  const known = cluster()
  known.putNode(aNode({ name: 'a', allocatable: { cpu: '4', memory: '4Gi' } }))
  known.place('x', aPod({ requests: { cpu: '1', memory: '2Gi' } }), 'a')
  const usage = known.node('a')
  if (usage === undefined) return t.fail('the node is gone')
  const needs = podNeeds(aPod({ requests: { cpu: '1', memory: '1Gi' } }))
  t.equal(leastAllocated(needs, usage), 37, '(50 + 25) / 2')
  t.equal(balancedAllocation(needs, usage), 87, '1 - |0.5 - 0.75| / 2')
})

test('PreferNoSchedule keeps away those who have a choice', async (t) => {
  const tainted: NodeOverrides = { name: 'a', taints: [{ key: 'slow', effect: 'PreferNoSchedule' }] }
  t.equal(choice(aPod(), [tainted, { name: 'b' }]), 'b')
  t.equal(choice(aPod(), [tainted]), 'a')
})

test('preferred affinity draws', async (t) => {
  const preference = { matchExpressions: [{ key: 'ssd', operator: 'Exists' }] }
  const preferred = [{ weight: 10, preference }]
  const pod = aPod({
    spec: { affinity: { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: preferred } } },
  })
  t.equal(choice(pod, [{ name: 'a', labels: { ssd: 'yes' } }, { name: 'b' }]), 'a')
})

test('an image that is there already draws, the more the more nodes have it', async (t) => {
  const images = [{ names: ['app:latest'], sizeBytes: 500 * 1024 * 1024 }]
  const having = (name: string): NodeOverrides => ({ name, status: { ...aNode().status, images } })
  t.equal(choice(aPod({ image: 'app' }), [{ name: 'a' }, having('b')]), 'b')
  const known = cluster()
  for (const node of [having('a'), having('b'), { name: 'c' }, { name: 'd' }]) known.putNode(aNode(node))
  const score = (name: string, image: string) => {
    const usage = known.node(name)
    return usage && imageLocality(aPod({ image }), known.carriers, known.nodeCount)(usage)
  }
  t.same([score('a', 'app'), score('a', 'app:1'), score('c', 'app')], [23, 0, 0], '(500 / 2 - 23) / (1000 - 23)')
  known.putNode(aNode({ name: 'b' }))
  t.equal(score('a', 'app:latest'), 10, 'fewer have it now')
  known.deleteNode('a')
  t.equal(known.carriers('app:latest'), 0)
})

test('pods of one owner, or with the same labels, go to different machines, then to different zones', async (t) => {
  const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: 'rs-1', controller: true }
  const ours = { metadata: { name: 'w', ownerReferences: [owner] } }
  const other: Bound = { nodeName: 'b', requests: { cpu: '200m', memory: '256Mi' } }
  t.equal(choice(aPod(ours), two, [{ nodeName: 'a', ...ours }, other]), 'b')
  const labels = { app: 'web' }
  t.equal(choice(aPod({ labels }), two, [{ nodeName: 'a', labels }, other]), 'b')
  const zone = (name: string) => ({ 'topology.kubernetes.io/zone': name })
  const zoned = [
    { name: 'a', labels: zone('1') },
    { name: 'b', labels: zone('1') },
    { name: 'c', labels: zone('2') },
  ]
  t.equal(choice(aPod({ labels }), zoned, [{ nodeName: 'a', labels }, { nodeName: 'c' }]), 'c')
})

test('without a node there is nothing to choose', async (t) => {
  t.throws(() => finished(bestNode(aPod(), [], cluster(), () => 0)), RangeError)
})

/** What a pod that asks for `pod` would find on a node with `allocatable`, on which a pod with `taken` runs. */
function figures(pod: PodOverrides, allocatable: { readonly [name: string]: string }, taken: PodOverrides = {}) {
  const known = cluster()
  known.putNode(aNode({ name: 'a', allocatable }))
  known.place('x', aPod(taken), 'a')
  const usage = known.node('a')
  const needs = podNeeds(aPod(pod))
  return usage && [leastAllocated(needs, usage), balancedAllocation(needs, usage)]
}
const asks = (cpu: string, memory: string): PodOverrides => ({ requests: { cpu, memory } })

test('a node that is full or overfull of a resource has none of it free', async (t) => {
  const node = { cpu: '4', memory: '4Gi' }
  t.same(figures(asks('2', '2Gi'), node, asks('2', '2Gi')), [0, 100], 'full')
  t.same(figures(asks('4', '1Gi'), node, asks('2', '1Gi')), [25, 75], 'overfull of cpu counts as full of it')
  t.same(
    figures(asks('2', '1Gi'), node, asks('2', '1Gi')),
    [25, 75],
    'both pods use more of its cpu than of its memory',
  )
})

test('a resource that a node has none of is not scored', async (t) => {
  const pod = asks('1', '1Gi')
  t.same(figures(pod, { cpu: '4', memory: '0' }, pod), [50, 100], 'without memory')
  t.same(figures(pod, { cpu: '0', memory: '4Gi' }, pod), [50, 100], 'without cpu')
  t.same(figures(pod, { cpu: '0', memory: '0' }), [0, 100], 'without both')
  const { memory: _, ...allocatable } = aNode().status?.allocatable ?? {}
  const known = cluster()
  known.putNode(aNode({ name: 'a', status: { ...aNode().status, allocatable } }))
  const usage = known.node('a')
  t.equal(usage && leastAllocated(podNeeds(aPod(asks('2', '1Gi'))), usage), 50, 'memory is not reported')
})

test('the node with fewer taints to avoid is better; those that are tolerated count nothing', async (t) => {
  const slow = { key: 'slow', effect: 'PreferNoSchedule' } as const
  const far = { key: 'far', effect: 'PreferNoSchedule' } as const
  const nodes: readonly NodeOverrides[] = [
    { name: 'a', taints: [slow, far] },
    { name: 'b', taints: [slow] },
  ]
  t.equal(choice(aPod(), nodes), 'b')
  const tolerations = [{ key: 'far', operator: 'Exists' }] as const
  t.equal(choice(aPod({ tolerations }), nodes), undefined, 'each has one')
  const all = [{ operator: 'Exists' }] as const
  t.equal(choice(aPod({ tolerations: all }), nodes), undefined)
})

function preferring(...weights: readonly (readonly [label: string, weight: number])[]) {
  const preferred = weights.map(([key, weight]) => ({
    weight,
    preference: { matchExpressions: [{ key, operator: 'Exists' }] },
  }))
  return { spec: { affinity: { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: preferred } } } }
}

test('the weights of all preferences that hold are added', async (t) => {
  const nodes: readonly NodeOverrides[] = [
    { name: 'a', labels: { ssd: '', roof: '' } },
    { name: 'b', labels: { fast: '' } },
  ]
  t.equal(choice(aPod(preferring(['ssd', 10], ['roof', 5], ['fast', 12])), nodes), 'a')
  t.equal(choice(aPod(preferring(['ssd', 10], ['roof', 1], ['fast', 12])), nodes), 'b')
  t.equal(choice(aPod(preferring(['missing', 100])), nodes), undefined, 'what holds nowhere decides nothing')
})

test('a taint to avoid weighs more than a preference, a preference more than free resources', async (t) => {
  const preferred = preferring(['ssd', 50])
  const slow = { key: 'slow', effect: 'PreferNoSchedule' } as const
  t.equal(choice(aPod(preferred), [{ name: 'a', labels: { ssd: '' }, taints: [slow] }, { name: 'b' }]), 'b')
  const full: Bound = { nodeName: 'a', ...asks('3900m', '4000Mi') }
  t.equal(choice(aPod(preferred), [{ name: 'a', labels: { ssd: '' } }, { name: 'b' }], [full]), 'a')
})

test('each score is of 100, so that one taint of two to avoid weighs less than a preference', async (t) => {
  const slow = { key: 'slow', effect: 'PreferNoSchedule' } as const
  const far = { key: 'far', effect: 'PreferNoSchedule' } as const
  const nodes: readonly NodeOverrides[] = [
    { name: 'a', labels: { ssd: '' }, taints: [slow, far] },
    { name: 'b', taints: [slow] },
  ]
  t.equal(choice(aPod(preferring(['ssd', 1])), nodes), 'a')
})

test('of nodes that are equally free, the one that the pod leaves more balanced is better', async (t) => {
  const allocatable = { cpu: '10', memory: '10Gi' }
  const nodes = [
    { name: 'a', allocatable },
    { name: 'b', allocatable },
  ]
  const [even, uneven] = [asks('4', '4Gi'), asks('6', '2Gi')]
  const pod = aPod(asks('1', '1Gi'))
  t.equal(
    choice(pod, nodes, [
      { nodeName: 'a', ...even },
      { nodeName: 'b', ...uneven },
    ]),
    'a',
  )
  t.equal(
    choice(pod, nodes, [
      { nodeName: 'a', ...uneven },
      { nodeName: 'b', ...even },
    ]),
    'b',
  )
})

test('a pod with affinity to pods alone has no preference for nodes', async (t) => {
  t.equal(choice(aPod({ spec: { affinity: { podAffinity: {} } } }), two, [{ nodeName: 'a' }]), 'b')
})

test('of equals chance decides among all of them, and only among them', async (t) => {
  const known = cluster()
  for (const name of ['a', 'b', 'c']) known.putNode(aNode({ name }))
  known.place('x', aPod(asks('1', '1Gi')), 'b')
  const fitting = ['a', 'b', 'c'].flatMap((name) => known.node(name) ?? [])
  const chosen = (chance: number) => finished(bestNode(aPod(), fitting, known, () => chance)).name
  t.same([0, 0.49, 0.5, 0.99].map(chosen), ['a', 'a', 'c', 'c'])
})

test('a single node that fits is taken without a score', async (t) => {
  const known = cluster()
  known.putNode(aNode({ name: 'a' }))
  let count = 0
  const carriers = (image: string) => {
    count++
    return known.carriers(image)
  }
  t.equal(finished(bestNode(aPod(), [...known.from(0)], { ...known, carriers }, () => 0)).name, 'a')
  t.equal(count, 0)
  known.putNode(aNode({ name: 'b' }))
  finished(bestNode(aPod(), [...known.from(0)], { ...known, carriers }, () => 0))
  t.ok(count > 0, 'two are compared')
})
