import { test } from 'tap'
import type { UsageRow } from '../../api/dashboard/dashboard-messages.ts'
import { aNode } from '../../api/testing/builders.ts'
import type { ReceivedUsage } from '../../broker-controller/usage/usage-board.ts'
import { changedUsage } from './fleet-usage.ts'

test('rows are sent when they change, and those of nodes that are gone are not kept', async (t) => {
  const received: ReceivedUsage = {
    ...{ receivedMs: 0, receivedWallMs: 0, windowSeconds: 30 },
    ...{ node: { cpu: 1, memory: 1 }, pods: new Map() },
  }
  const usage = { newest: () => received }
  const nodes = ['pi-1', 'pi-2'].map((name) => aNode({ name, ready: 'True' }))
  const last = new Map<string, UsageRow>()
  t.same(Object.keys(changedUsage(new Set(nodes).values(), last, usage)), ['pi-1', 'pi-2'])
  t.same(changedUsage(nodes, last, usage), {})
  changedUsage(nodes.slice(1), last, usage)
  t.same([...last.keys()], ['pi-2'])
})
