import { test } from 'tap'
import { eventLimit } from './event-limit.ts'

test('an object gets a burst of Events, then one in five minutes', async (t) => {
  const limit = eventLimit()
  const count = (uid: string, nowMs: number) => {
    let allowed = 0
    while (limit.allows(uid, nowMs)) allowed++
    return allowed
  }
  t.equal(count('a', 0), 25)
  t.equal(count('b', 0), 25)
  t.equal(count('a', 299_000), 0)
  t.equal(count('a', 300_000), 1)
  t.equal(count('a', 900_000), 2)
  limit.forget('a')
  t.equal(count('a', 900_000), 25)
})
