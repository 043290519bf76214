import { type Test, test } from 'tap'
import type { Taint } from '../../../api/node.ts'
import type { Toleration } from '../../../api/pod.ts'
import { eventRecorder } from '../../store/event-recorder.ts'
import type { Store } from '../../store/store.ts'
import { type Fleet, fleet } from '../../testing/fleet.ts'
import { unstoredReports } from '../../usage/unstored-reports.ts'
import { nodeLifecycleController } from '../node-lifecycle/node-lifecycle-controller.ts'
import { type TaintEvictionSettings, taintEvictionController } from './taint-eviction-controller.ts'

const tolerations = (tolerationSeconds?: number): readonly Toleration[] =>
  ['not-ready', 'unreachable'].map((what) => ({
    key: `node.kubernetes.io/${what}`,
    operator: 'Exists',
    effect: 'NoExecute',
    ...(tolerationSeconds !== undefined && { tolerationSeconds }),
  }))

const owner = (controller: boolean) => ({
  ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: 'uid-of-web', controller }],
})

async function inFleet(t: Test, settings?: TaintEvictionSettings): Promise<Fleet> {
  const world = fleet(t)
  await world.join(...['pi-1', 'pi-2', 'pi-3', 'pi-4'].map((name) => ({ name })))
  start(t, world, settings)
  await world.pass(20)
  return world
}

function start(t: Test, world: Fleet, settings?: TaintEvictionSettings): () => Promise<void> {
  const stop = world.start(nodeLifecycleController(world), taintEvictionController(world, settings))
  t.teardown(stop)
  return stop
}

async function leaving(world: Fleet): Promise<readonly string[]> {
  const { items } = await world.store.list('pods')
  return items.filter(({ metadata }) => metadata.deletionTimestamp !== undefined).map(({ metadata }) => metadata.name)
}

async function taint(world: Fleet, name: string, taints: readonly Taint[]): Promise<void> {
  const node = await world.node(name)
  await world.store.update('nodes', { ...node, spec: { ...node.spec, taints } })
  await world.clock.settle()
}

const repair: Taint = { key: 'repair', effect: 'NoExecute' }

test('of a dead node’s pods each leaves after its own toleration, and one that tolerates for ever stays', async (t) => {
  const world = await inFleet(t)
  await world.run({ name: 'at-once', nodeName: 'pi-1', tolerations: tolerations(0) })
  await world.run({ name: 'soon', nodeName: 'pi-1', tolerations: tolerations(30) })
  await world.run({ name: 'usual', nodeName: 'pi-1', tolerations: tolerations(300), metadata: owner(true) })
  await world.run({ name: 'daemon', nodeName: 'pi-1', tolerations: tolerations() })
  await world.run({ name: 'elsewhere', nodeName: 'pi-2', tolerations: tolerations(0) })
  world.silence('pi-1')
  const left = new Map<string, number>()
  for (let second = 1; second <= 420; second++) {
    await world.pass(1)
    for (const name of await leaving(world)) if (!left.has(name)) left.set(name, second)
  }
  const first = left.get('at-once') ?? 0
  t.ok(first > 45 && first < 70, `silence, Unknown, a period, taint: ${first} s`)
  t.same(
    [...left].map(([name, at]) => [name, at - first]),
    [
      ['at-once', 0],
      ['soon', 30],
      ['usual', 300],
    ],
  )
  const pod = await world.pod('usual')
  t.equal(pod?.metadata.deletionGracePeriodSeconds, 30)
  t.match(
    pod?.status?.conditions?.find(({ type }) => type === 'DisruptionTarget'),
    { status: 'True' },
  )
  t.ok((await world.reasons('usual')).includes('TaintManagerEviction'))
})

test('a node that comes back in time keeps its pods', async (t) => {
  const world = await inFleet(t)
  await world.run({ name: 'web', nodeName: 'pi-1', tolerations: tolerations(300), metadata: owner(true) })
  world.silence('pi-1')
  await world.pass(300)
  t.match(await world.state('pi-1'), /unreachable:NoExecute/)
  await world.revive('pi-1')
  await world.pass(600)
  t.same(await leaving(world), [])
  const events = (await world.store.list('events')).items.map(({ message }) => message)
  t.ok(events.includes('Cancelling deletion of Pod default/web'))
})

test('after the controller stood still, a node that came back meanwhile keeps its pods', async (t) => {
  const world = await inFleet(t)
  await world.run({ name: 'web', nodeName: 'pi-1', tolerations: tolerations(300), metadata: owner(true) })
  world.silence('pi-1')
  await world.pass(150)
  t.match(await world.state('pi-1'), /unreachable:NoExecute/)
  // What is due comes before what has arrived, as in the event loop of Node.js.
  world.clock.suspend(400_000)
  await world.clock.advance(0)
  t.same(await leaving(world), [])
  await world.revive('pi-1')
  await world.pass(600)
  t.same(await leaving(world), [])
  t.ok(world.log.messages('warn').includes('Controller stood still, evictions are put off'))
})

test('the time in which the controller stood still does not count, and the count goes on after it', async (t) => {
  const world = await inFleet(t)
  await taint(world, 'pi-1', [repair])
  const toleration = { key: 'repair', operator: 'Exists', tolerationSeconds: 100 } as const
  await world.run({ name: 'web', nodeName: 'pi-1', tolerations: [toleration], metadata: owner(true) })
  await world.pass(40)
  world.clock.suspend(400_000)
  await world.pass(54)
  t.same(await leaving(world), [])
  await world.pass(12)
  t.same(await leaving(world), ['web'])
})

test('the count goes on when the taint is swapped for the other', async (t) => {
  const world = await inFleet(t)
  await world.run({ name: 'web', nodeName: 'pi-1', tolerations: tolerations(100) })
  await world.report('pi-1', 'False')
  await world.pass(10)
  world.silence('pi-1')
  await world.pass(70)
  t.match(await world.state('pi-1'), /unreachable:NoExecute/)
  t.same(await leaving(world), [])
  await world.pass(30)
  t.same(await leaving(world), ['web'])
})

/** A fleet with a pod that leaves pi-1 after 100 s, and what of its nodes was not stored. */
async function withUnstored(t: Test) {
  const world = fleet(t)
  await world.join(...['pi-1', 'pi-2', 'pi-3', 'pi-4'].map((name) => ({ name })))
  const unstored = unstoredReports(world)
  t.teardown(world.start(nodeLifecycleController(world), taintEvictionController({ ...world, unstored })))
  await world.run({ name: 'web', nodeName: 'pi-1', tolerations: tolerations(100), metadata: owner(true) })
  await world.pass(20)
  world.silence('pi-1')
  await world.pass(120)
  t.match(await world.state('pi-1'), /unreachable:NoExecute/)
  return { world, unstored }
}

test('a node whose reports cannot be stored keeps its pods until they can', async (t) => {
  const { world, unstored } = await withUnstored(t)
  for (let i = 0; i < 10; i++) {
    unstored.failed('pi-1')
    await world.pass(20)
  }
  t.same(await leaving(world), [])
  t.equal(world.log.messages('info').filter((one) => one.startsWith('Eviction put off')).length, 1)
  await world.revive('pi-1')
  await world.pass(120)
  t.same(await leaving(world), [])
})

test('a node that is away again once its reports can be stored loses its pods a minute later', async (t) => {
  const { world, unstored } = await withUnstored(t)
  unstored.failed('pi-1')
  await world.pass(55)
  t.same(await leaving(world), [])
  await world.pass(60)
  t.same(await leaving(world), ['web'])
})

test('an operator’s taint evicts from a node whose reports cannot be stored', async (t) => {
  const { world, unstored } = await withUnstored(t)
  unstored.failed('pi-1')
  const { spec } = await world.node('pi-1')
  await taint(world, 'pi-1', [...(spec?.taints ?? []), repair])
  t.same(await leaving(world), ['web'])
})

/** `refuse.status`, `refuse.whole`: these writes to pods fail. */
function refusingStore(store: Store) {
  const refuse = { status: false, whole: false }
  const fail = () => Promise.reject(new Error('disk I/O error'))
  const refusing: Store = {
    ...store,
    updateStatus: (...args) => (refuse.status && args[0] === 'pods' ? fail() : store.updateStatus(...args)),
    update: (...args) => (refuse.whole && args[0] === 'pods' ? fail() : store.update(...args)),
  }
  return { store: refusing, refuse }
}

test('a pod that stays is not evicted because its message could not be written', async (t) => {
  const world = fleet(t)
  await world.join(...['pi-1', 'pi-2', 'pi-3'].map((name) => ({ name })))
  const { store, refuse } = refusingStore(world.store)
  t.teardown(world.start(nodeLifecycleController(world), taintEvictionController({ ...world, store })))
  await world.run({ name: 'bare', nodeName: 'pi-1', tolerations: tolerations(300) })
  refuse.status = true
  world.silence('pi-1')
  await world.pass(400)
  t.ok(world.log.messages('warn').includes('Pod not evicted'))
  refuse.status = false
  await world.pass(10)
  t.same(await leaving(world), [])
  t.match((await world.pod('bare'))?.status?.message, /The pod stays on it/)
})

test('a pod that could not be evicted stays if its node has lost the taint before the next attempt', async (t) => {
  const world = fleet(t)
  await world.join({ name: 'pi-1' })
  const { store, refuse } = refusingStore(world.store)
  t.teardown(world.start(taintEvictionController({ ...world, store })))
  await world.run({ name: 'web', nodeName: 'pi-1' })
  refuse.whole = true
  await taint(world, 'pi-1', [repair])
  await world.pass(3)
  await taint(world, 'pi-1', [])
  refuse.whole = false
  await world.pass(10)
  t.same(await leaving(world), [])
  refuse.whole = true
  await taint(world, 'pi-1', [repair])
  refuse.whole = false
  await world.pass(10)
  t.same(await leaving(world), ['web'])
})

test('a pod stays if its node loses the taint while the Event of its eviction is written', async (t) => {
  const world = fleet(t)
  await world.join({ name: 'pi-1' })
  await world.run({ name: 'web', nodeName: 'pi-1' })
  const store: Store = {
    ...world.store,
    async create(resource, object) {
      if (resource === 'events') await world.clock.sleep(5_000)
      return world.store.create(resource, object)
    },
  }
  const events = eventRecorder({ store, clock: world.clock })
  t.teardown(world.start(taintEvictionController({ ...world, store, events })))
  await world.pass(1)
  await taint(world, 'pi-1', [repair])
  await world.pass(2)
  await taint(world, 'pi-1', [])
  await world.pass(20)
  t.same(await leaving(world), [])
  const { items } = await world.store.list('events')
  t.ok(items.some(({ message }) => message?.startsWith('Cancelling deletion of Pod')))
  await taint(world, 'pi-1', [repair])
  await world.pass(20)
  t.same(await leaving(world), ['web'])
})

test('an operator’s taint evicts at once what does not tolerate it, and a finished pod goes entirely', async (t) => {
  const world = await inFleet(t)
  await world.run({ name: 'web', nodeName: 'pi-1' })
  await world.run({ name: 'job', nodeName: 'pi-1', phase: 'Succeeded', status: { phase: 'Succeeded' } })
  await world.run({ name: 'tool', nodeName: 'pi-1', tolerations: [{ operator: 'Exists' }] })
  await taint(world, 'pi-1', [repair])
  t.same(await leaving(world), ['web'])
  t.equal(await world.pod('job'), undefined)
  await world.run({ name: 'late', nodeName: 'pi-1' })
  t.same(await leaving(world), ['late', 'web'], 'one bound later goes as well')
})

test('a restart begins the count again', async (t) => {
  const world = fleet(t)
  await world.join({ name: 'pi-1', taints: [repair] })
  const stop = world.start(taintEvictionController(world))
  const sixty = [{ key: 'repair', operator: 'Exists', tolerationSeconds: 60 }]
  await world.run({ name: 'web', nodeName: 'pi-1', tolerations: sixty })
  await world.pass(50)
  await stop()
  t.teardown(world.start(taintEvictionController(world)))
  await world.pass(59)
  t.same(await leaving(world), [])
  await world.pass(2)
  t.same(await leaving(world), ['web'])
})

test('a toleration added in time keeps the pod', async (t) => {
  const world = await inFleet(t)
  await world.run({
    name: 'web',
    nodeName: 'pi-1',
    tolerations: [{ key: 'repair', operator: 'Exists', tolerationSeconds: 60 }],
  })
  await taint(world, 'pi-1', [repair])
  await world.pass(50)
  const pod = await world.pod('web')
  if (pod === undefined) return t.fail('the pod is gone')
  await world.store.update('pods', { ...pod, spec: { ...pod.spec, tolerations: [{ operator: 'Exists' }] } })
  await world.pass(60)
  t.same(await leaving(world), [])
})

test('a pod that nothing would re-create stays on a node that is away for an hour, and reports why', async (t) => {
  const world = await inFleet(t)
  const record = 'bramble.dev/default-tolerations'
  const added = { [record]: 'node.kubernetes.io/not-ready,node.kubernetes.io/unreachable' }
  const usual = { nodeName: 'pi-1', tolerations: tolerations(300) }
  await world.run({ name: 'older', ...usual })
  await world.run({ name: 'bare', ...usual, annotations: added })
  await world.run({ name: 'owned', ...usual, metadata: { ...owner(false), annotations: added } })
  await world.run({ name: 'controlled', ...usual, metadata: { ...owner(true), annotations: added } })
  await world.run({ name: 'stated', ...usual, annotations: { [record]: '' } })
  await world.run({ name: 'longer', nodeName: 'pi-1', tolerations: tolerations(600), annotations: added })
  world.silence('pi-1')
  await world.pass(3600)
  t.same(await leaving(world), ['controlled', 'longer', 'stated'])
  for (const name of ['bare', 'older', 'owned']) {
    const { status } = (await world.pod(name)) ?? {}
    t.match(status?.conditions, [{ type: 'Ready', status: 'False' }], name)
    t.match(status?.message, /^Node pi-1 is unreachable\. The pod stays on it .* no controller/, name)
    t.same((await world.reasons(name)).filter((reason) => reason !== 'NodeNotReady').sort(), ['EvictionSkipped'], name)
  }
  await world.revive('pi-1')
  await world.pass(60)
  t.same(await leaving(world), ['controlled', 'longer', 'stated'], 'a pod that is marked for deletion stays marked')
})

test('a controller that starts again records no second Event for a pod that stays', async (t) => {
  const world = fleet(t)
  await world.join({ name: 'pi-1' }, { name: 'pi-2' })
  await world.run({ name: 'bare', nodeName: 'pi-1', tolerations: tolerations(300) })
  const count = async () => {
    const { items } = await world.store.list('events')
    return items.reduce((sum, { reason, count = 1 }) => sum + (reason === 'EvictionSkipped' ? count : 0), 0)
  }
  const stop = start(t, world)
  await world.pass(20)
  world.silence('pi-1')
  await world.pass(400)
  const before = await count()
  t.ok(before > 0)
  await stop()
  start(t, { ...world, events: eventRecorder(world) })
  await world.pass(400)
  t.equal(await count(), before)
})

test('a pod without a controller leaves for an operator’s taints, also while its node is away', async (t) => {
  const world = await inFleet(t)
  await world.run({ name: 'repaired', nodeName: 'pi-1', tolerations: tolerations(300) })
  await taint(world, 'pi-1', [repair])
  t.same(await leaving(world), ['repaired'])
  await world.run({ name: 'lost', nodeName: 'pi-2', tolerations: tolerations(300) })
  world.silence('pi-2')
  await world.pass(400)
  t.same(await leaving(world), ['repaired'])
  const { spec } = await world.node('pi-2')
  const outOfService: Taint = { key: 'node.kubernetes.io/out-of-service', value: 'nodeshutdown', effect: 'NoExecute' }
  await taint(world, 'pi-2', [...(spec?.taints ?? []), outOfService])
  t.same(await leaving(world), ['lost', 'repaired'])
})

test('where the configuration asks for it, a pod without a controller leaves as in Kubernetes', async (t) => {
  const world = await inFleet(t, { evictUnmanagedPods: true })
  await world.run({ name: 'bare', nodeName: 'pi-1', tolerations: tolerations(300) })
  world.silence('pi-1')
  await world.pass(420)
  t.same(await leaving(world), ['bare'])
  t.notOk((await world.reasons('bare')).includes('EvictionSkipped'))
})

test('a flapping node keeps its pods and gets no new ones, until it has been Ready for a while', async (t) => {
  const world = await inFleet(t)
  await world.run({ name: 'web', nodeName: 'pi-1', tolerations: tolerations(300) })
  for (let i = 0; i < 6; i++) {
    world.silence('pi-1')
    await world.pass(120)
    await world.revive('pi-1')
    await world.pass(20)
  }
  t.same(await leaving(world), [])
  t.equal(await world.state('pi-1'), 'True flapping:NoSchedule')
  t.ok((await world.reasons('pi-1')).includes('NodeFlapping'))
  await world.pass(270)
  t.equal(await world.state('pi-1'), 'True flapping:NoSchedule')
  await world.pass(20)
  t.equal(await world.state('pi-1'), 'True')
  t.ok((await world.reasons('pi-1')).includes('NodeSteady'))
})

test('controllers restarted while a node is dead: its pods still leave, one full count later at most', async (t) => {
  const world = fleet(t)
  await world.join(...['pi-1', 'pi-2', 'pi-3'].map((name) => ({ name })))
  await world.run({ name: 'web', nodeName: 'pi-1', tolerations: tolerations(30) })
  const stop = start(t, world)
  await world.pass(20)
  world.silence('pi-1')
  await world.pass(70)
  await stop()
  start(t, world)
  await world.pass(60)
  t.same(await leaving(world), [])
  await world.pass(40)
  t.same(await leaving(world), ['web'])
})
