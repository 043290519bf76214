import { test } from 'tap'
import { fakeClock } from '../testing/fake-clock.ts'
import { expiringMap } from './expiring-map.ts'

test('a value is forgotten when its time is over, which starts again when it is set', async (t) => {
  const clock = fakeClock()
  const map = expiringMap<number>(clock, 100)
  map.set('a', 1)
  await clock.advance(60)
  map.set('a', 2)
  await clock.advance(99)
  t.equal(map.get('a'), 2)
  await clock.advance(1)
  t.equal(map.get('a'), undefined)
})

test('of more values than fit those go that were set first', async (t) => {
  const map = expiringMap<number>(fakeClock(), 100, 2)
  map.set('a', 1)
  map.set('b', 2)
  map.set('a', 3)
  map.set('c', 4)
  t.same(
    ['a', 'b', 'c'].map((key) => map.get(key)),
    [3, undefined, 4],
  )
  map.delete('a')
  t.equal(map.get('a'), undefined)
})
