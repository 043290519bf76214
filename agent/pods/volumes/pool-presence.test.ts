import { test } from 'tap'
import { poolEvents } from './pool-presence.ts'

test('a pool that is missing is reported with the reason, once, and when it is back', async (t) => {
  const [there, gone] = [{ id: 'p', path: '/pool' }, { missing: 'Mount its disk there' }]
  t.match(poolEvents([], [gone]), [{ type: 'Warning', reason: 'PoolMissing', message: /: Mount its disk there$/ }])
  t.match(poolEvents([there], [gone]), [{ reason: 'PoolMissing' }])
  t.same(poolEvents([gone], [gone]), [])
  t.match(poolEvents([gone], [{ missing: 'another disk is there' }]), [{ message: /another disk is there/ }])
  t.match(poolEvents([gone], [there]), [{ type: 'Normal', reason: 'PoolFound', message: 'The pool p is at /pool' }])
  t.match(poolEvents([{ id: 'q', path: '/pool' }], [there]), [{ reason: 'PoolFound' }])
  for (const before of [[], [there]]) t.same(poolEvents(before, [there]), [])
  t.same(poolEvents([there], [{ ...there, full: true }]), [])
})

test('of several pools the one that changed is named', async (t) => {
  const [card, ssd] = [
    { id: 'p', path: '/card', name: 'card' },
    { id: 'q', path: '/ssd', name: 'ssd' },
  ]
  const gone = { name: 'ssd', missing: 'no disk with the UUID x is attached' }
  t.match(poolEvents([card, ssd], [card, gone]), [{ message: /^Pods with volumes in the pool ssd wait/ }])
  t.match(poolEvents([card, gone], [card, ssd]), [{ message: 'The pool ssd (q) is at /ssd' }])
})
