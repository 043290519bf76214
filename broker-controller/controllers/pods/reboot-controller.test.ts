import { type Test, test } from 'tap'
import type { Store } from '../../store/store.ts'
import { type Fleet, fleet } from '../../testing/fleet.ts'
import { rebootController } from './reboot-controller.ts'

const leaving = { deletionTimestamp: '2026-01-01T00:00:30Z', deletionGracePeriodSeconds: 30 }

async function opened(t: Test): Promise<Fleet> {
  const world = fleet(t)
  await world.join({ name: 'pi-1' }, { name: 'pi-2' })
  for (const nodeName of ['pi-1', 'pi-2']) {
    await world.run({ name: `going-${nodeName}`, nodeName, metadata: { name: `going-${nodeName}`, ...leaving } })
    await world.run({ name: `staying-${nodeName}`, nodeName })
  }
  start(t, world)
  await world.pass(20)
  return world
}

function start(t: Test, world: Fleet): () => Promise<void> {
  const stop = world.start(rebootController(world))
  t.teardown(stop)
  return stop
}

async function names(world: Fleet): Promise<readonly string[]> {
  return (await world.store.list('pods')).items.map(({ metadata }) => metadata.name).toSorted()
}
const all = ['going-pi-1', 'going-pi-2', 'staying-pi-1', 'staying-pi-2']
const some = ['going-pi-2', 'staying-pi-1', 'staying-pi-2']

test('pods that were leaving a node are gone when it is back under a new boot; others are reported by the node', async (t) => {
  const world = await opened(t)
  world.silence('pi-1')
  await world.pass(300)
  t.same(await names(world), all)
  await world.reboot('pi-1')
  await world.pass(3)
  t.same(await names(world), some)
})

test('a node that was only cut off confirms them itself', async (t) => {
  const world = await opened(t)
  world.silence('pi-1')
  await world.pass(300)
  await world.revive('pi-1')
  await world.pass(30)
  t.same(await names(world), all)
})

test('a pod that the node started again before it received the deletion is stopped by the node', async (t) => {
  const world = await opened(t)
  await world.reboot('pi-1')
  const pod = await world.pod('going-pi-1')
  if (pod === undefined) return t.fail('the pod is gone already')
  await world.store.updateStatus('pods', { ...pod, status: { ...pod.status, phase: 'Running', podIP: '172.17.0.2' } })
  await world.pass(30)
  t.same(await names(world), all)
})

test('a reboot is known by the word of the connection too, and across a restart of the controller', async (t) => {
  const world = await opened(t)
  await world.connection('pi-1', 'online', undefined, 'boot-pi-1-again')
  await world.pass(3)
  t.same(await names(world), some)

  const other = fleet(t)
  await other.join({ name: 'pi-1' })
  await other.run({ name: 'going', nodeName: 'pi-1', metadata: { name: 'going', ...leaving } })
  const stop = start(t, other)
  await other.pass(5)
  await stop()
  await other.forgetLeases()
  start(t, other)
  await other.pass(5)
  t.same(await names(other), ['going'])
  await other.connection('pi-1', 'online', undefined, 'boot-pi-1-again')
  await other.pass(3)
  t.same(await names(other), [])
})

test('a pod with a finalizer has ended and waits for the finalizer', async (t) => {
  const world = await opened(t)
  const metadata = { name: 'held', ...leaving, finalizers: ['example.com/keep'] }
  await world.run({ name: 'held', nodeName: 'pi-1', metadata })
  await world.reboot('pi-1')
  await world.pass(3)
  t.match(await world.pod('held'), { status: { phase: 'Failed' }, metadata: { deletionGracePeriodSeconds: 0 } })
})

test('each reboot and each removed pod is logged once', async (t) => {
  const world = await opened(t)
  await world.reboot('pi-1')
  await world.pass(30)
  t.match(
    world.log.lines.filter(({ level }) => level === 'info'),
    [
      { message: 'Node has rebooted', facts: { node: 'pi-1' } },
      { message: 'Pod removed with the boot it ran in', facts: { pod: 'default/going-pi-1', node: 'pi-1' } },
    ],
  )
  t.equal(world.log.messages('info').length, 2)
})

test('a pod that another one replaced meanwhile is not removed', async (t) => {
  const world = await opened(t)
  await world.reboot('pi-1')
  await world.store.delete('pods', { namespace: 'default', name: 'going-pi-1' })
  await world.run({ name: 'going-pi-1', nodeName: 'pi-1' })
  await world.pass(30)
  t.same(await names(world), all)
})

test('a pod that could not be removed is tried again two seconds later, and the failure is logged', async (t) => {
  const world = fleet(t)
  await world.join({ name: 'pi-1' })
  await world.run({ name: 'going', nodeName: 'pi-1', metadata: { name: 'going', ...leaving } })
  let failures = 1
  const store: Store = {
    ...world.store,
    delete: (...args) => (failures-- > 0 ? Promise.reject(new Error('busy')) : world.store.delete(...args)),
  }
  t.teardown(world.start(rebootController({ ...world, store })))
  await world.pass(20)
  await world.reboot('pi-1')
  await world.pass(3)
  t.match(
    world.log.lines.filter(({ level }) => level === 'warn'),
    [{ message: 'Pod of a rebooted node not removed', facts: { pod: 'default/going', error: /busy/ } }],
  )
  await world.pass(3)
  t.same(await names(world), [])
})

test('a Node that is deleted and registers again has not rebooted', async (t) => {
  const world = await opened(t)
  await world.forgetLeases()
  await world.store.delete('nodes', { namespace: '', name: 'pi-1' })
  await world.pass(1)
  await world.join({ name: 'pi-1', bootID: 'another' })
  await world.pass(30)
  t.same(await names(world), all)
})
