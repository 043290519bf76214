import { type Test, test } from 'tap'
import { type DeletionTerms, planDeletion } from '../../../api/deletion/object-deletion.ts'
import type { ObjectMeta, OwnerReference } from '../../../api/meta.ts'
import { builtInResources } from '../../../api/resources.ts'
import { revocationsIn, revocationsKey } from '../../store/revocations.ts'
import type { Store } from '../../store/store.ts'
import { crashingStore } from '../../testing/crashing-store.ts'
import { type Fleet, fleet } from '../../testing/fleet.ts'
import { garbageCollector } from './garbage-collector.ts'
import { ownershipStep } from './ownership.ts'

function opened(t: Test): Fleet {
  const world = fleet(t)
  t.teardown(world.start(garbageCollector({ ...world, resources: builtInResources })))
  return world
}

const key = (name: string) => ({ namespace: 'default', name })

async function aMap({ store }: Fleet, name: string, metadata: ObjectMeta = {}): Promise<OwnerReference> {
  const made = await store.create('configmaps', {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { ...key(name), ...metadata },
  })
  return { apiVersion: 'v1', kind: 'ConfigMap', name, uid: made.metadata.uid }
}

/** As the API does. */
async function deleted({ store, clock }: Fleet, name: string, options: Partial<DeletionTerms> = {}): Promise<void> {
  const present = await store.get('configmaps', key(name))
  if (present === undefined) throw new Error(`No config map ${name}`)
  const plan = planDeletion(present, { nowMs: clock.wallMs(), ...options })
  if (plan.remove) await store.delete('configmaps', key(name))
  else await store.update('configmaps', plan.object as typeof present)
}

const maps = async ({ store }: Fleet) => (await store.list('configmaps')).items.map(({ metadata }) => metadata.name)

test('what belongs to an object goes with it, and what belongs to that', async (t) => {
  const world = opened(t)
  const owner = await aMap(world, 'owner')
  const child = await aMap(world, 'child', { ownerReferences: [owner] })
  await aMap(world, 'grandchild', { ownerReferences: [child] })
  await aMap(world, 'stranger')
  await world.run({ name: 'pod', nodeName: 'pi-1', metadata: { ...key('pod'), ownerReferences: [owner] } })
  await world.pass(1)
  t.same(await maps(world), ['child', 'grandchild', 'owner', 'stranger'])
  await deleted(world, 'owner')
  await world.pass(1)
  t.same(await maps(world), ['stranger'])
  t.equal((await world.pod('pod'))?.metadata.deletionGracePeriodSeconds, 30, 'a pod leaves in its own time')
})

test('the Lease of a client goes with its owner, that of a node with its Node alone', async (t) => {
  const world = opened(t)
  const owner = await aMap(world, 'owner')
  for (const namespace of ['default', 'kube-node-lease']) {
    const metadata = { name: 'owned', namespace, ownerReferences: [owner] }
    await world.store.create('leases', { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata })
  }
  await deleted(world, 'owner')
  await world.pass(1)
  const left = (await world.store.list('leases')).items.map(({ metadata }) => metadata.namespace)
  t.same(left, ['kube-node-lease'])
})

test('a deletion in the foreground reaches down: each waits for what belongs to it', async (t) => {
  const world = opened(t)
  const owner = { ...(await aMap(world, 'owner')), blockOwnerDeletion: true }
  const child = { ...(await aMap(world, 'child', { ownerReferences: [owner] })), blockOwnerDeletion: true }
  await aMap(world, 'grandchild', { ownerReferences: [child], finalizers: ['example.com/work'] })
  await world.pass(1)
  await deleted(world, 'owner', { propagationPolicy: 'Foreground' })
  await world.pass(1)
  t.same(await maps(world), ['child', 'grandchild', 'owner'])
  const present = await world.store.get('configmaps', key('grandchild'))
  if (present === undefined) return t.fail('gone')
  t.ok(present.metadata.deletionTimestamp)
  await world.store.delete('configmaps', key('grandchild'))
  await world.pass(1)
  t.same(await maps(world), [])
})

test('objects that own each other in a circle go together, also in the foreground', async (t) => {
  const world = opened(t)
  const blocking = async (name: string, metadata?: ObjectMeta) => ({
    ...(await aMap(world, name, metadata)),
    blockOwnerDeletion: true,
  })
  const first = await blocking('first')
  const second = await blocking('second', { ownerReferences: [first] })
  const third = await blocking('third', { ownerReferences: [second] })
  const present = await world.store.get('configmaps', key('first'))
  if (present === undefined) return t.fail('gone')
  await world.store.update('configmaps', { ...present, metadata: { ...present.metadata, ownerReferences: [third] } })
  await world.pass(1)
  t.same(await maps(world), ['first', 'second', 'third'])
  await deleted(world, 'first', { propagationPolicy: 'Foreground' })
  await world.pass(1)
  t.same(await maps(world), [])
})

test('what has another owner left forgets the one that is gone', async (t) => {
  const world = opened(t)
  const [first, second] = [await aMap(world, 'first'), await aMap(world, 'second')]
  await aMap(world, 'shared', { ownerReferences: [first, second] })
  await world.pass(1)
  await deleted(world, 'first')
  await world.pass(1)
  t.same((await world.store.get('configmaps', key('shared')))?.metadata.ownerReferences, [second])
  await deleted(world, 'second')
  await world.pass(1)
  t.same(await maps(world), [])
})

test('orphans are set free before their owner goes', async (t) => {
  const world = opened(t)
  const owner = await aMap(world, 'owner')
  await aMap(world, 'child', { ownerReferences: [owner] })
  await world.pass(1)
  await deleted(world, 'owner', { propagationPolicy: 'Orphan' })
  await world.pass(1)
  t.same(await maps(world), ['child'])
  t.notOk('ownerReferences' in ((await world.store.get('configmaps', key('child')))?.metadata ?? {}))
})

test('a process that ends after any write leaves no object that nothing holds and nothing removes', async (t) => {
  for (const propagationPolicy of ['Foreground', 'Orphan'] as const) {
    for (let writes = 0; writes < 4; writes++) {
      const world = fleet({ ...t, fail: () => true })
      const crashing = crashingStore(world.store)
      const live = (store: Store) => world.start(garbageCollector({ ...world, store, resources: builtInResources }))
      const owner = await aMap(world, 'owner')
      await aMap(world, 'child', { ownerReferences: [{ ...owner, blockOwnerDeletion: true }] })
      await deleted(world, 'owner', { propagationPolicy })
      crashing.allow(writes)
      const kill = live(crashing.store)
      await world.pass(5)
      await kill()
      const end = live(world.store)
      await world.pass(5)
      t.same(
        await maps(world),
        propagationPolicy === 'Orphan' ? ['child'] : [],
        `${propagationPolicy}, ${writes} writes`,
      )
      await end()
    }
  }
})

test('in the foreground the owner waits for those that block it', async (t) => {
  const world = opened(t)
  const owner = await aMap(world, 'owner')
  const blocking = { ...owner, blockOwnerDeletion: true }
  await aMap(world, 'held', { ownerReferences: [blocking], finalizers: ['example.com/hold'] })
  await aMap(world, 'free', { ownerReferences: [owner] })
  await world.pass(1)
  await deleted(world, 'owner', { propagationPolicy: 'Foreground' })
  await world.pass(1)
  t.same(await maps(world), ['held', 'owner'])
  await world.store.delete('configmaps', key('held'))
  await world.pass(1)
  t.same(await maps(world), [])
})

test('a node that is deleted in the foreground, or before what belongs to it, is no longer admitted', async (t) => {
  const world = opened(t)
  for (const propagationPolicy of ['Foreground', 'Orphan'] as const) {
    const name = `pi-${propagationPolicy.toLowerCase()}`
    const node = await world.store.create('nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name } })
    const plan = planDeletion(node, { nowMs: world.clock.wallMs(), propagationPolicy })
    if (!plan.remove) await world.store.update('nodes', plan.object as typeof node)
  }
  await world.clock.settle()
  t.same((await world.store.list('nodes')).items, [])
  const revoked = revocationsIn(await world.store.get('configmaps', revocationsKey))
  t.same([...revoked.keys()].sort(), ['system:node:pi-foreground', 'system:node:pi-orphan'])
})

test('an owner of another namespace, or one that never was, is gone; one of an unknown kind is not', async (t) => {
  const world = opened(t)
  const { uid } = await world.store
    .create('namespaces', {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: 'team' },
    })
    .then(({ metadata }) => metadata)
  const elsewhere = await aMap(world, 'elsewhere', { namespace: 'team' })
  await aMap(world, 'a', { ownerReferences: [elsewhere] })
  await aMap(world, 'b', { ownerReferences: [{ ...elsewhere, uid: 'never' }] })
  await aMap(world, 'c', { ownerReferences: [{ apiVersion: 'example.com/v1', kind: 'Robot', name: 'r', uid: 'u' }] })
  await aMap(world, 'd', { ownerReferences: [{ apiVersion: 'v1', kind: 'Namespace', name: 'team', uid }] })
  await world.pass(1)
  t.same(await maps(world), ['c', 'd', 'elsewhere'])
  const reported = (await world.store.list('events')).items
  const stated = `[v1/ConfigMap, namespace: default, name: elsewhere, uid: ${elsewhere.uid}]`
  const message = `ownerRef ${stated} does not exist in namespace "default"`
  t.match(
    reported.map(({ involvedObject: { kind, name }, type, reason, message, source }) => ({
      kind,
      name,
      type,
      reason,
      message,
      component: source?.component,
    })),
    [
      {
        ...{ kind: 'ConfigMap', name: 'a', type: 'Warning', reason: 'OwnerRefInvalidNamespace', message },
        component: 'garbage-collector-controller',
      },
    ],
  )
})

test('an object without a namespace whose owner has one stays, with an Event', async (t) => {
  const world = opened(t)
  const owner = await aMap(world, 'owner')
  const metadata = { name: 'fast', ownerReferences: [owner] }
  await world.store.create('storageclasses', {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata,
    provisioner: 'example.com/disks',
  })
  await world.pass(1)
  t.ok(await world.store.get('storageclasses', { namespace: '', name: 'fast' }))
  const [reported, ...more] = (await world.store.list('events')).items
  t.same(more, [])
  t.match(reported, {
    involvedObject: { kind: 'StorageClass', apiVersion: 'storage.k8s.io/v1', name: 'fast' },
    message: `ownerRef [v1/ConfigMap, namespace: , name: owner, uid: ${owner.uid}] does not exist in namespace ""`,
  })
})

test('an object goes when none of its owners is there to stay', async (t) => {
  const owner = (uid: string): OwnerReference => ({ apiVersion: 'v1', kind: 'Node', name: uid, uid })
  const step = (...uids: readonly string[]) =>
    ownershipStep(uids.map(owner), ({ uid }) => (uid === 'gone' || uid === 'waiting' ? uid : 'there'))
  t.same(step('a', 'b'), { step: 'none' })
  t.same(step('a', 'gone', 'waiting'), { step: 'forget', uids: ['gone', 'waiting'] })
  t.same(step('gone', 'waiting'), { step: 'remove', first: true })
  t.same(step(), { step: 'none' })
})

test('many dependents of an owner that is gone are deleted together, not one after the other', async (t) => {
  const world = fleet(t)
  let [together, most] = [0, 0]
  const store: typeof world.store = {
    ...world.store,
    async delete(resource, object, preconditions) {
      most = Math.max(most, ++together)
      await world.clock.sleep(10)
      together -= 1
      return world.store.delete(resource, object, preconditions)
    },
  }
  const owner = await aMap(world, 'owner')
  for (let at = 0; at < 200; at++) await aMap(world, `child-${at}`, { ownerReferences: [owner] })
  t.teardown(world.start(garbageCollector({ ...world, store, resources: builtInResources })))
  await world.pass(1)
  await deleted(world, 'owner')
  await world.pass(1)
  t.same(await maps(world), [])
  t.equal(most, 32)
})
