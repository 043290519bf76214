import { test } from 'tap'
import type { BuiltInTypes } from '../../../../api/resources.ts'
import type { ReplicaSet } from '../../../../api/workloads/replica-set.ts'
import { type WorkloadWorld, workloadWorld } from '../../../testing/workload-world.ts'
import { workloadControllers } from '../workload-controllers.ts'

type Test = Parameters<typeof workloadWorld>[0]
const labels = { app: 'web' }
const template = { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'nginx:1.27' }] } }

async function aSet(world: WorkloadWorld, spec: Partial<ReplicaSet['spec']> = {}, name = 'web') {
  return await world.needs.creation.create(
    'replicasets',
    {
      apiVersion: 'apps/v1',
      kind: 'ReplicaSet',
      metadata: { name, namespace: 'default' },
      spec: { selector: { matchLabels: labels }, template, ...spec },
    },
    'test',
  )
}
const barePod = (name: string, more: BuiltInTypes['pods']['metadata'] = { labels }): BuiltInTypes['pods'] => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'default', ...more },
  spec: template.spec,
})
const rejected = { phase: 'Failed', reason: 'Evicted' } as const
const started = async (t: Test) => {
  const world = await workloadWorld(t)
  world.start(workloadControllers(world.needs))
  await world.settle()
  return world
}
const statusOf = async ({ store }: WorkloadWorld) =>
  (await store.get('replicasets', { namespace: 'default', name: 'web' }))?.status

test('a ReplicaSet creates its pods, counts them and replaces those that are gone', async (t) => {
  const world = await started(t)
  await aSet(world, { replicas: 3 })
  await world.settle()
  t.equal((await world.pods()).length, 3)
  t.same(await statusOf(world), { replicas: 3, fullyLabeledReplicas: 3, observedGeneration: 1 })
  await world.runPods()
  await world.settle()
  t.match(await statusOf(world), { readyReplicas: 3, availableReplicas: 3 })
  const [first] = await world.pods()
  await world.store.delete('pods', { namespace: 'default', name: first?.metadata.name ?? '' })
  await world.settle()
  t.equal((await world.pods()).length, 3)
  t.match(await statusOf(world), { replicas: 3, readyReplicas: 2 })
})

test('a pod that ended or is leaving is replaced at once', async (t) => {
  const world = await started(t)
  await aSet(world, { replicas: 2 })
  await world.settle()
  await world.runPods()
  const [ended, leaving] = await world.pods()
  if (!ended || !leaving) return t.fail('no pods')
  await world.store.updateStatus('pods', { ...ended, status: { phase: 'Failed' } })
  const deletionTimestamp = '2026-01-01T00:01:00Z'
  await world.store.update('pods', { ...leaving, metadata: { ...leaving.metadata, deletionTimestamp } })
  await world.settle()
  t.equal((await world.pods()).length, 4)
  t.match(await statusOf(world), { replicas: 2, readyReplicas: undefined })
})

test('pods that a node rejects without end are replaced less and less often, until they are deleted', async (t) => {
  const world = await started(t)
  const start = world.clock.wallMs()
  await aSet(world, { replicas: 3 })
  const active = async () => (await world.pods()).filter(({ status }) => status?.phase !== 'Failed')
  while (world.clock.wallMs() < start + 600_000) {
    await world.settle(1_000)
    for (const pod of await active()) await world.store.updateStatus('pods', { ...pod, status: rejected })
  }
  const { length } = await world.pods()
  t.ok(length >= 24 && length <= 36, `${length} pods in ten minutes`)
  t.ok((await world.events()).includes('BackOff'))
  for (const { metadata } of await world.pods()) {
    await world.store.delete('pods', { namespace: 'default', name: metadata.name })
  }
  await world.settle()
  t.equal((await active()).length, 3)
})

test('pods of a silent machine are replaced when they are evicted, and not before', async (t) => {
  const world = await started(t)
  await aSet(world, { replicas: 3 })
  await world.settle()
  await world.runPods()
  await world.runPods(() => false) // as the node lifecycle marks the pods of a node that is not ready
  await world.settle(3_600_000)
  t.equal((await world.pods()).length, 3)
  t.match(await statusOf(world), { replicas: 3, readyReplicas: undefined })
})

test('a controller that starts again creates nothing that is there', async (t) => {
  const world = await workloadWorld(t)
  const stop = world.start(workloadControllers(world.needs))
  await world.settle()
  await aSet(world, { replicas: 50 })
  await world.settle()
  await stop()
  t.equal((await world.pods()).length, 50)
  world.start(workloadControllers(world.needs))
  await world.settle(60_000)
  t.equal((await world.pods()).length, 50)
})

test('scaling down deletes what serves least', async (t) => {
  const world = await started(t)
  await aSet(world, { replicas: 3 })
  await world.settle()
  const [unready] = await world.pods()
  await world.runPods((pod) => pod.metadata.name !== unready?.metadata.name)
  await world.settle()
  await world.edit('replicasets', 'web', (set) => ({ ...set, spec: { ...set.spec, replicas: 2 } }))
  await world.settle()
  const leaving = (await world.pods()).filter(({ metadata }) => metadata.deletionTimestamp !== undefined)
  t.same(
    leaving.map(({ metadata }) => metadata.name),
    [unready?.metadata.name],
  )
  t.match(await statusOf(world), { replicas: 2, readyReplicas: 2, observedGeneration: 2 })
})

test('pods that are there already are adopted, and one whose labels change is released and replaced', async (t) => {
  const world = await started(t)
  await world.store.create('pods', barePod('first'))
  await world.store.create('pods', barePod('other', { labels: { app: 'db' } }))
  const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'x', uid: 'x', controller: true }
  await world.store.create('pods', barePod('taken', { labels, ownerReferences: [owner] }))
  const set = await aSet(world, { replicas: 2 })
  await world.settle()
  const own = async () =>
    (await world.pods()).filter((pod) => pod.metadata.ownerReferences?.some(({ uid }) => uid === set.metadata.uid))
  t.equal((await own()).length, 2)
  t.equal((await world.pods()).length, 4, 'one was adopted, one created')
  await world.edit('pods', 'first', (pod) => ({ ...pod, metadata: { ...pod.metadata, labels: { app: 'debug' } } }))
  await world.settle()
  const freed = (await world.pods()).find(({ metadata }) => metadata.name === 'first')
  t.equal(freed?.metadata.ownerReferences, undefined)
  t.equal((await own()).length, 2)
  await world.store.create('pods', barePod('late'))
  await world.settle()
  t.equal((await own()).filter(({ metadata }) => metadata.deletionTimestamp === undefined).length, 2)
  t.ok((await own()).length <= 3, 'a pod too many was adopted and one was deleted')
})

test('availability waits for minReadySeconds', async (t) => {
  const world = await started(t)
  await aSet(world, { replicas: 1, minReadySeconds: 30 })
  await world.settle()
  await world.runPods()
  await world.settle()
  t.match(await statusOf(world), { readyReplicas: 1, availableReplicas: undefined })
  await world.settle(31_000)
  t.match(await statusOf(world), { readyReplicas: 1, availableReplicas: 1 })
})

test('a refusal is a condition and one Event, and ends with its cause', async (t) => {
  const world = await started(t)
  await world.store.create('resourcequotas', {
    apiVersion: 'v1',
    kind: 'ResourceQuota',
    metadata: { name: 'few', namespace: 'default' },
    spec: { hard: { pods: '2' } },
  })
  await aSet(world, { replicas: 5 })
  await world.settle()
  t.equal((await world.pods()).length, 2)
  t.match(await statusOf(world), {
    replicas: 2,
    conditions: [{ type: 'ReplicaFailure', status: 'True', reason: 'FailedCreate', message: /exceeded quota/ }],
  })
  t.ok((await world.events()).includes('FailedCreate'))
  await world.store.delete('resourcequotas', { namespace: 'default', name: 'few' })
  await world.settle(60_000)
  t.equal((await world.pods()).length, 5)
  t.equal((await statusOf(world))?.conditions, undefined)
})

test('the Events of many pods are ten, of which one counts the others', async (t) => {
  const world = await started(t)
  await aSet(world, { replicas: 400 })
  await world.settle()
  t.equal((await world.pods()).length, 400)
  const events = (await world.store.list('events')).items
  t.equal(events.length, 10)
  t.match(events.at(-1), {
    reason: 'SuccessfulCreate',
    message: /^\(combined from similar events\): Created pod: web-/,
  })
})

test('a ReplicaSet that is being deleted creates nothing', async (t) => {
  const world = await started(t)
  await aSet(world, { replicas: 2 })
  await world.settle()
  const metadata = { deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['foregroundDeletion'] }
  await world.edit('replicasets', 'web', (set) => ({ ...set, metadata: { ...set.metadata, ...metadata } }))
  const [first] = await world.pods()
  await world.store.delete('pods', { namespace: 'default', name: first?.metadata.name ?? '' })
  await world.settle()
  t.equal((await world.pods()).length, 1)
})

test('a ReplicationController is the same under its older kind', async (t) => {
  const world = await started(t)
  await world.needs.creation.create(
    'replicationcontrollers',
    {
      apiVersion: 'v1',
      kind: 'ReplicationController',
      metadata: { name: 'old', namespace: 'default' },
      spec: { replicas: 2, template },
    },
    'test',
  )
  await world.settle()
  const pods = await world.pods()
  t.equal(pods.length, 2)
  t.match(pods[0]?.metadata.ownerReferences, [{ apiVersion: 'v1', kind: 'ReplicationController', name: 'old' }])
  const one = await world.store.get('replicationcontrollers', { namespace: 'default', name: 'old' })
  t.match(one, { metadata: { labels }, spec: { selector: labels }, status: { replicas: 2 } })
})

test('a pod of another namespace that names the uid of a ReplicaSet does not become a replica of it', async (t) => {
  const world = await started(t)
  const set = await aSet(world, { replicas: 2 })
  await world.settle()
  const { apiVersion, kind, metadata } = set
  const reference = { apiVersion, kind, name: metadata.name, uid: metadata.uid, controller: true }
  const namespace = 'elsewhere'
  const ready = { type: 'Ready', status: 'True', lastTransitionTime: '2025-01-01T00:00:00Z' } as const
  for (const name of ['alike', 'unlike']) {
    const meta = { namespace, name, ...(name === 'alike' && { labels }), ownerReferences: [reference] }
    const pod = await world.store.create('pods', barePod(name, meta))
    await world.store.updateStatus('pods', { ...pod, status: { phase: 'Running', conditions: [ready] } })
  }
  const stored = await world.store.get('replicasets', { namespace: 'default', name: 'web' })
  if (stored)
    await world.store.update('replicasets', { ...stored, metadata: { ...stored.metadata, annotations: { a: 'b' } } })
  await world.settle()
  const all = (await world.store.list('pods')).items
  const here = all.filter((pod) => pod.metadata.namespace === 'default')
  t.equal(here.filter((pod) => pod.metadata.ownerReferences?.[0]?.uid === metadata.uid).length, 2)
  t.match(await statusOf(world), { replicas: 2, readyReplicas: undefined })
  const there = all.filter((pod) => pod.metadata.namespace === namespace)
  t.same(
    there.map((pod) => pod.metadata.ownerReferences?.[0]?.uid),
    [metadata.uid, metadata.uid],
    'nor released by it',
  )
})
