import { test } from 'tap'
import type { Event } from '../../../api/event.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { eventLimit } from './event-limit.ts'

const backOff = (name: string, more: Partial<Event> = {}): Event => ({
  apiVersion: 'v1',
  kind: 'Event',
  metadata: { name },
  involvedObject: { kind: 'Pod', namespace: 'default', name, uid: name },
  type: 'Warning',
  reason: 'BackOff',
  message: 'Back-off restarting failed container',
  count: 1,
  ...more,
})

test('a pod that crashes for a day publishes 25 Events, then one in five minutes that counts the others', async (t) => {
  const clock = fakeClock()
  const limit = eventLimit(clock)
  const counts = Array.from({ length: 30 }, () => limit(backOff('web'))?.count)
  t.same(counts, [...Array(25).fill(1), ...Array(5).fill(undefined)])
  await clock.advance(301_000)
  t.equal(limit(backOff('web'))?.count, 6)
  t.equal(limit(backOff('web')), undefined)
})

test('an Event that was not published counts for none that differs', async (t) => {
  const clock = fakeClock()
  const limit = eventLimit(clock)
  for (let n = 0; n < 30; n++) limit(backOff('web'))
  await clock.advance(301_000)
  t.equal(limit(backOff('web', { message: 'another' }))?.count, 1)
})

test('each object and each type of Event has a limit of its own', async (t) => {
  const limit = eventLimit(fakeClock())
  for (let n = 0; n < 30; n++) limit(backOff('web'))
  t.equal(limit(backOff('web')), undefined)
  t.match(limit(backOff('web', { type: 'Normal' })), { type: 'Normal' })
  t.match(limit(backOff('db')), { metadata: { name: 'db' } })
})
