import { test } from 'tap'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { eventCorrelator, type Occurrence } from './event-correlation.ts'

const created = (message: string, more: Partial<Occurrence> = {}): Occurrence => ({
  object: { kind: 'ReplicaSet', namespace: 'default', name: 'web', uid: 'u1', apiVersion: 'apps/v1' },
  type: 'Normal',
  reason: 'SuccessfulCreate',
  message,
  component: 'replicaset-controller',
  ...more,
})
const minutes = 60_000
const world = () => {
  const clock = fakeClock()
  const { correlate } = eventCorrelator(clock)
  const messageOf = (message: string, more?: Partial<Occurrence>) => correlate(created(message, more))?.message
  /** How many of these are recorded now. */
  const recorded = (count: number, more?: Partial<Occurrence>) =>
    Array.from({ length: count }, () => correlate(created('same', more))).filter((one) => one !== undefined).length
  return { clock, correlate, messageOf, recorded }
}

test('nine similar Events are apart, and those after them are one', async (t) => {
  const { correlate, messageOf } = world()
  for (let n = 1; n <= 9; n++) t.equal(messageOf(`pod ${n}`), `pod ${n}`)
  const [tenth, eleventh] = [correlate(created('pod 10')), correlate(created('pod 11'))]
  t.equal(tenth?.message, '(combined from similar events): pod 10')
  t.equal(eleventh?.message, '(combined from similar events): pod 11')
  t.equal(tenth?.key, eleventh?.key)
  t.equal(messageOf('pod 3'), 'pod 3', 'one of the nine is still counted by itself')
})

test('a combined message is not longer than that of an Event', async (t) => {
  const { messageOf } = world()
  for (let n = 1; n <= 9; n++) messageOf(`pod ${n}`)
  t.equal(messageOf('x'.repeat(1024))?.length, 1024)
})

test('Events are similar that differ in the message and the field only', async (t) => {
  const { messageOf } = world()
  for (let n = 1; n <= 10; n++) messageOf(`pod ${n}`)
  const object = { ...created('').object }
  const isCombined = (more: Partial<Occurrence>) => messageOf('another', more)?.startsWith('(combined')
  t.equal(isCombined({ object: { ...object, fieldPath: 'spec' } }), true)
  t.equal(isCombined({ object: { ...object, resourceVersion: '7' } }), true)
  for (const more of [
    { reason: 'FailedCreate' },
    { type: 'Warning' } as const,
    { component: 'job-controller' },
    { host: 'pi-1' },
    ...Object.keys(object).map((field) => ({ object: { ...object, [field]: 'other' } })),
  ]) {
    t.equal(isCombined(more), false, JSON.stringify(more))
  }
})

test('ten minutes without a similar Event end a series', async (t) => {
  const { clock, messageOf } = world()
  for (let n = 1; n <= 9; n++) {
    messageOf(`pod ${n}`)
    await clock.advance(9 * minutes)
  }
  t.match(messageOf('pod 10'), /^\(combined/)
  await clock.advance(10 * minutes + 1000)
  t.equal(messageOf('pod 11'), 'pod 11')
})

test('one source records 25 Events about an object, then one in five minutes', async (t) => {
  const { clock, recorded } = world()
  t.equal(recorded(40), 25)
  await clock.advance(4 * minutes)
  t.equal(recorded(5), 0)
  await clock.advance(61_000)
  t.equal(recorded(5), 1)
  await clock.advance(24 * 60 * minutes)
  t.equal(recorded(40), 25, 'a day later no more than at first')
})

test('each source, each object and each type has a limit of its own, and each reason has not', async (t) => {
  const { recorded } = world()
  t.equal(recorded(30), 25)
  t.equal(recorded(1, { reason: 'FailedCreate' }), 0)
  const { object } = created('')
  t.equal(recorded(1, { object: { ...object, fieldPath: 'spec', resourceVersion: '7' } }), 0)
  t.equal(recorded(1, { type: 'Warning' }), 1)
  t.equal(recorded(1, { component: 'deployment-controller' }), 1)
  t.equal(recorded(1, { host: 'pi-1' }), 1)
  for (const field of Object.keys(object)) t.equal(recorded(1, { object: { ...object, [field]: 'other' } }), 1, field)
})

test('a reporter that keeps the limit itself is not limited again, and similar Events of it are combined', async (t) => {
  const { messageOf, recorded } = world()
  t.equal(recorded(40, { isLimited: true }), 40)
  t.equal(recorded(40), 25, 'and takes nothing from others')
  for (let n = 1; n <= 9; n++) messageOf(`pod ${n}`, { host: 'pi-1', isLimited: true })
  t.match(messageOf('pod 10', { host: 'pi-1', isLimited: true }), /^\(combined/)
})

test('an Event counts those of its like that were not recorded, and shows since when', async (t) => {
  const { clock, correlate, recorded } = world()
  recorded(25)
  await clock.advance(minutes)
  t.equal(correlate(created('same')), undefined)
  t.equal(correlate(created('another', { times: 4 })), undefined)
  await clock.advance(5 * minutes)
  t.match(correlate(created('another')), { times: 5, agoMs: 5 * minutes })
  await clock.advance(5 * minutes)
  t.match(correlate(created('same', { times: 2 })), { times: 3, agoMs: 10 * minutes })
  await clock.advance(10 * minutes)
  t.match(correlate(created('same')), { times: 1, agoMs: 0 })
})

test('an Event that was not recorded is forgotten after an hour', async (t) => {
  const { clock, correlate, recorded } = world()
  recorded(26)
  await clock.advance(61 * minutes)
  t.match(correlate(created('same')), { times: 1, agoMs: 0 })
})
