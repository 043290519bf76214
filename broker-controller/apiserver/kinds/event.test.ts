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
