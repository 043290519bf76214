import { test } from 'tap'
import type { Event } from '../../../api/event.ts'
import { eventStrategy } from './event.ts'

const nowMs = Date.parse('2026-01-01T00:10:00Z')
const row = (object: Event) => {
  const cells = eventStrategy.table.cells(object, nowMs)
  return Object.fromEntries(eventStrategy.table.columns.map(({ name }, index) => [name, cells[index]]))
}

test('the row of an event shows its time, reason and object', async (t) => {
  const event: Event = {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: 'pi-01.1', namespace: 'default' },
    involvedObject: { kind: 'Node', name: 'pi-01' },
    reason: 'NodeReady',
    message: ' Node is ready\n',
    type: 'Normal',
    firstTimestamp: '2026-01-01T00:05:00Z',
    lastTimestamp: '2026-01-01T00:09:00Z',
    source: { component: 'kubelet', host: 'pi-01' },
  }
  t.same(row(event), {
    'Last Seen': '60s',
    Type: 'Normal',
    Reason: 'NodeReady',
    Object: 'node/pi-01',
    Subobject: '',
    Source: 'kubelet, pi-01',
    Message: 'Node is ready',
    'First Seen': '5m',
    Count: 1,
    Name: 'pi-01.1',
  })
})

const event = (more: Partial<Event> = {}): Event => ({
  apiVersion: 'v1',
  kind: 'Event',
  metadata: { name: 'web.1', namespace: 'default' },
  involvedObject: { kind: 'Pod', name: 'web', fieldPath: 'spec.containers{main}' },
  ...more,
})

test('an event of the newer API shows its series, its time and who reports it', async (t) => {
  const single = {
    eventTime: '2026-01-01T00:08:00.000000Z',
    reportingComponent: 'scheduler',
    reportingInstance: 'pi-01',
  }
  t.match(row(event(single)), {
    'Last Seen': '2m',
    'First Seen': '2m',
    Count: 1,
    Source: 'scheduler, pi-01',
    Subobject: 'spec.containers{main}',
  })
  const series = { count: 5, lastObservedTime: '2026-01-01T00:09:50.000000Z' }
  t.match(row(event({ ...single, series, count: 2, lastTimestamp: '2026-01-01T00:09:00Z' })), {
    'Last Seen': '10s',
    'First Seen': '2m',
    Count: 5,
  })
})

test('what an event leaves out is shown as kubectl shows it', async (t) => {
  t.match(row(event({ involvedObject: { kind: 'Node' } })), {
    ...{ 'Last Seen': '<unknown>', 'First Seen': '<unknown>', Type: '', Reason: '', Message: '', Source: '', Count: 1 },
    ...{ Object: 'node', Subobject: '' },
  })
  t.equal(row(event({ source: { component: 'kubelet' } }))['Source'], 'kubelet')
  t.equal(row(event({ source: { component: 'kubelet' }, reportingComponent: 'other' }))['Source'], 'kubelet')
  t.equal(row(event({ count: 7 }))['Count'], 7)
  t.equal(row(event({ count: 0 }))['Count'], 1, 'as protobuf has an absent count')
})

test('an event of a node has the name of the node as its source', async (t) => {
  const source = (user: string, groups: readonly string[]) =>
    eventStrategy.prepareForCreate?.(event({ source: { component: 'kubelet', host: 'pi-02' } }), {
      nowMs,
      requester: { user, groups },
    }).source
  t.same(source('system:node:pi-01', ['system:nodes']), { component: 'kubelet', host: 'pi-01' })
  t.same(source('admin', ['system:masters']), { component: 'kubelet', host: 'pi-02' })
})

test('texts of an event are cut rather than refused', async (t) => {
  const shortened = eventStrategy.withDefaults?.(event({ message: 'x'.repeat(1_025), reason: 'x'.repeat(129) }))
  t.same([shortened?.message?.length, shortened?.reason?.length], [1_024, 128])
  t.same(eventStrategy.withDefaults?.(event()), event())
})
