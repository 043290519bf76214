import { test } from 'tap'
import { ApiError } from '../../../../api/api-error.ts'
import type { StatefulSet } from '../../../../api/workloads/stateful-set.ts'
import type { Log } from '../../../../daemon/log.ts'
import { quietLog } from '../../../../daemon/testing/quiet-log.ts'
import { seededRandom } from '../../../../daemon/testing/seeded-random.ts'
import { builtInKinds } from '../../../assembly/control-plane.ts'
import { crashingStore } from '../../../testing/crashing-store.ts'
import { type WorkloadWorld, workloadWorld } from '../../../testing/workload-world.ts'
import { garbageCollector } from '../../garbage/garbage-collector.ts'
import { workloadControllers } from '../workload-controllers.ts'

type Test = Parameters<typeof workloadWorld>[0]
const labels = { app: 'db' }
const claims = [
  { metadata: { name: 'data' }, spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } } },
]

/** Worlds whose API refuses claims. */
const refusing = new WeakSet<object>()

/** Nodes cannot mount claims yet, and the API refuses pods that use them: these get their claims after they were admitted. */
function needsOf(world: WorkloadWorld): WorkloadWorld['needs'] {
  const { needs, store } = world
  const create: typeof needs.creation.create = async (resource, object, account) => {
    if (resource === 'persistentvolumeclaims' && refusing.has(world)) throw new ApiError('Forbidden', 'too many claims')
    if (resource !== 'pods') return await needs.creation.create(resource, object, account)
    const { spec } = object as { spec: { volumes?: readonly { persistentVolumeClaim?: object }[] } }
    const volumes = (spec.volumes ?? []).filter(({ persistentVolumeClaim }) => persistentVolumeClaim === undefined)
    const made = await needs.creation.create(resource, { ...object, spec: { ...spec, volumes } } as never, account)
    return (await store.update(resource, { ...made, spec: { ...spec } } as never)) as never
  }
  return { ...needs, creation: { create } }
}

async function started(
  t: Test,
  spec: Partial<StatefulSet['spec']> = {},
  { log, ...given }: Parameters<typeof workloadWorld>[1] & { readonly log?: Log } = {},
) {
  const world = await workloadWorld(t, given)
  const needs = { ...needsOf(world), ...(log && { log }) }
  const loops = () => [...workloadControllers(needs), garbageCollector({ ...needs, resources: builtInKinds } as never)]
  const template = { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'db:1' }] } }
  await needs.creation.create(
    'statefulsets',
    {
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: { namespace: 'default', name: 'db' },
      spec: {
        replicas: 2,
        selector: { matchLabels: labels },
        template,
        serviceName: 'db',
        volumeClaimTemplates: claims,
        ...spec,
      },
    },
    'test',
  )
  const names = async () =>
    (await world.store.list('persistentvolumeclaims')).items.map(({ metadata }) => metadata.name)
  const owners = async (name: string) => {
    const claim = await world.store.get('persistentvolumeclaims', { namespace: 'default', name })
    return claim?.metadata.ownerReferences?.map((one) => `${one.kind} ${one.name}`) ?? []
  }
  const roll = async (rounds = 5) => {
    for (let round = 0; round < rounds; round++) {
      await world.settle()
      await world.runPods()
      await world.settle()
      await world.endPods()
    }
    await world.settle()
  }
  const scale = (replicas: number) =>
    world.edit('statefulsets', 'db', (set) => ({ ...set, spec: { ...set.spec, replicas } }))
  return { world, loops, names, owners, roll, scale }
}
/** Without the finalizer that protects claims: nothing uses them here. */
async function unprotect({ store }: WorkloadWorld) {
  for (const claim of (await store.list('persistentvolumeclaims')).items) {
    const { finalizers: _, ...metadata } = claim.metadata
    await store.update('persistentvolumeclaims', { ...claim, metadata })
  }
}

test('each pod has a claim of its place, made before it, that stays when the set is scaled down', async (t) => {
  const { world, loops, names, roll, scale } = await started(t)
  world.start(loops())
  await roll()
  t.same(await names(), ['data-db-0', 'data-db-1'])
  t.match((await world.store.get('pods', { namespace: 'default', name: 'db-1' }))?.spec.volumes, [
    { name: 'data', persistentVolumeClaim: { claimName: 'data-db-1' } },
  ])
  const messages = (await world.store.list('events')).items.map(({ message }) => message)
  t.same(messages.slice(0, 2), [
    'create Claim data-db-0 Pod db-0 in StatefulSet db success',
    'create Pod db-0 in StatefulSet db successful',
  ])
  await scale(0)
  await roll()
  t.equal((await world.pods()).length, 0)
  t.same(await names(), ['data-db-0', 'data-db-1'])
})

test('a claim that is deleted while its pod waits is made again, and one that is being deleted blocks its pod', async (t) => {
  const { world, loops, names, roll } = await started(t, { replicas: 1 })
  world.start(loops())
  await world.settle()
  const [pod] = await world.pods()
  if (pod) await world.store.updateStatus('pods', { ...pod, status: { phase: 'Pending' } })
  await world.store.delete('persistentvolumeclaims', { namespace: 'default', name: 'data-db-0' })
  await world.settle()
  t.same(await names(), ['data-db-0'])
  const claim = await world.store.get('persistentvolumeclaims', { namespace: 'default', name: 'data-db-0' })
  const deletionTimestamp = '2026-01-01T00:00:00Z'
  if (claim)
    await world.store.update('persistentvolumeclaims', { ...claim, metadata: { ...claim.metadata, deletionTimestamp } })
  await world.store.delete('pods', { namespace: 'default', name: 'db-0' })
  await world.settle()
  t.equal((await world.pods()).length, 0)
  t.ok(
    (await world.store.list('events')).items.some(
      ({ message }) => message === 'create Pod db-0 in StatefulSet db failed error: pvc data-db-0 is being deleted',
    ),
  )
  await world.store.delete('persistentvolumeclaims', { namespace: 'default', name: 'data-db-0' })
  await roll(2)
  t.equal((await world.pods()).length, 1)
})

test('a claim that is refused while its pod waits has one Event, as no update of the pod failed', async (t) => {
  const { world, loops } = await started(t, { replicas: 1 }, { log: quietLog(t, 'Reconcile failed') })
  world.start(loops())
  await world.settle()
  const [pod] = await world.pods()
  if (pod) await world.store.updateStatus('pods', { ...pod, status: { phase: 'Pending' } })
  refusing.add(world)
  await world.store.delete('persistentvolumeclaims', { namespace: 'default', name: 'data-db-0' })
  await world.settle()
  const warnings = (await world.store.list('events')).items.filter(({ type }) => type === 'Warning')
  t.same(
    [...new Set(warnings.map(({ reason, message }) => `${reason}: ${message}`))],
    ['FailedCreate: create Claim data-db-0 for Pod db-0 in StatefulSet db failed error: too many claims'],
  )
})

test('with whenScaled Delete the claims of places that go are deleted, and the others stay', async (t) => {
  const persistentVolumeClaimRetentionPolicy = { whenScaled: 'Delete', whenDeleted: 'Retain' }
  const { world, loops, names, owners, roll, scale } = await started(t, { persistentVolumeClaimRetentionPolicy })
  world.start(loops())
  await roll()
  await unprotect(world)
  t.same(await owners('data-db-1'), [])
  await scale(1)
  await world.settle()
  t.same(await owners('data-db-1'), ['Pod db-1'], 'before the pod is gone')
  await roll()
  t.same(await names(), ['data-db-0'])
})

test('with whenDeleted Delete the claims belong to the set', async (t) => {
  const persistentVolumeClaimRetentionPolicy = { whenScaled: 'Retain', whenDeleted: 'Delete' }
  const { world, loops, names, owners, roll } = await started(t, { persistentVolumeClaimRetentionPolicy })
  world.start(loops())
  await roll()
  t.same(await owners('data-db-0'), ['StatefulSet db'])
  await world.edit('statefulsets', 'db', (set) => {
    const policy = { whenScaled: 'Retain', whenDeleted: 'Retain' }
    return { ...set, spec: { ...set.spec, persistentVolumeClaimRetentionPolicy: policy } }
  })
  await world.settle()
  t.same(await owners('data-db-0'), [], 'the policy was changed')
  await world.store.delete('statefulsets', { namespace: 'default', name: 'db' })
  await world.settle()
  t.same(await names(), ['data-db-0', 'data-db-1'])
})

test('wherever the process is killed, no claim of a place that stays is deleted, and none of one that goes is left', async (t) => {
  let [crashes, kept] = [0, 0]
  for (let seed = 1; seed <= 12; seed++) {
    const random = seededRandom(seed)
    let crashing: ReturnType<typeof crashingStore> | undefined
    const persistentVolumeClaimRetentionPolicy = { whenScaled: 'Delete', whenDeleted: 'Delete' }
    const spec = {
      replicas: 3,
      persistentVolumeClaimRetentionPolicy,
      podManagementPolicy: random() < 0.5 ? 'Parallel' : 'OrderedReady',
    }
    const { world, loops, names, owners, roll, scale } = await started(t, spec, {
      store(inner) {
        crashing = crashingStore(inner)
        return crashing.store
      },
    })
    if (crashing === undefined) throw new Error('no store')
    const live = async (count: number) => {
      for (let life = 0; life < count; life++) {
        crashing?.allow(Math.floor(random() * 6))
        const end = world.start(loops())
        await roll(1)
        await unprotect(world)
        await end()
        if (crashing?.crashed()) crashes++
      }
    }
    await live(5)
    await scale(1)
    await live(4)
    crashing.allow(Number.POSITIVE_INFINITY)
    const end = world.start(loops())
    await roll(8)
    await unprotect(world)
    await roll(3)
    const left = await names()
    t.ok(left.includes('data-db-0'), `seed ${seed}`)
    // As in Kubernetes, one that was made before the kill, and whose pod never was, belongs to nothing. It holds no data.
    for (const name of left) if (name !== 'data-db-0') t.same(await owners(name), [], `seed ${seed}, ${name}`)
    kept += left.length
    await end()
  }
  t.ok(crashes > 20 && kept < 18, `${crashes} crashes, ${kept} claims left`)
})
