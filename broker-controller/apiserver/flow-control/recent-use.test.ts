import { test } from 'tap'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { recentUse } from './recent-use.ts'

test('a use counts less the older it is, until it counts as nothing', async (t) => {
  const clock = fakeClock()
  const used = recentUse(5_000, clock)
  used.add('a', 100)
  used.add('a', 20)
  t.equal(used.of('a'), 120)
  t.equal(used.of('b'), 0)
  await clock.advance(5_000)
  t.equal(Math.round(used.of('a')), 44)
  used.add('a', 56)
  t.equal(Math.round(used.of('a')), 100)
  used.add('b', 3)
  t.same([...used.ofOthers('a')], [3])
  t.same([...used.ofOthers('b')].map(Math.round), [100])
  await clock.advance(60_000)
  t.same([...used.ofOthers('c')], [])
  t.equal(used.size, 0)
})

test('flows that have used nothing lately take no memory', async (t) => {
  const clock = fakeClock()
  const used = recentUse(5_000, clock)
  for (let count = 0; count < 50_000; count++) {
    if (count % 1_000 === 0) await clock.advance(5_000)
    used.add(`${count}`, 1)
  }
  t.ok(used.size < 10_000, `${used.size}`)
})
