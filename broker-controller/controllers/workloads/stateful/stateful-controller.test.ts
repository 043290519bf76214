import { test } from 'tap'
import type { Node } from '../../../../api/node.ts'
import { aNode } from '../../../../api/testing/builders.ts'
import type { StatefulSet } from '../../../../api/workloads/stateful-set.ts'
import { seededRandom } from '../../../../daemon/testing/seeded-random.ts'
import { update } from '../../../testing/admitting.ts'
import { crashingWorld } from '../../../testing/crashing-world.ts'
import { type WorkloadWorld, workloadWorld } from '../../../testing/workload-world.ts'
import { podCleanupController } from '../../pods/pod-cleanup-controller.ts'
import { taintEvictionController } from '../../pods/taint-eviction-controller.ts'
import { revisionData } from '../history/revisions.ts'
import { workloadControllers } from '../workload-controllers.ts'

type Test = Parameters<typeof workloadWorld>[0]
const labels = { app: 'db' }
const key = { namespace: 'default', name: 'db' }
const template = (image = 'db:1') => ({ metadata: { labels }, spec: { containers: [{ name: 'main', image }] } })

async function aSet(world: WorkloadWorld, spec: Partial<StatefulSet['spec']> = {}) {
  const selector = { matchLabels: labels }
  return await world.needs.creation.create(
    'statefulsets',
    {
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: { ...key },
      spec: { selector, template: template(), serviceName: 'db', replicas: 3, ...spec },
    },
    'test',
  )
}
const started = async (t: Test) => {
  const world = await workloadWorld(t)
  world.start(workloadControllers(world.needs))
  await world.settle()
  return world
}
const statusOf = async ({ store }: WorkloadWorld) => (await store.get('statefulsets', key))?.status
const imagesOf = async (world: WorkloadWorld) =>
  (await world.pods()).map(({ metadata, spec }) => `${metadata.name} ${spec.containers[0]?.image}`).sort()
/** As a client would. */
const change = (world: WorkloadWorld, spec: Partial<StatefulSet['spec']>) =>
  world.edit('statefulsets', 'db', (set) => {
    return update('statefulsets', set, { ...set, spec: { ...set.spec, ...spec } }) as typeof set
  })
const roll = async (world: WorkloadWorld, rounds = 10) => {
  for (let round = 0; round < rounds; round++) {
    await world.runPods()
    await world.settle()
    await world.endPods()
    await world.settle()
  }
}
/** As a version wrote it that kept empty fields of templates. */
const withEmptyFields = {
  metadata: { labels },
  spec: {
    containers: [{ name: 'main', image: 'db:1', env: [{ name: 'A', value: '' }], stdin: false }],
    hostNetwork: false,
  },
}
const leavingOf = async (world: WorkloadWorld) =>
  (await world.pods()).filter(({ metadata }) => metadata.deletionTimestamp).map(({ metadata }) => metadata.name)

test('pods come one after the other, with names that stay', async (t) => {
  const world = await started(t)
  await aSet(world)
  await world.settle(5_000)
  t.same(await imagesOf(world), ['db-0 db:1'])
  await roll(world, 3)
  t.same(await imagesOf(world), ['db-0 db:1', 'db-1 db:1', 'db-2 db:1'])
  t.match(await world.store.get('pods', { namespace: 'default', name: 'db-1' }), {
    metadata: {
      labels: { 'statefulset.kubernetes.io/pod-name': 'db-1', 'apps.kubernetes.io/pod-index': '1' },
      ownerReferences: [{ kind: 'StatefulSet', name: 'db', controller: true }],
    },
    spec: { hostname: 'db-1', subdomain: 'db' },
  })
  const status = await statusOf(world)
  t.match(status, { replicas: 3, readyReplicas: 3, currentReplicas: 3, updatedReplicas: 3, availableReplicas: 3 })
  t.equal(status?.currentRevision, status?.updateRevision)
  const [revision] = (await world.store.list('controllerrevisions')).items
  const hash = revision?.metadata.name.slice('db-'.length)
  t.same(revision?.metadata.labels, { ...labels, 'controller.kubernetes.io/hash': hash })
  t.same(await world.events(), ['SuccessfulCreate', 'SuccessfulCreate', 'SuccessfulCreate'])
  const [event] = (await world.store.list('events')).items
  t.equal(event?.message, 'create Pod db-0 in StatefulSet db successful')
})

test('a pod that nodes reject without end is replaced less and less often, until the set is changed', async (t) => {
  const world = await started(t)
  const start = world.clock.wallMs()
  await aSet(world)
  const seen = new Set<string>()
  const reject = async (forMs: number) => {
    while (world.clock.wallMs() < start + forMs) {
      await world.settle(1_000)
      for (const pod of await world.pods()) {
        seen.add(pod.metadata.uid)
        await world.store.updateStatus('pods', { ...pod, status: { phase: 'Failed', reason: 'Evicted' } })
      }
    }
  }
  await reject(600_000)
  t.ok(seen.size >= 9 && seen.size <= 12, `${seen.size} pods in ten minutes`)
  await change(world, { template: template('db:2') })
  await world.settle()
  t.same(await imagesOf(world), ['db-0 db:2'])
  t.equal((await world.pods())[0]?.status?.phase, 'Pending')
})

test('in parallel they come together', async (t) => {
  const world = await started(t)
  await aSet(world, { podManagementPolicy: 'Parallel', ordinals: { start: 7 } })
  await world.settle()
  t.same(await imagesOf(world), ['db-7 db:1', 'db-8 db:1', 'db-9 db:1'])
})

test('scaling down takes the last ones, and up brings them back', async (t) => {
  const world = await started(t)
  await aSet(world)
  await world.settle()
  await roll(world, 3)
  await change(world, { replicas: 1 })
  await world.settle()
  t.same(await leavingOf(world), ['db-2'])
  await roll(world, 3)
  t.same(await imagesOf(world), ['db-0 db:1'])
  await change(world, { replicas: 2 })
  await world.settle()
  t.same(await imagesOf(world), ['db-0 db:1', 'db-1 db:1'])
})

test('an update goes from the last to the first, and can be undone', async (t) => {
  const world = await started(t)
  await aSet(world)
  await world.settle()
  await roll(world, 3)
  await change(world, { template: template('db:2') })
  await world.settle()
  t.same(await leavingOf(world), ['db-2'])
  t.match(await statusOf(world), { currentReplicas: 2, updatedReplicas: undefined })
  await roll(world)
  t.same(await imagesOf(world), ['db-0 db:2', 'db-1 db:2', 'db-2 db:2'])
  await change(world, { template: template('db:1') })
  await world.settle()
  await roll(world)
  t.same(await imagesOf(world), ['db-0 db:1', 'db-1 db:1', 'db-2 db:1'])
  const numbers = (await world.store.list('controllerrevisions')).items.map(({ revision }) => revision)
  t.same(numbers.sort(), [2, 3])
})

test('below the partition a pod comes back with the template it had', async (t) => {
  const world = await started(t)
  await aSet(world, { updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 2 } } })
  await world.settle()
  await roll(world, 3)
  await change(world, { template: template('db:2') })
  await world.settle()
  await roll(world, 4)
  t.same(await imagesOf(world), ['db-0 db:1', 'db-1 db:1', 'db-2 db:2'])
  await world.store.delete('pods', { namespace: 'default', name: 'db-1' })
  await world.settle()
  t.same(await imagesOf(world), ['db-0 db:1', 'db-1 db:1', 'db-2 db:2'])
  const status = await statusOf(world)
  t.not(status?.currentRevision, status?.updateRevision)
})

test('only as many revisions are kept as asked', async (t) => {
  const world = await started(t)
  await aSet(world, { replicas: 1, revisionHistoryLimit: 1 })
  for (const image of ['db:2', 'db:3', 'db:4', 'db:5']) {
    await world.settle()
    await roll(world, 3)
    await change(world, { template: template(image) })
  }
  await world.settle()
  await roll(world, 4)
  const numbers = (await world.store.list('controllerrevisions')).items.map(({ revision }) => revision)
  t.same(numbers.sort(), [4, 5])
})

test('pods with the names of the set are adopted, and others with its labels are not', async (t) => {
  const world = await started(t)
  const bare = (name: string) =>
    ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: 'default', labels },
      spec: template().spec,
    }) as const
  await world.store.create('pods', bare('db-0'))
  await world.store.create('pods', bare('other'))
  await aSet(world, { updateStrategy: { type: 'OnDelete' } })
  await world.settle()
  await roll(world, 3)
  const ownerOf = async (name: string) =>
    (await world.store.get('pods', { namespace: 'default', name }))?.metadata.ownerReferences?.[0]?.name
  t.equal(await ownerOf('db-0'), 'db')
  t.equal(await ownerOf('other'), undefined)
  t.match(await world.store.get('pods', { namespace: 'default', name: 'db-0' }), {
    metadata: { labels: { 'statefulset.kubernetes.io/pod-name': 'db-0' } },
  })
  t.ok((await world.events()).includes('SuccessfulUpdate'))
})

test('a name that is taken is waited for', async (t) => {
  const world = await started(t)
  await world.store.create('pods', {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'db-0', namespace: 'default', labels: { app: 'web' } },
    spec: template().spec,
  })
  await aSet(world)
  await world.settle(1_000)
  t.equal((await world.pods()).length, 1)
  await world.store.delete('pods', { namespace: 'default', name: 'db-0' })
  await world.settle(60_000)
  t.match((await world.pods())[0], { metadata: { name: 'db-0', labels } })
})

/** A set of two whose second pod runs on a machine that then does not answer, until the pod has been evicted. */
async function withLostMachine(t: Test) {
  const world = await workloadWorld(t)
  const { store, needs } = world
  await store.create('nodes', aNode({ name: 'pi-01' }))
  world.start([...workloadControllers(needs), taintEvictionController(needs), podCleanupController(needs)])
  await aSet(world, { replicas: 2 })
  await world.settle()
  await roll(world, 2)
  const lost = await store.get('pods', { namespace: 'default', name: 'db-1' })
  const edit = async (changed: (node: Node) => Node) => {
    const node = await store.get('nodes', { namespace: '', name: 'pi-01' })
    if (node !== undefined) await store.update('nodes', changed(node))
  }
  const taints = (...keys: readonly string[]) =>
    edit((node) => ({
      ...node,
      spec: { ...node.spec, taints: keys.map((one) => ({ key: one, effect: 'NoExecute' as const })) },
      status: { ...node.status, conditions: [{ type: 'Ready', status: 'Unknown' }] },
    }))
  await taints('node.kubernetes.io/unreachable')
  await world.settle(400_000)
  return { world, lost, taints, edit }
}

test('a pod on a machine that does not answer is not run twice', async (t) => {
  const { world, lost } = await withLostMachine(t)
  t.same(await leavingOf(world), ['db-0', 'db-1'], 'both were on it')
  await world.settle(86_400_000)
  t.equal((await world.store.get('pods', { namespace: 'default', name: 'db-1' }))?.metadata.uid, lost?.metadata.uid)
  t.equal((await world.pods()).length, 2)
})

test('a machine that is declared out of service gives its pods up', async (t) => {
  const { world, lost, taints } = await withLostMachine(t)
  await taints('node.kubernetes.io/unreachable', 'node.kubernetes.io/out-of-service')
  await world.settle(60_000)
  t.same(
    (await world.pods()).map(({ metadata, spec }) => [metadata.name, spec.nodeName]),
    [['db-0', undefined]],
  )
  await taints()
  await world.runPods()
  await world.settle()
  const again = await world.store.get('pods', { namespace: 'default', name: 'db-1' })
  t.ok(again)
  t.not(again?.metadata.uid, lost?.metadata.uid)
})

test('a machine that is back under a new boot ends its pods itself: it may run them again from its checkpoint', async (t) => {
  const { world, lost, edit } = await withLostMachine(t)
  await edit((node) => {
    const { nodeInfo } = node.status ?? {}
    return { ...node, status: { ...node.status, ...(nodeInfo && { nodeInfo: { ...nodeInfo, bootID: 'another' } }) } }
  })
  await world.settle(60_000)
  t.same(await leavingOf(world), ['db-0', 'db-1'])
  t.equal((await world.store.get('pods', { namespace: 'default', name: 'db-1' }))?.metadata.uid, lost?.metadata.uid)
})

test('a condition of another client stays, also when it is written beside a count', async (t) => {
  const conditions = [{ type: 'Mine', status: 'True' }] as const
  let isLate = false
  const world = await workloadWorld(t, {
    store: (inner) => ({
      ...inner,
      async get(resource, at) {
        if (resource === 'statefulsets' && isLate) {
          isLate = false
          const set = await inner.get('statefulsets', at)
          if (set) await inner.updateStatus('statefulsets', { ...set, status: { ...set.status, conditions } })
        }
        return await inner.get(resource, at)
      },
    }),
  })
  world.start(workloadControllers(world.needs))
  await aSet(world, { replicas: 1 })
  await world.settle()
  isLate = true
  await world.runPods()
  await world.settle()
  t.notOk(isLate)
  t.match(await statusOf(world), { conditions, readyReplicas: 1 })
})

test('a set that is being deleted does nothing but count', async (t) => {
  const world = await started(t)
  await aSet(world)
  await world.settle()
  await roll(world, 3)
  const leaving = { deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['foregroundDeletion'] }
  await world.edit('statefulsets', 'db', (set) => ({ ...set, metadata: { ...set.metadata, ...leaving } }))
  await world.store.delete('pods', { namespace: 'default', name: 'db-2' })
  await world.settle()
  t.equal((await world.pods()).length, 2)
  t.match(await statusOf(world), { replicas: 2 })
})

test('wherever the process is killed, the next one ends in the same place', async (t) => {
  let crashes = 0
  for (let seed = 1; seed <= 40; seed++) {
    const random = seededRandom(seed)
    const crashing = await crashingWorld(t, random)
    const { world } = crashing
    await aSet(world, { podManagementPolicy: random() < 0.5 ? 'Parallel' : 'OrderedReady' })
    await crashing.live(6, 5)
    await change(world, { template: template('db:2'), replicas: 2 })
    await crashing.live(6, 5)
    await crashing.survive()
    await roll(world)
    t.same(await imagesOf(world), ['db-0 db:2', 'db-1 db:2'], `seed ${seed}`)
    t.match(await statusOf(world), { replicas: 2, updatedReplicas: 2, currentReplicas: 2, availableReplicas: 2 })
    const numbers = (await world.store.list('controllerrevisions')).items.map(({ revision = 0 }) => revision)
    t.equal(Math.max(...numbers), numbers.length, `seed ${seed}`)
    crashes += crashing.crashes()
  }
  t.ok(crashes > 100, `${crashes} crashes`)
})

test('a template that was stored with its empty fields gets no other revision when the set is scaled', async (t) => {
  const world = await started(t)
  await aSet(world, { replicas: 1 })
  await roll(world, 2)
  const [revision] = (await world.store.list('controllerrevisions')).items
  if (revision === undefined) throw new Error('no revision')
  await world.store.update('controllerrevisions', { ...revision, data: revisionData(withEmptyFields) })
  await world.edit('statefulsets', 'db', (set) => ({ ...set, spec: { ...set.spec, template: withEmptyFields } }))
  await roll(world, 2)
  await change(world, { replicas: 2 })
  await roll(world, 3)
  t.not(
    (await world.store.get('statefulsets', key))?.spec.template.spec.hostNetwork,
    false,
    'the update leaves them out',
  )
  const revisions = (await world.store.list('controllerrevisions')).items
  t.same(
    revisions.map(({ metadata }) => metadata.name),
    [revision.metadata.name],
  )
  t.equal((await world.pods()).length, 2)
})
