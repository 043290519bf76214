import { test } from 'tap'
import { systemClock } from '../../daemon/clock.ts'
import { eventRecorder, type Occurrence } from './event-recorder.ts'
import { memoryStore } from './memory-store.ts'

const notReady: Occurrence = {
  object: { kind: 'Node', name: 'pi-1', uid: 'pi-1' },
  type: 'Normal',
  reason: 'NodeNotReady',
  message: 'Node pi-1 status is now: NodeNotReady',
  component: 'node-lifecycle-controller',
}

test('an event is counted when it happens again', async (t) => {
  let wallMs = Date.parse('2026-01-01T00:00:00Z')
  const clock = { ...systemClock, wallMs: () => wallMs }
  const store = memoryStore({ clock })
  const recorder = eventRecorder({ store, clock })
  await recorder.record(notReady)
  wallMs += 90_000
  await recorder.record(notReady)
  const { items } = await store.list('events', 'default')
  t.equal(items.length, 1)
  t.match(items[0], {
    metadata: { name: /^pi-1\.[0-9a-f]{16}$/ },
    count: 2,
    firstTimestamp: '2026-01-01T00:00:00Z',
    lastTimestamp: '2026-01-01T00:01:30Z',
    source: { component: 'node-lifecycle-controller' },
    reportingComponent: 'node-lifecycle-controller',
  })
})

test('events that differ in anything but the version of their object are apart', async (t) => {
  const store = memoryStore({ clock: systemClock })
  const recorder = eventRecorder({ store, clock: systemClock })
  const pod = { kind: 'Pod', namespace: 'team', name: 'web', uid: 'u1' }
  await recorder.record({ ...notReady, object: { ...pod, resourceVersion: '1' } })
  await recorder.record({ ...notReady, object: { ...pod, resourceVersion: '2' } })
  await recorder.record({ ...notReady, object: { ...pod, uid: 'u2' } })
  await recorder.record({ ...notReady, object: pod, message: 'another' })
  await recorder.record({ ...notReady, object: pod, host: 'pi-1' })
  t.same((await store.list('events', 'team')).items.map(({ count }) => count).sort(), [1, 1, 1, 2])
})

test('events recorded at one moment are all counted', async (t) => {
  const store = memoryStore({ clock: systemClock })
  const recorder = eventRecorder({ store, clock: systemClock })
  await Promise.all([1, 2, 3, 4].map(() => recorder.record(notReady)))
  t.equal((await store.list('events')).items[0]?.count, 4)
})

test('an event that has expired starts at one again', async (t) => {
  const store = memoryStore({ clock: systemClock })
  const recorder = eventRecorder({ store, clock: systemClock })
  await recorder.record(notReady)
  const [first] = (await store.list('events')).items
  await store.delete('events', { namespace: 'default', name: first?.metadata.name ?? '' })
  await recorder.record(notReady)
  const [second] = (await store.list('events')).items
  t.equal(second?.count, 1)
  t.not(second?.metadata.name, first?.metadata.name)
})

test('names sort as the events happened, however fast they come', async (t) => {
  const clock = { ...systemClock, wallMs: () => Date.parse('2026-01-01T00:00:00Z') }
  const store = memoryStore({ clock })
  const recorder = eventRecorder({ store, clock })
  const messages = ['zero', 'one', 'two', 'three', 'four']
  await Promise.all(messages.map((message) => recorder.record({ ...notReady, message })))
  t.same(
    (await store.list('events')).items.map(({ message }) => message),
    messages,
  )
})

test('an event of any length is kept within the limits of Kubernetes', async (t) => {
  const store = memoryStore({ clock: systemClock })
  const long = 'x'.repeat(100_000)
  const object = { ...notReady.object, fieldPath: long }
  const occurrence = { ...notReady, object, reason: long, message: long, component: long, host: long }
  await eventRecorder({ store, clock: systemClock }).record(occurrence)
  const [event] = (await store.list('events')).items
  t.ok(JSON.stringify(event).length < 4000)
  t.same([event?.message, event?.reason?.length], [`${'x'.repeat(1020)} ...`, 128])
})
