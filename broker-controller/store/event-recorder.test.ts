import { test } from 'tap'
import { systemClock } from '../../daemon/clock.ts'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import type { Occurrence } from './event-correlation.ts'
import { eventRecorder } from './event-recorder.ts'
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

test('similar events end in one that is counted and shows the newest message', async (t) => {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  const recorder = eventRecorder({ store, clock })
  for (let n = 1; n <= 1000; n++) await recorder.record({ ...notReady, message: `pod ${n}` })
  const { items } = await store.list('events')
  t.equal(items.length, 10)
  t.match(items.at(-1), { message: '(combined from similar events): pod 25', count: 16 })
  await clock.advance(300_000)
  await recorder.record({ ...notReady, message: 'pod 1001' })
  const last = (await store.list('events')).items.at(-1)
  t.match(last, {
    message: '(combined from similar events): pod 1001',
    count: 992,
    firstTimestamp: '2026-01-01T00:00:00Z',
  })
  t.equal(last?.lastTimestamp, '2026-01-01T00:05:00Z')
})

test('an event that was held back is stored with its count and its first time', async (t) => {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  const recorder = eventRecorder({ store, clock })
  for (let n = 1; n <= 25; n++) await recorder.record(notReady)
  await recorder.record({ ...notReady, reason: 'Other' })
  await clock.advance(300_000)
  await recorder.record({ ...notReady, reason: 'Other' })
  const other = (await store.list('events')).items.find(({ reason }) => reason === 'Other')
  t.match(other, { count: 2, firstTimestamp: '2026-01-01T00:00:00Z', lastTimestamp: '2026-01-01T00:05:00Z' })
})

test('a count stays a 32-bit integer', async (t) => {
  const store = memoryStore({ clock: systemClock })
  const recorder = eventRecorder({ store, clock: systemClock })
  for (const times of [2 ** 31 - 1, 5]) await recorder.record({ ...notReady, times })
  t.equal((await store.list('events')).items[0]?.count, 2 ** 31 - 1)
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
