import { test } from 'tap'
import { zoneQueues } from './zone-queues.ts'

test('a node waits in the queue of its zone only', async (t) => {
  const queues = zoneQueues(1)
  queues.add('a', 'x', 0)
  queues.add('b', 'x', 0)
  queues.add('c', 'y', 0)
  t.same(queues.take(0), ['a', 'c'])
  queues.add('a', 'y', 0)
  t.same(queues.take(1000), ['b', 'c'])
  queues.setRate('x', 0, 1000)
  queues.remove('c')
  t.same(queues.take(2000), ['a'])
})

test('a node that is queued again keeps its place and costs no token', async (t) => {
  const queues = zoneQueues(0.1)
  for (const name of ['a', 'b', 'a']) queues.add(name, 'x', 0)
  t.same(queues.take(0), ['a'])
  t.same([queues.take(9_999), queues.take(10_000)], [[], ['a']], 'it is queued until it is removed')
  queues.remove('a')
  t.same([queues.has('a'), queues.has('b'), queues.take(20_000)], [false, true, ['b']])
  queues.remove('unknown')
})

test('a zone has its rate before its first node is queued, and keeps it', async (t) => {
  const queues = zoneQueues(0.1)
  queues.setRate('x', 0, 0)
  queues.add('a', 'x', 0)
  t.same([queues.take(60_000), queues.nextMs(60_000)], [[], undefined], 'a zone that stands still has no next time')
  queues.setRate('x', 0.01, 60_000)
  t.same([queues.nextMs(60_000), queues.take(159_999), queues.take(160_000)], [160_000, [], ['a']])
})

test('the next time is the earliest of all zones', async (t) => {
  const queues = zoneQueues(0.1)
  t.equal(queues.nextMs(0), undefined, 'no node is queued')
  for (const [name, zone] of [
    ['a', 'x'],
    ['b', 'x'],
    ['c', 'y'],
  ] as const)
    queues.add(name, zone, 0)
  t.same(queues.take(0), ['a', 'c'])
  queues.remove('a')
  queues.setRate('y', 1, 0)
  t.equal(queues.nextMs(0), 1_000)
  queues.remove('c')
  t.equal(queues.nextMs(0), 10_000)
  t.equal(queues.nextMs(12_000), 12_000, 'it is due already')
})
