import { type Test, test } from 'tap'
import type { ConfigMap } from '../../api/config-map.ts'
import type { Pod } from '../../api/pod.ts'
import { type BuiltInName, resources } from '../../api/resources.ts'
import { aPod } from '../../api/testing/builders.ts'
import { namespaceDeletion } from '../apiserver/namespace-deletion.ts'
import { garbageCollectorWrites } from '../controllers/garbage/garbage-collector-writes.ts'
import { removePod } from '../controllers/pods/pod-removal.ts'
import { schedulerWrites } from '../scheduler/scheduler-writes.ts'
import { removeObject } from '../store/object-removal.ts'
import { type Fleet, fleet } from '../testing/fleet.ts'
import { holdLate, lateFinalizer } from '../testing/late-finalizer.ts'
import { builtInKinds } from './control-plane.ts'

const key = { namespace: 'default', name: 'web' }
const map: ConfigMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: key }

/** Removes it while another client adds a finalizer: it is marked for deletion, and held. */
async function heldBy(
  t: Test,
  resource: BuiltInName,
  remove: (world: Fleet) => Promise<unknown>,
  at: typeof key = key,
) {
  const world = fleet(t)
  holdLate(world.store, resource)
  const removing = remove(world)
  await world.clock.advance(1_000)
  await removing
  const held = await world.store.get(resource, at)
  t.match(held?.metadata, { finalizers: [lateFinalizer], deletionTimestamp: /./ }, resource)
}

async function waitingPod({ store }: Fleet) {
  const { metadata: _, ...pod } = aPod({})
  const { nodeName: __, ...spec } = pod.spec
  return await store.create('pods', { ...pod, metadata: key, spec, status: { phase: 'Failed' } } as Pod)
}

test('a finalizer that is added while a controller removes an object holds it', async (t) => {
  await heldBy(t, 'configmaps', async ({ store, clock }) => {
    const made = await store.create('configmaps', map)
    t.ok(await removeObject({ store, clock }, 'configmaps', made))
  })
  for (const propagationPolicy of ['Background', 'Foreground'] as const) {
    const world = fleet(t)
    const made = await world.store.create('configmaps', map)
    await removeObject(world, 'configmaps', made, { propagationPolicy, isStillWanted: () => false })
    t.same((await world.store.get('configmaps', key))?.metadata, made.metadata, 'it is not to be deleted any more')
  }
})

test('a finalizer that is added while a controller removes a pod, or the scheduler preempts it, holds it', async (t) => {
  await heldBy(t, 'pods', async (world) => t.ok(await removePod(world, await waitingPod(world))))
  await heldBy(t, 'pods', async (world) => {
    const victim = await waitingPod(world)
    await schedulerWrites(world).evict(victim, victim, 'pi-1')
  })
})

test('a finalizer that is added while the garbage collector removes an object holds it', async (t) => {
  await heldBy(t, 'configmaps', async (world) => {
    const object = await world.store.create('configmaps', map)
    await garbageCollectorWrites(world).remove(
      { resource: resources.configmaps, object },
      false,
      new AbortController().signal,
    )
  })
})

test('a finalizer that is added while the last object of a namespace goes holds the namespace', async (t) => {
  const name = { namespace: '', name: 'team' }
  await heldBy(
    t,
    'namespaces',
    async (world) => {
      t.teardown(world.start(namespaceDeletion({ ...world, kinds: builtInKinds })))
      await world.store.create('namespaces', {
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name: 'team', deletionTimestamp: '2026-01-01T00:00:00Z' },
        spec: { finalizers: ['kubernetes'] },
      })
    },
    name,
  )
})
