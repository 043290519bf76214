import { test } from 'tap'
import type { UsageRow } from '../../api/dashboard/dashboard-messages.ts'
import { aNode } from '../../api/testing/builders.ts'
import { isWorthSending, usageRow } from '../../broker-controller/usage/usage-row.ts'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { usageHistory } from './usage-history.ts'

const minute = 60_000

test('the last day is kept in steps of two minutes, with gaps where nothing was recorded', async (t) => {
  const clock = fakeClock()
  const history = usageHistory({ clock })
  t.equal(history.of('pi-1'), undefined)
  history.record('pi-1', [10, 20, 50, 30, 0.5, 0])
  await clock.advance(4 * minute)
  history.record('pi-1', [12, null, 51, 30, 0.5, 0])
  const found = history.of('pi-1')
  t.equal(found?.cpu.length, 720)
  t.same(found?.cpu.slice(-3), [10, null, 12])
  t.same(found?.memory.slice(-3), [20, null, null])
  await clock.advance(24 * 60 * minute)
  t.ok(
    history.of('pi-1')?.cpu.every((value) => value === null),
    'older than a day',
  )
})

test('a thousand nodes take 3 MB, and nodes that are gone take nothing', async (t) => {
  const history = usageHistory({ clock: fakeClock() })
  for (let i = 0; i < 1_000; i++) history.record(`pi-${i}`, [1, 1, 1, 1, 1, 1])
  t.ok(history.bytes <= 3_000_000, `${history.bytes} bytes`)
  history.keepOnly(new Set(['pi-1']))
  t.equal(history.bytes, 2_880)
  t.equal(history.of('pi-2'), undefined)
})

test('usage is in percent of the capacity, and null where it is not reported', async (t) => {
  const plain = aNode({ name: 'pi-1', ready: 'True' })
  const node = { ...plain, status: { ...plain.status, capacity: { cpu: '4', memory: '1Gi' } } }
  const received = { receivedMs: 0, receivedWallMs: 0, windowSeconds: 10, pods: new Map() }
  const used = { cpu: 1e9, memory: 2 ** 29 }
  const machine = { celsius: 51.6, load: 0.27, diskUsedBytes: 3, diskCapacityBytes: 10 }
  t.same(
    usageRow({ ...received, node: used, machine, startTime: '1970-01-01T00:01:00Z' }, node),
    [25, 50, 52, 30, 0.3, 60],
  )
  t.same(usageRow({ ...received, node: { cpu: undefined, memory: undefined } }, node), [
    null,
    null,
    null,
    null,
    null,
    null,
  ])
})

test('only a change that can be seen is sent', async (t) => {
  const row: UsageRow = [10, 50, 52, 30, 0.3, 60]
  t.equal(isWorthSending(undefined, row), true)
  t.equal(isWorthSending(row, [13, 51, 53, 30, 0.6, 60]), false)
  t.equal(isWorthSending(row, [14, 50, 52, 30, 0.3, 60]), true)
  t.equal(isWorthSending(row, [10, 50, null, 30, 0.3, 60]), true)
})
