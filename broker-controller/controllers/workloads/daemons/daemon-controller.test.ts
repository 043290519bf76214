import { test } from 'tap'
import type { Taint } from '../../../../api/node.ts'
import { aNode } from '../../../../api/testing/builders.ts'
import type { DaemonSet } from '../../../../api/workloads/daemon-set.ts'
import { seededRandom } from '../../../../daemon/testing/seeded-random.ts'
import { update } from '../../../testing/admitting.ts'
import { crashingWorld } from '../../../testing/crashing-world.ts'
import { type WorkloadWorld, workloadWorld } from '../../../testing/workload-world.ts'
import { workloadControllers } from '../workload-controllers.ts'
import { nodeOfDaemon } from './daemon-placement.ts'

type Test = Parameters<typeof workloadWorld>[0]
const labels = { app: 'log' }
const key = { namespace: 'default', name: 'log' }
const template = (image = 'log:1') => ({ metadata: { labels }, spec: { containers: [{ name: 'main', image }] } })

async function aDaemonSet(world: WorkloadWorld, spec: Partial<DaemonSet['spec']> = {}) {
  const selector = { matchLabels: labels }
  return await world.needs.creation.create(
    'daemonsets',
    {
      apiVersion: 'apps/v1',
      kind: 'DaemonSet',
      metadata: { ...key },
      spec: { selector, template: template(), ...spec },
    },
    'test',
  )
}
const join = async ({ store }: WorkloadWorld, ...names: readonly string[]) => {
  for (const name of names) await store.create('nodes', aNode({ name }))
}
const started = async (t: Test, ...nodes: readonly string[]) => {
  const world = await workloadWorld(t)
  await join(world, ...nodes)
  world.start(workloadControllers(world.needs))
  await world.settle()
  return world
}
const statusOf = async ({ store }: WorkloadWorld) => (await store.get('daemonsets', key))?.status
/** `node image`, of pods that are not leaving. */
const placesOf = async (world: WorkloadWorld) =>
  (await world.pods())
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .map((pod) => `${nodeOfDaemon(pod)} ${pod.spec.containers[0]?.image}`)
    .sort()
const taint = async ({ store }: WorkloadWorld, name: string, ...taints: readonly Taint[]) => {
  const node = await store.get('nodes', { namespace: '', name })
  if (node) await store.update('nodes', { ...node, spec: { ...node.spec, taints: [...taints] } })
}
/** As a client would: the API counts the templates. */
const setImage = (world: WorkloadWorld, image: string) =>
  world.edit('daemonsets', 'log', (set) => {
    const wanted = { ...set, spec: { ...set.spec, template: template(image) } }
    return update('daemonsets', set, wanted) as typeof set
  })
/** Until nothing changes any more: pods run, and those that leave are gone. */
const roll = async (world: WorkloadWorld, rounds = 8) => {
  for (let round = 0; round < rounds; round++) {
    await world.runPods()
    await world.endPods()
    await world.settle()
  }
}

test('each node has one pod, also one that joins later', async (t) => {
  const world = await started(t, 'pi-1', 'pi-2')
  await aDaemonSet(world)
  await world.settle()
  t.same(await placesOf(world), ['pi-1 log:1', 'pi-2 log:1'])
  t.match(await statusOf(world), { desiredNumberScheduled: 2, currentNumberScheduled: 2, numberReady: 0 })
  const [pod] = await world.pods()
  t.match(pod, {
    metadata: {
      generateName: 'log-',
      labels: { app: 'log', 'pod-template-generation': '1', 'controller-revision-hash': /.+/ },
      ownerReferences: [{ kind: 'DaemonSet', name: 'log', controller: true }],
    },
    spec: { tolerations: { length: 6 } },
  })
  await join(world, 'pi-3')
  await world.settle()
  await world.runPods()
  await world.settle()
  t.match(await statusOf(world), {
    desiredNumberScheduled: 3,
    currentNumberScheduled: 3,
    updatedNumberScheduled: 3,
    numberReady: 3,
    numberAvailable: 3,
    numberUnavailable: undefined,
  })
  t.same(await world.events(), ['SuccessfulCreate', 'SuccessfulCreate', 'SuccessfulCreate'])
})

test('a node in trouble keeps its pod; one that is not for the set loses it', async (t) => {
  const world = await started(t, 'pi-1', 'pi-2')
  await aDaemonSet(world)
  await world.settle()
  await world.runPods()
  await taint(world, 'pi-1', { key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' })
  await taint(world, 'pi-2', { key: 'mine', effect: 'NoSchedule' })
  await world.settle()
  t.same(await placesOf(world), ['pi-1 log:1', 'pi-2 log:1'])
  t.match(await statusOf(world), { desiredNumberScheduled: 1, numberMisscheduled: 1 })
  await taint(world, 'pi-2', { key: 'mine', effect: 'NoExecute' })
  await world.settle()
  t.same(await placesOf(world), ['pi-1 log:1'])
})

test('a change of a node visits only the sets that it concerns', async (t) => {
  const world = await started(t, 'pi-1', 'pi-2')
  await aDaemonSet(world)
  await world.settle()
  await roll(world)
  const before = await world.store.version()
  const node = await world.store.get('nodes', { namespace: '', name: 'pi-1' })
  const metadata = { ...node?.metadata, annotations: { some: 'thing' } }
  if (node) await world.store.update('nodes', { ...node, metadata: { ...node.metadata, ...metadata } })
  await world.settle()
  t.equal(Number(await world.store.version()), Number(before) + 1)
})

test('a rolling update replaces one pod after the other, and keeps the old template', async (t) => {
  const world = await started(t, 'pi-1', 'pi-2', 'pi-3')
  await aDaemonSet(world)
  await world.settle()
  await roll(world)
  await setImage(world, 'log:2')
  await world.settle()
  t.equal((await world.pods()).filter(({ metadata }) => metadata.deletionTimestamp).length, 1)
  t.match(await statusOf(world), { updatedNumberScheduled: undefined, numberReady: 3, observedGeneration: 2 })
  await roll(world, 12)
  t.same(await placesOf(world), ['pi-1 log:2', 'pi-2 log:2', 'pi-3 log:2'])
  const { items } = await world.store.list('controllerrevisions')
  t.same(items.map(({ revision }) => revision).sort(), [1, 2])
  await setImage(world, 'log:1')
  await world.settle()
  await roll(world, 12)
  const again = (await world.store.list('controllerrevisions')).items
  t.same(again.map(({ revision }) => revision).sort(), [2, 3], 'a template that comes back keeps its revision')
})

test('a revision that a client creates stays, and a client can delete the one that it replaces', async (t) => {
  const world = await started(t, 'pi-1')
  await aDaemonSet(world)
  await world.settle()
  await roll(world)
  const names = async () => (await world.store.list('controllerrevisions')).items.map(({ metadata }) => metadata.name)
  const [first] = (await world.store.list('controllerrevisions')).items
  if (first === undefined) throw new Error('No revision')
  const { name: _, uid: __, resourceVersion: ___, ...metadata } = first.metadata
  const hash = { ...metadata.labels, 'controller-revision-hash': 'other' }
  await world.store.create('controllerrevisions', {
    ...first,
    metadata: { ...metadata, name: 'log-other', labels: hash },
    revision: 2,
  })
  await world.settle()
  t.same((await names()).sort(), [first.metadata.name, 'log-other'].sort())
  await world.store.delete('controllerrevisions', { namespace: 'default', name: first.metadata.name })
  await world.settle()
  await roll(world)
  t.same(await names(), ['log-other'])
})

test('only as many revisions are kept as asked, beside those that pods have', async (t) => {
  const world = await started(t, 'pi-1')
  await aDaemonSet(world, { revisionHistoryLimit: 1 })
  for (const image of ['log:2', 'log:3', 'log:4']) {
    await world.settle()
    await roll(world)
    await setImage(world, image)
  }
  await world.settle()
  await roll(world)
  t.same((await world.store.list('controllerrevisions')).items.map(({ revision }) => revision).sort(), [3, 4])
})

test('OnDelete replaces a pod when it is deleted', async (t) => {
  const world = await started(t, 'pi-1', 'pi-2')
  await aDaemonSet(world, { updateStrategy: { type: 'OnDelete' } })
  await world.settle()
  await roll(world)
  await setImage(world, 'log:2')
  await world.settle()
  await roll(world)
  t.same(await placesOf(world), ['pi-1 log:1', 'pi-2 log:1'])
  const pod = (await world.pods()).find(({ spec }) => spec.nodeName === 'pi-1')
  await world.store.delete('pods', { namespace: 'default', name: pod?.metadata.name ?? '' })
  await world.settle()
  t.same(await placesOf(world), ['pi-1 log:2', 'pi-2 log:1'])
})

test('a pod that fails again and again is replaced more and more slowly', async (t) => {
  const world = await started(t, 'pi-1')
  await aDaemonSet(world)
  await world.settle()
  const uids = new Set<string>()
  for (let second = 0; second < 16; second++) {
    for (const pod of await world.pods()) {
      uids.add(pod.metadata.uid)
      await world.store.updateStatus('pods', { ...pod, status: { phase: 'Failed' } })
    }
    await world.settle(1_000)
  }
  t.ok(uids.size >= 4 && uids.size <= 6, `${uids.size} pods in 16 s`)
  t.ok((await world.events()).includes('FailedDaemonPod'))
})

test('pods that match are adopted, and one that matches no longer is replaced', async (t) => {
  const world = await started(t, 'pi-1')
  const first = await world.store.create('pods', {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'first', namespace: 'default', labels },
    spec: { ...template().spec, nodeName: 'pi-1' },
  })
  const set = await aDaemonSet(world, { updateStrategy: { type: 'OnDelete' } })
  await world.settle()
  t.match(await world.store.get('pods', { namespace: 'default', name: 'first' }), {
    metadata: { ownerReferences: [{ uid: set.metadata.uid, controller: true }] },
  })
  t.equal((await world.pods()).length, 1)
  await world.edit('pods', 'first', (pod) => ({ ...pod, metadata: { ...pod.metadata, labels: { app: 'other' } } }))
  await world.settle()
  t.equal((await world.pods()).length, 2)
  const { metadata } = (await world.store.get('pods', { namespace: 'default', name: 'first' })) ?? first
  t.equal(metadata.ownerReferences, undefined)
})

test('a DaemonSet that is being deleted does nothing', async (t) => {
  const world = await started(t, 'pi-1')
  await aDaemonSet(world)
  await world.settle()
  const leaving = { deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['foregroundDeletion'] }
  await world.edit('daemonsets', 'log', (set) => ({ ...set, metadata: { ...set.metadata, ...leaving } }))
  for (const { metadata } of await world.pods()) await world.store.delete('pods', { ...key, name: metadata.name })
  await world.settle()
  t.equal((await world.pods()).length, 0)
})

test('wherever the process is killed, the next one ends in the same place', async (t) => {
  let crashes = 0
  for (let seed = 1; seed <= 40; seed++) {
    const random = seededRandom(seed)
    const crashing = await crashingWorld(t, random)
    const { world } = crashing
    const surges = random() < 0.5
    const rollingUpdate = surges ? { maxSurge: 1, maxUnavailable: 0 } : { maxSurge: 0, maxUnavailable: 2 }
    await join(world, 'pi-1', 'pi-2', 'pi-3')
    await aDaemonSet(world, { updateStrategy: { type: 'RollingUpdate', rollingUpdate } })
    await crashing.live(6, 6)
    await setImage(world, 'log:2')
    await crashing.live(6, 6)
    await crashing.survive()
    await roll(world, 10)
    t.same(await placesOf(world), ['pi-1 log:2', 'pi-2 log:2', 'pi-3 log:2'], `seed ${seed}`)
    t.equal((await world.pods()).length, 3)
    t.match(await statusOf(world), { desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberAvailable: 3 })
    const revisions = (await world.store.list('controllerrevisions')).items
    t.equal(Math.max(...revisions.map(({ revision = 0 }) => revision)), revisions.length, `seed ${seed}`)
    crashes += crashing.crashes()
  }
  t.ok(crashes > 100, `${crashes} crashes`)
})
