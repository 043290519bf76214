import { test } from 'tap'
import { poolEvent } from './pool-presence.ts'

test('a pool that is missing is reported with the reason, once, and when it is back', async (t) => {
  const [there, gone] = [{ id: 'p', path: '/pool' }, { missing: 'Mount its disk there' }]
  t.match(poolEvent(undefined, gone), { type: 'Warning', reason: 'PoolMissing', message: /: Mount its disk there$/ })
  t.match(poolEvent(there, gone), { reason: 'PoolMissing' })
  t.equal(poolEvent(gone, gone), undefined)
  t.match(poolEvent(gone, { missing: 'another disk is there' }), { message: /another disk is there/ })
  t.match(poolEvent(gone, there), { type: 'Normal', reason: 'PoolFound', message: 'The pool p is at /pool' })
  t.match(poolEvent({ id: 'q', path: '/pool' }, there), { reason: 'PoolFound' })
  for (const before of [undefined, there]) t.equal(poolEvent(before, there), undefined)
  t.equal(poolEvent(there, undefined), undefined)
})
