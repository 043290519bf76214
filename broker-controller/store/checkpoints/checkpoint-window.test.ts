import { type Test, test } from 'tap'
import { aNode } from '../../../api/testing/builders.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { uncertainStore } from '../../testing/uncertain-store.ts'
import { eventRecorder } from '../event-recorder.ts'
import { memoryStore } from '../memory-store.ts'
import { storeLimits } from '../room/store-limits.ts'
import type { Store, StoreOrigin } from '../store.ts'
import { checkpointWindowKey, openCheckpointWindow } from './checkpoint-window.ts'

const origin: StoreOrigin = { id: 'store-2', acceptsCheckpoints: true }
const minuteMs = 60_000
const limitMs = 24 * 60 * minuteMs

test('a store that was not restored accepts no checkpoint', async (t) => {
  const { open } = await world(t)
  t.equal((await open({ id: 'store-1', acceptsCheckpoints: false })).window.isOpen(), false)
})

test('the window closes when all nodes that came with the store sent their checkpoints', async (t) => {
  const { open, join, send, clock } = await world(t)
  await join('pi-1', 'pi-2')
  const { window, closed } = await open()
  await join('later')
  await send('pi-1')
  await clock.advance(60 * minuteMs)
  t.equal(window.isOpen(), true, 'one is missing')
  await send('pi-2')
  await clock.advance(minuteMs)
  t.equal(window.isOpen(), false)
  t.equal(closed.count, 1)
})

test('nodes that are not in the backup have at least ten minutes', async (t) => {
  const { open, join, send, clock } = await world(t)
  await join('pi-1')
  const { window } = await open()
  await send('pi-1')
  await clock.advance(9 * minuteMs)
  t.equal(window.isOpen(), true)
  await clock.advance(2 * minuteMs)
  t.equal(window.isOpen(), false)
})

test('without nodes in the backup the time limit closes the window, counted over restarts and without the date', async (t) => {
  const { open, join, clock, events } = await world(t)
  const first = await open()
  await clock.advance(limitMs / 2)
  await first.stop()
  clock.setWall(clock.wallMs() + 365 * 24 * 3600_000)
  await join('pi-1')
  const second = await open()
  t.equal(second.window.isOpen(), true)
  await clock.advance(limitMs / 2 - 20 * minuteMs)
  t.equal(second.window.isOpen(), true)
  await clock.advance(40 * minuteMs)
  t.equal(second.window.isOpen(), false)
  await second.stop()
  t.equal((await open()).window.isOpen(), false, 'and stays closed')
  t.same(await events(), [])
})

test('an Event names a node of the backup that sent no checkpoint', async (t) => {
  const { open, join, clock, events } = await world(t, 'Nodes sent no checkpoint after the restore')
  await join('pi-1')
  await open()
  await clock.advance(limitMs + minuteMs)
  t.match(await events(), [{ reason: 'CheckpointMissed', type: 'Warning', involvedObject: { name: 'pi-1' } }])
})

test('an administrator closes the window in the ConfigMap; another restore opens it again', async (t) => {
  const { open, clock, store } = await world(t)
  const { window, stop } = await open()
  const map = await store.get('configmaps', checkpointWindowKey)
  if (map === undefined) return t.fail('there is no ConfigMap')
  await store.update('configmaps', { ...map, data: { ...map.data, state: 'closed' } })
  await clock.settle()
  t.equal(window.isOpen(), false)
  await stop()
  t.equal((await open()).window.isOpen(), false)
  t.equal((await open({ id: 'store-3', acceptsCheckpoints: true })).window.isOpen(), true)
})

test('a store of an earlier version, which accepted checkpoints without end, closes by its age', async (t) => {
  const { open, join, send, clock } = await world(t)
  await join('pi-1')
  await send('pi-1')
  const sinceMs = clock.wallMs() - limitMs
  t.equal((await open({ ...origin, sinceMs })).window.isOpen(), false)
})

test('a ConfigMap that is deleted or cannot be decoded closes the window for good', async (t) => {
  for (const isOpenBefore of [true, false]) {
    for (const data of [undefined, { state: 'open' }]) {
      const { open, clock, store } = await world(t)
      const first = await open()
      if (!isOpenBefore) await clock.advance(limitMs + minuteMs)
      t.equal(first.window.isOpen(), isOpenBefore)
      const map = await store.get('configmaps', checkpointWindowKey)
      if (map === undefined) return t.fail('there is no ConfigMap')
      if (data === undefined) await store.delete('configmaps', checkpointWindowKey)
      else await store.update('configmaps', { ...map, data })
      await clock.settle()
      t.equal(first.window.isOpen(), false)
      await first.stop()
      t.equal((await open()).window.isOpen(), false, 'after a restart, too')
      t.match((await store.get('configmaps', checkpointWindowKey))?.data, { state: 'closed', store: origin.id })
    }
  }
})

test('writes that etcd did not answer end no controller, and are repeated', async (t) => {
  const { open, clock, store } = await world(t)
  const { store: unsure } = uncertainStore(store, false)
  const states = async () => (await store.get('configmaps', checkpointWindowKey))?.data
  const first = await open(origin)
  await first.stop()
  const second = await open(origin, unsure)
  await clock.advance(2 * minuteMs)
  t.equal((await states())?.['openSeconds'], '120', 'the time is saved at the next look')
  await second.stop()
  const map = await store.get('configmaps', checkpointWindowKey)
  if (map === undefined) return t.fail('there is no ConfigMap')
  await store.update('configmaps', { ...map, data: { ...map.data, openSeconds: String(limitMs / 1000 - 10) } })
  const third = await open(origin, uncertainStore(store, false).store)
  await clock.advance(minuteMs)
  t.equal(third.window.isOpen(), false)
  t.match(await states(), { state: 'closed' })
  await third.stop()
})

test('the time of a controller that is restarted every few minutes counts', async (t) => {
  const { open, clock, store } = await world(t)
  const openSeconds = async () => Number((await store.get('configmaps', checkpointWindowKey))?.data?.['openSeconds'])
  for (let i = 0; i < 5; i++) {
    const { stop } = await open()
    await clock.advance(2 * minuteMs)
    await stop()
  }
  t.equal(await openSeconds(), 600, 'workloads wait for ten minutes, over restarts')
  for (let i = 0; i < 10; i++) {
    const { stop } = await open()
    await clock.advance(2 * minuteMs)
    await stop()
  }
  t.ok((await openSeconds()) >= 600 + 300, 'later 30 s of each start')
})

test('a store of an earlier version that did not record its beginning stays closed', async (t) => {
  const { open, join, send, store } = await world(t)
  await join('pi-1')
  await send('pi-1')
  const first = await open()
  t.equal(first.window.isOpen(), false)
  await first.stop()
  await store.delete('nodes', { namespace: '', name: 'pi-1' })
  t.equal((await open()).window.isOpen(), false, 'also without the nodes that show that it is earlier')
})

test('a backup that is larger than the store may be is opened, and its time is saved once there is room', async (t) => {
  for (const namespaces of [['shop-1', 'shop-2', 'shop-3'], ['kube-system']]) {
    for (const hasEarlier of [false, true]) {
      const { open, clock } = await world(t)
      const log = quietLog(t)
      const present = memoryStore({ clock, limits: storeLimits(100_000) })
      if (hasEarlier) await (await open({ ...origin, id: 'a' }, present)).stop()
      for (const namespace of namespaces) {
        const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'large', namespace } } as const
        await present.create('configmaps', { ...map, data: { a: 'x'.repeat(40_000) } })
      }
      const saved = async () => (await present.get('configmaps', checkpointWindowKey))?.data?.['store']
      const { window } = await open(origin, present, log)
      t.equal(window.isOpen(), true)
      await clock.advance(10 * minuteMs)
      t.equal(window.isOpen(), true)
      t.equal(await saved(), hasEarlier ? 'a' : undefined)
      t.equal(log.messages('warn').length, 1)
      for (const namespace of namespaces) await present.delete('configmaps', { namespace, name: 'large' })
      await clock.advance(minuteMs)
      t.equal(await saved(), origin.id)
      await present.delete('configmaps', checkpointWindowKey)
      await clock.settle()
      t.equal(window.isOpen(), false, 'it can be closed as before')
    }
  }
})

async function world(t: Test, ...expected: readonly string[]) {
  const clock = fakeClock()
  const ownLog = quietLog(t, ...expected)
  const store = memoryStore({ clock })
  return {
    clock,
    store,
    events: async () => (await store.list('events')).items,
    async join(...names: readonly string[]) {
      for (const name of names) {
        const { resourceVersion: _, ...metadata } = aNode({ name }).metadata
        await store.create('nodes', { ...aNode({ name }), metadata })
      }
    },
    async send(name: string) {
      const node = await store.get('nodes', { namespace: '', name })
      if (node === undefined) throw new Error(`no node ${name}`)
      const annotations = { ...node.metadata.annotations, 'bramble.dev/learnt-by': origin.id }
      await store.update('nodes', { ...node, metadata: { ...node.metadata, annotations } })
    },
    async open(ours: StoreOrigin = origin, used: Store = store, log = ownLog) {
      const needs = { store: used, clock, log, events: eventRecorder({ store: used, clock }) }
      const window = await openCheckpointWindow(needs, ours, { limitMs })
      const closed = { count: 0 }
      window.onClose(() => {
        closed.count += 1
      })
      const ending = new AbortController()
      const ended = window.run(ending.signal)
      const stop = async () => {
        ending.abort()
        await ended
      }
      t.teardown(stop)
      await clock.settle()
      return { window, closed, stop }
    },
  }
}
