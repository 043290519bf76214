import { test } from 'tap'
import type { Event } from '../event.ts'
import { problemText } from '../problem.ts'
import { changedEventProblems, eventProblems, newEventProblems } from './event-validation.ts'

const event = (more: Partial<Event> = {}): Event => ({
  apiVersion: 'v1',
  kind: 'Event',
  metadata: { name: 'one', namespace: 'shop' },
  involvedObject: { kind: 'Pod', namespace: 'shop', name: 'web' },
  ...more,
})
const modern = (more: Partial<Event> = {}) =>
  event({
    eventTime: '2026-01-01T00:00:00.000000Z',
    reportingComponent: 'example.com/robot',
    reportingInstance: 'robot-1',
    action: 'Look',
    reason: 'Seen',
    type: 'Normal',
    ...more,
  })
const legacy = (one: Event) => eventProblems(one, 'reportingComponent').map(problemText)
const created = (one: Event) => newEventProblems(one).map(problemText)
const elsewhere = (namespace: string) =>
  `involvedObject.namespace: Invalid value: "${namespace}": does not match event.namespace`

test('an Event is in the namespace of its object, or in default', async (t) => {
  const about = (own: string, namespace: string) =>
    event({ metadata: { namespace: own }, involvedObject: { ...(namespace !== '' && { namespace }) } })
  t.same(legacy(event()), [])
  t.same(legacy(about('shop', 'other')), [elsewhere('other')])
  t.same(legacy(about('shop', '')), [elsewhere('')])
  t.same(legacy(about('default', '')), [])
  const timed = (own: string, namespace: string) => modern(about(own, namespace))
  t.same(legacy(timed('shop', '')), [elsewhere('')])
  t.same(
    ['default', 'kube-system'].flatMap((own) => legacy(timed(own, ''))),
    [],
  )
  t.same(legacy(timed('shop', 'other')), [])
})

test('an Event with a time names its reporter, its action and its reason', async (t) => {
  t.same(legacy(modern()), [])
  const { reportingComponent: _, reportingInstance: __, action: ___, reason: ____, ...bare } = modern()
  t.match(legacy(bare), [
    'reportingComponent: Required value',
    /^reportingComponent: Invalid value: ""/,
    'reportingInstance: Required value',
    'action: Required value',
    'reason: Required value',
  ])
  t.match(newEventProblems(bare).map(problemText)[0], 'reportingController: Required value')
  const [most, more] = ['x'.repeat(128), 'x'.repeat(129)]
  t.same(legacy(modern({ reportingInstance: most, action: most, reason: most, message: 'x'.repeat(1024) })), [])
  t.same(legacy(modern({ reportingInstance: more, action: more, reason: more, message: 'x'.repeat(1025) })), [
    ...['reportingInstance', 'action', 'reason'].map(
      (name) => `${name}: Invalid value: "": can have at most 128 characters`,
    ),
    'message: Invalid value: "": can have at most 1024 characters',
  ])
})

test('a new Event of events.k8s.io has none of the deprecated fields', async (t) => {
  t.same(created(modern()), [])
  t.same(created(modern({ type: 'Warning', count: 0, source: {} })), [])
  t.same(created(modern({ type: 'Odd', firstTimestamp: 'a', lastTimestamp: 'b', count: 1, source: { host: 'pi' } })), [
    'type: Invalid value: "": has invalid value: Odd',
    ...['firstTimestamp', 'lastTimestamp', 'count', 'source'].map(
      (name) => `${name}: Invalid value: "": needs to be unset`,
    ),
  ])
  t.same(created(modern({ source: { component: 'a' } })).length, 1)
  t.same(created(event({ type: 'Normal' })), ['eventTime: Required value'])
  t.same(created(modern({ series: { count: 1 } })), [
    'series.count: Invalid value: "": should be at least 2',
    'series.lastObservedTime: Required value',
  ])
  t.same(created(modern({ series: { count: 2, lastObservedTime: 'now' } })), [])
})

test('only the series of an Event of events.k8s.io changes', async (t) => {
  const changed = (more: Partial<Event>, old = modern()) =>
    changedEventProblems(old, { ...old, ...more }).map(problemText)
  t.same(changed({}), [])
  t.same(changed({ series: { count: 2, lastObservedTime: 'now' } }), [])
  t.same(changed({ series: { count: 1, lastObservedTime: 'now' } }), [
    'series.count: Invalid value: "": should be at least 2',
  ])
  const counted = modern({ series: { count: 1 } })
  t.same(
    changed({ involvedObject: { name: 'web', namespace: 'shop', kind: 'Pod' } }, counted),
    [],
    'as it was, in another order',
  )
  t.same(changed({ reason: 'Other', reportingComponent: 'other', type: 'Warning', source: {} }), [
    'reason: Invalid value: "Other": field is immutable',
    'type: Invalid value: "Warning": field is immutable',
    'reportingController: Invalid value: "other": field is immutable',
  ])
  const more = { eventTime: '2026-01-01T00:00:00.000001Z', message: 'new', involvedObject: {}, action: 'Other' }
  t.same(
    changed(more)
      .map((text) => text.slice(0, text.indexOf(':')))
      .sort(),
    [...['action', 'eventTime', 'involvedObject', 'involvedObject.namespace', 'message']],
  )
})
