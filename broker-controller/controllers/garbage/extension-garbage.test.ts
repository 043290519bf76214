import { type Test, test } from 'tap'
import { planDeletion } from '../../../api/deletion/object-deletion.ts'
import type { ObjectMeta, OwnerReference } from '../../../api/meta.ts'
import type { ExtensionKind } from '../../../api/registration/extension-object.ts'
import { builtInResources } from '../../../api/resources.ts'
import { type ExtensionMemory, extensionMemory, flunders } from '../../testing/extension-memory.ts'
import { type Fleet, fleet } from '../../testing/fleet.ts'
import { garbageCollector } from './garbage-collector.ts'

const fischers: ExtensionKind = { ...flunders, resource: 'fischers', kind: 'Fischer', namespaced: false }
const others: ExtensionKind = { ...flunders, group: 'other.example.com', resource: 'others', kind: 'Other' }

type World = Fleet & { readonly remote: ExtensionMemory }

function opened(t: Test, remote = extensionMemory(flunders, fischers, others)): World {
  const world = fleet(t)
  t.teardown(world.start(garbageCollector({ ...world, resources: builtInResources, extensionObjects: remote })))
  return { ...world, remote }
}

const key = (name: string) => ({ namespace: 'default', name })

async function aMap({ store }: Fleet, name: string, metadata: ObjectMeta = {}): Promise<OwnerReference> {
  const object = { apiVersion: 'v1' as const, kind: 'ConfigMap' as const, metadata: { ...key(name), ...metadata } }
  const made = await store.create('configmaps', object)
  return { apiVersion: 'v1', kind: 'ConfigMap', name, uid: made.metadata.uid }
}

const maps = async ({ store }: Fleet) => (await store.list('configmaps')).items.map(({ metadata }) => metadata.name)
const named = ({ group, version, kind }: ExtensionKind, name: string): OwnerReference => ({
  ...{ apiVersion: `${group}/${version}`, kind, name, uid: `uid-${name}` },
})

async function deleted({ store, clock }: Fleet, name: string, propagationPolicy: 'Foreground' | 'Orphan') {
  const present = await store.get('configmaps', key(name))
  if (present === undefined) throw new Error(`No config map ${name}`)
  const plan = planDeletion(present, { nowMs: clock.wallMs(), propagationPolicy })
  if (!plan.remove) await store.update('configmaps', plan.object as typeof present)
}

test('objects of an extension server go with their owner in this store, and what belongs to them', async (t) => {
  const world = opened(t)
  const owner = await aMap(world, 'owner')
  world.remote.put(flunders, { name: 'child', ownerReferences: [owner] })
  world.remote.put(flunders, { name: 'stranger' })
  await aMap(world, 'grandchild', { ownerReferences: [named(flunders, 'child')] })
  await world.pass(1)
  t.same(world.remote.names(), ['child', 'stranger'])
  await world.store.delete('configmaps', key('owner'))
  await world.pass(1)
  t.same(world.remote.names(), ['stranger'])
  t.same(await maps(world), [])
  t.ok(world.remote.asked.includes('delete flunders/child Background'))
})

test('objects of two extension servers own each other', async (t) => {
  const world = opened(t)
  world.remote.put(flunders, { name: 'owner' })
  world.remote.put(others, { name: 'child', ownerReferences: [named(flunders, 'owner')] })
  await world.pass(1)
  t.same(world.remote.names(), ['child', 'owner'])
  world.remote.delete(flunders, 'owner')
  await world.pass(1)
  t.same(world.remote.names(), [])
})

test('an owner that a watch reports as deleted, and that its server still has, keeps what belongs to it', async (t) => {
  const world = opened(t)
  const object = world.remote.put(flunders, { name: 'owner' })
  await aMap(world, 'child', { ownerReferences: [named(flunders, 'owner')] })
  await world.pass(1)
  world.remote.deliver(flunders, { type: 'DELETED', object })
  await world.pass(60)
  t.same(await maps(world), ['child'])
  t.ok(world.remote.asked.includes('get flunders/owner'))
})

test('while a server does not answer nothing is deleted, and other groups are not held up', async (t) => {
  for (const state of ['stale', 'hanging'] as const) {
    const world = opened(t)
    for (let at = 0; at < 40; at++) world.remote.put(flunders, { name: `o${at}` })
    for (let at = 0; at < 40; at++) await aMap(world, `child-${at}`, { ownerReferences: [named(flunders, `o${at}`)] })
    world.remote.put(others, { name: 'owner' })
    await aMap(world, 'other', { ownerReferences: [named(others, 'owner')] })
    const plain = await aMap(world, 'plain')
    await aMap(world, 'plain-child', { ownerReferences: [plain] })
    await world.pass(1)
    world.remote.state[flunders.group] = state
    world.remote.changed()
    for (let at = 0; at < 40; at++) world.remote.delete(flunders, `o${at}`)
    world.remote.delete(others, 'owner')
    await world.store.delete('configmaps', key('plain'))
    await world.pass(60)
    const names = await maps(world)
    t.equal(names.length, 40, state)
    t.ok(names.every((name) => name.startsWith('child-')))
    world.remote.state[flunders.group] = undefined
    world.remote.changed()
    await world.pass(60)
    t.equal((await maps(world)).length, 40, 'nor when it is no longer registered')
  }
})

test('once the server answers again, what belonged to owners that are gone is deleted', async (t) => {
  const world = opened(t)
  world.remote.state[flunders.group] = 'stale'
  await aMap(world, 'child', { ownerReferences: [named(flunders, 'never')] })
  await world.pass(60)
  t.same(await maps(world), ['child'])
  world.remote.state[flunders.group] = 'current'
  world.remote.changed()
  await world.pass(60)
  t.same(await maps(world), [])
})

test('what a server states of an object with a uid of this store does not concern what belongs to that', async (t) => {
  const world = opened(t)
  const owner = await aMap(world, 'owner')
  await aMap(world, 'child', { ownerReferences: [owner] })
  await world.pass(1)
  const lie = { ...owner, namespace: 'default', resourceVersion: '9', deletionTimestamp: '2026-01-01T00:00:00Z' }
  world.remote.deliver(flunders, {
    type: 'ADDED',
    object: { metadata: { ...lie, finalizers: ['foregroundDeletion'] } },
  })
  await world.pass(1)
  world.remote.deliver(flunders, { type: 'DELETED', object: { metadata: lie } })
  await world.pass(60)
  t.same(await maps(world), ['child', 'owner'])
})

test('what a server states of an object with a uid of another server does not concern what belongs to that', async (t) => {
  const world = opened(t)
  const { uid } = world.remote.put(flunders, { name: 'owner' }).metadata
  world.remote.put(flunders, { name: 'far', ownerReferences: [named(flunders, 'owner')] })
  await aMap(world, 'child', { ownerReferences: [named(flunders, 'owner')] })
  await world.pass(1)
  const lie = { name: 'owner', namespace: 'default', uid, resourceVersion: '9' }
  const deletion = { deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['foregroundDeletion'] }
  world.remote.deliver(others, { type: 'ADDED', object: { metadata: { ...lie, ...deletion } } })
  await world.pass(1)
  world.remote.deliver(others, { type: 'DELETED', object: { metadata: lie } })
  await world.pass(60)
  t.same(await maps(world), ['child'])
  t.same(world.remote.names(), ['far', 'owner'])
})

test('an owner that is deleted in the foreground waits for blocking objects of extension servers', async (t) => {
  const world = opened(t)
  const owner = { ...(await aMap(world, 'owner')), blockOwnerDeletion: true }
  world.remote.put(flunders, { name: 'held', ownerReferences: [owner], finalizers: ['example.com/work'] })
  await world.pass(1)
  await deleted(world, 'owner', 'Foreground')
  await world.pass(1)
  t.same(await maps(world), ['owner'])
  t.ok(world.remote.asked.includes('delete flunders/held Background'))
  world.remote.put(flunders, { name: 'held', finalizers: [] })
  await world.pass(1)
  t.same(await maps(world), [])
})

test('an object of an extension server that is deleted in the foreground, or orphans, is let go', async (t) => {
  const world = opened(t)
  for (const finalizer of ['foregroundDeletion', 'orphan']) {
    world.remote.put(flunders, { name: 'owner' })
    await aMap(world, 'child', { ownerReferences: [{ ...named(flunders, 'owner'), blockOwnerDeletion: true }] })
    await world.pass(1)
    const deletionTimestamp = '2026-01-01T00:00:00Z'
    world.remote.put(flunders, { name: 'owner', deletionTimestamp, finalizers: [finalizer] })
    await world.pass(1)
    t.same(world.remote.names(), [])
    t.same(await maps(world), finalizer === 'orphan' ? ['child'] : [])
  }
})

test('objects of extension servers are set free before their owner goes', async (t) => {
  const world = opened(t)
  const owner = await aMap(world, 'owner')
  world.remote.put(flunders, { name: 'child', ownerReferences: [owner] })
  await world.pass(1)
  world.remote.state[flunders.group] = 'stale'
  await deleted(world, 'owner', 'Orphan')
  await world.pass(60)
  t.same(await maps(world), ['owner'], 'its server does not answer')
  world.remote.state[flunders.group] = 'current'
  await world.pass(60)
  t.same(await maps(world), [])
  t.same(world.remote.names(), ['child'])
  t.ok(world.remote.asked.includes('patch flunders/child'))
})

test('an object without a namespace does not go for an owner in one', async (t) => {
  const world = opened(t)
  const owner = await aMap(world, 'owner')
  const ownerReferences = [{ ...owner, uid: 'never' }]
  world.remote.put(fischers, { name: 'one', namespace: '', ownerReferences })
  await world.store.create('nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: 'pi', ownerReferences } })
  const named = { ...owner, apiVersion: 'wardle.example.com/v1', kind: 'Flunder', uid: 'never' }
  await world.store.create('nodes', {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'pj', ownerReferences: [named] },
  })
  await world.pass(1)
  t.same(world.remote.names(), ['one'])
  t.equal((await world.store.list('nodes')).items.length, 2)
})

test('a kind with objects without end is not followed, and its requests become rare', async (t) => {
  const remote = extensionMemory(flunders)
  const world = opened(t, remote)
  await world.pass(1)
  for (let at = 0; at < 20_000; at++) remote.put(flunders, { name: `f${at}` })
  t.throws(() => remote.put(flunders, { name: 'one-more' }), /have more than 20000 objects and owner references/)
  await world.pass(3_600, 10)
  t.ok(remote.asked.length < 40, `${remote.asked.length} requests in an hour`)
  const owner = await aMap(world, 'owner')
  await aMap(world, 'child', { ownerReferences: [owner] })
  await world.store.delete('configmaps', key('owner'))
  await world.pass(1)
  t.same(await maps(world), [])
})
