import { type Test, test } from 'tap'
import { volumeAnnotations } from '../../../api/storage/volume-names.ts'
import type { Store } from '../../store/store.ts'
import { crashingStore } from '../../testing/crashing-store.ts'
import { type Fleet, fleet } from '../../testing/fleet.ts'
import { delayedClasses, onNodes, using } from '../../testing/pods-with-claims.ts'
import { aStoredClaim, aStoredVolume } from '../../testing/volume-objects.ts'
import { scheduler } from '../scheduler.ts'

const { bindCompleted, selectedNode } = volumeAnnotations

const started = (world: Fleet, store: Store = world.store) =>
  world.start(scheduler({ ...world, store, random: () => 0 }))

async function opened(t: Test, ...nodes: readonly string[]): Promise<Fleet> {
  const world = fleet(t)
  t.teardown(started(world))
  for (const { metadata, ...one } of delayedClasses()) {
    await world.store.create('storageclasses', { ...one, metadata: { name: metadata.name } })
  }
  await world.join(...nodes.map((name) => ({ name })))
  return world
}

const claimed = async (world: Fleet, name: string, storageClassName: string) => {
  const { spec } = aStoredClaim(name, { spec: { storageClassName } })
  const metadata = { namespace: 'default', name }
  await world.store.create('persistentvolumeclaims', {
    ...{ apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata, spec },
    status: { phase: 'Pending' },
  })
}

const offered = async (world: Fleet, name: string, storageClassName: string, ...nodes: readonly string[]) => {
  const { spec, status } = aStoredVolume(name, { spec: { storageClassName, ...onNodes(...nodes) } })
  await world.store.create('persistentvolumes', {
    ...{ apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name }, spec, status },
  })
  await world.clock.settle()
}

const pending = (world: Fleet, name: string, ...claims: readonly string[]) =>
  world.run({ name, phase: 'Pending', status: {}, spec: using(...claims) })

async function claim(world: Fleet, name: string) {
  const found = await world.store.get('persistentvolumeclaims', { namespace: 'default', name })
  if (found === undefined) throw new Error(`No claim ${name}`)
  return found
}

/** What the binder does when a volume names the claim, or a provisioner made one. */
async function bind(world: Fleet, name: string, volumeName: string) {
  const found = await claim(world, name)
  const annotations = { ...found.metadata.annotations, [bindCompleted]: 'yes' }
  const metadata = { ...found.metadata, annotations }
  await world.store.update('persistentvolumeclaims', { ...found, metadata, spec: { ...found.spec, volumeName } })
  await world.clock.settle()
}

async function reject(world: Fleet, name: string) {
  const found = await claim(world, name)
  const { [selectedNode]: _, ...annotations } = found.metadata.annotations ?? {}
  await world.store.update('persistentvolumeclaims', { ...found, metadata: { ...found.metadata, annotations } })
  await world.clock.settle()
}

const nodeOf = async (world: Fleet, name: string) => (await world.pod(name))?.spec.nodeName
const selectedFor = async (world: Fleet, name: string) =>
  (await claim(world, name)).metadata.annotations?.[selectedNode]
const condition = async (world: Fleet, name: string) =>
  (await world.pod(name))?.status?.conditions?.find(({ type }) => type === 'PodScheduled')

test('a pod is bound after its volume is: first the volume names the claim', async (t) => {
  const world = await opened(t, 'pi-1', 'pi-2')
  await claimed(world, 'data', 'fixed')
  await offered(world, 'disk', 'fixed', 'pi-2')
  await pending(world, 'web', 'data')
  const disk = await world.store.get('persistentvolumes', { namespace: '', name: 'disk' })
  t.match(disk?.spec?.claimRef, { name: 'data', uid: (await claim(world, 'data')).metadata.uid })
  t.equal(await nodeOf(world, 'web'), undefined)
  t.equal(await condition(world, 'web'), undefined, 'nothing is wrong with it')
  await bind(world, 'data', 'disk')
  t.equal(await nodeOf(world, 'web'), 'pi-2')
})

test('a volume is made where the pod will run, and the pod waits for it', async (t) => {
  const world = await opened(t, 'pi-1')
  await claimed(world, 'data', 'late')
  await pending(world, 'web', 'data')
  t.equal(await selectedFor(world, 'data'), 'pi-1')
  await world.pass(300, 10)
  t.equal(await nodeOf(world, 'web'), undefined)
  await offered(world, 'made', 'late', 'pi-1')
  await bind(world, 'data', 'made')
  t.equal(await nodeOf(world, 'web'), 'pi-1')
})

test('a provisioner that cannot make the volume there has the pod decided on again', async (t) => {
  const world = await opened(t, 'pi-1', 'pi-2')
  await claimed(world, 'data', 'late')
  await pending(world, 'web', 'data')
  const first = await selectedFor(world, 'data')
  await world.node(first ?? '').then((node) => world.store.update('nodes', { ...node, spec: { unschedulable: true } }))
  await reject(world, 'data')
  await world.pass(5)
  const second = await selectedFor(world, 'data')
  t.same(new Set([first, second]), new Set(['pi-1', 'pi-2']))
  const because = 'provisioning failed for PVC "data"'
  const messages = (await world.store.list('events')).items.map(({ message }) => message)
  t.ok(messages.includes(`running PreBind plugin "VolumeBinding": binding volumes: ${because}`), messages.join('\n'))
})

test('after ten minutes a pod is decided on again, with the reason in its condition', async (t) => {
  const world = await opened(t, 'pi-1')
  await claimed(world, 'data', 'late')
  await pending(world, 'web', 'data')
  await world.pass(590, 10)
  t.equal(await condition(world, 'web'), undefined)
  await world.pass(20, 10)
  t.match(await condition(world, 'web'), {
    status: 'False',
    reason: 'SchedulerError',
    message: 'running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded',
  })
  await offered(world, 'made', 'late', 'pi-1')
  await bind(world, 'data', 'made')
  await world.pass(20, 10)
  t.equal(await nodeOf(world, 'web'), 'pi-1')
})

test('a controller that was restarted takes up where the first one was', async (t) => {
  const world = fleet(t)
  for (const { metadata, ...one } of delayedClasses()) {
    await world.store.create('storageclasses', { ...one, metadata: { name: metadata.name } })
  }
  await world.join({ name: 'pi-1' }, { name: 'pi-2' })
  const stop = started(world)
  await claimed(world, 'data', 'late')
  await pending(world, 'web', 'data')
  const selected = await selectedFor(world, 'data')
  await stop()
  t.teardown(started(world))
  await world.clock.settle()
  t.equal(await nodeOf(world, 'web'), undefined)
  await offered(world, 'made', 'late', selected ?? '')
  await bind(world, 'data', 'made')
  t.equal(await nodeOf(world, 'web'), selected)
})

test('a controller that was killed between any two writes is followed by one that makes the others', async (t) => {
  const writesOfAll = 4
  for (let writes = 0; writes <= writesOfAll; writes++) {
    const world = fleet(t)
    const crashing = crashingStore(world.store)
    for (const { metadata, ...one } of delayedClasses()) {
      await world.store.create('storageclasses', { ...one, metadata: { name: metadata.name } })
    }
    await world.join({ name: 'pi-1' }, { name: 'pi-2' })
    for (const name of ['data', 'logs']) {
      await claimed(world, name, 'fixed')
      await offered(world, `disk-of-${name}`, 'fixed', 'pi-2')
    }
    await claimed(world, 'cache', 'late')
    await pending(world, 'web', 'data', 'logs', 'cache')
    crashing.allow(writes)
    const stop = started(world, crashing.store)
    await world.clock.settle()
    await stop()
    t.teardown(started(world))
    await world.clock.settle()
    t.equal(await selectedFor(world, 'cache'), 'pi-2')
    const volumes = (await world.store.list('persistentvolumes')).items
    for (const { metadata, spec } of volumes) await bind(world, spec?.claimRef?.name ?? '', metadata.name)
    await offered(world, 'made', 'late', 'pi-2')
    await bind(world, 'cache', 'made')
    t.equal(await nodeOf(world, 'web'), 'pi-2', `killed after ${writes} writes`)
    const bound = await Promise.all(['data', 'logs'].map(async (name) => (await claim(world, name)).spec?.volumeName))
    t.same(bound.sort(), ['disk-of-data', 'disk-of-logs'])
  }
})

test('a pod that is deleted while it waits gives its room and its volume back', async (t) => {
  const world = await opened(t, 'pi-1')
  await claimed(world, 'data', 'fixed')
  await claimed(world, 'logs', 'late')
  await world.run({ name: 'web', phase: 'Pending', status: {}, requests: { cpu: '4' }, spec: using('logs') })
  await world.run({ name: 'next', phase: 'Pending', status: {}, requests: { cpu: '4' } })
  t.equal(await nodeOf(world, 'next'), undefined, 'the room is reserved')
  await world.store.delete('pods', { namespace: 'default', name: 'web' })
  await world.pass(5)
  t.equal(await nodeOf(world, 'next'), 'pi-1')
})

test('a pod that changes while it waits is not decided on again', async (t) => {
  const world = await opened(t, 'pi-1', 'pi-2')
  await claimed(world, 'data', 'late')
  await pending(world, 'web', 'data')
  const selected = await selectedFor(world, 'data')
  const web = await world.pod('web')
  if (web === undefined) throw new Error('no pod')
  await world.store.update('pods', { ...web, metadata: { ...web.metadata, labels: { tier: 'front' } } })
  await world.pass(30)
  t.equal(await selectedFor(world, 'data'), selected)
  t.equal(await nodeOf(world, 'web'), undefined)
  await offered(world, 'made', 'late', selected ?? '')
  await bind(world, 'data', 'made')
  t.equal(await nodeOf(world, 'web'), selected)
  t.same((await world.pod('web'))?.metadata.labels, { tier: 'front' })
})

test('two pods that share a delayed claim wait for one volume', async (t) => {
  const world = await opened(t, 'pi-1', 'pi-2')
  await claimed(world, 'data', 'late')
  await pending(world, 'one', 'data')
  await pending(world, 'two', 'data')
  const selected = await selectedFor(world, 'data')
  await offered(world, 'made', 'late', selected ?? '')
  await bind(world, 'data', 'made')
  t.same([await nodeOf(world, 'one'), await nodeOf(world, 'two')], [selected, selected])
})

test('pods that wait for a claim or a volume are tried when it comes', async (t) => {
  const world = await opened(t, 'pi-1')
  await pending(world, 'web', 'data')
  t.match((await condition(world, 'web'))?.message, /persistentvolumeclaim "data" not found/)
  await world.pass(2)
  await claimed(world, 'data', 'fixed')
  await world.pass(2)
  t.match((await condition(world, 'web'))?.message, /didn't find available persistent volumes to bind/)
  await world.pass(5)
  await offered(world, 'disk', 'fixed', 'pi-1')
  await bind(world, 'data', 'disk')
  await world.pass(1)
  t.equal(await nodeOf(world, 'web'), 'pi-1')
})

test('a pod that was given its node by hand gets its volumes there', async (t) => {
  const world = await opened(t, 'pi-1', 'pi-2')
  await world.run({ name: 'web', phase: 'Pending', status: {}, nodeName: 'pi-2', spec: using('data', 'disk') })
  await claimed(world, 'data', 'late')
  await claimed(world, 'disk', 'fixed')
  await world.clock.settle()
  await offered(world, 'there', 'fixed', 'pi-1')
  t.equal(await selectedFor(world, 'data'), undefined, 'all claims of a pod are decided on together')
  await offered(world, 'here', 'fixed', 'pi-2')
  t.equal(await selectedFor(world, 'data'), 'pi-2')
  const here = await world.store.get('persistentvolumes', { namespace: '', name: 'here' })
  t.match(here?.spec?.claimRef, { name: 'disk' })
})

test('200 pods that wait for a slow provisioner cost 1,000 others neither time nor calls of the store', async (t) => {
  const callsFor = async (waiting: number) => {
    const world = fleet(t)
    let calls = 0
    const counted = new Proxy(world.store, {
      get(store, name, receiver) {
        if (name === 'get' || name === 'update' || name === 'updateStatus') calls++
        return Reflect.get(store, name, receiver)
      },
    })
    t.teardown(started(world, counted))
    for (const { metadata, ...one } of delayedClasses()) {
      await world.store.create('storageclasses', { ...one, metadata: { name: metadata.name } })
    }
    const allocatable = { cpu: '1000', memory: '1000Gi', pods: '2000' }
    await world.join({ name: 'pi-1', allocatable }, { name: 'pi-2', allocatable })
    for (let i = 0; i < waiting; i++) {
      await claimed(world, `data-${i}`, 'late')
      await pending(world, `slow-${i}`, `data-${i}`)
    }
    await world.pass(30, 10)
    const [before, beganMs] = [calls, world.clock.monotonicMs()]
    const names = Array.from({ length: 1000 }, (_, i) => `quick-${i}`)
    for (const name of names) await pending(world, name)
    const placed = await Promise.all(names.map((name) => nodeOf(world, name)))
    t.equal(placed.filter((name) => name !== undefined).length, 1000)
    t.equal(world.clock.monotonicMs(), beganMs, 'no time passed')
    const late = await Promise.all(Array.from({ length: waiting }, (_, i) => nodeOf(world, `slow-${i}`)))
    t.same(new Set(late), new Set(waiting === 0 ? [] : [undefined]))
    return calls - before
  }
  t.equal(await callsFor(200), await callsFor(0))
})
