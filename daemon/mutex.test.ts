import { setImmediate } from 'node:timers/promises'
import { test } from 'tap'
import { mutex } from './mutex.ts'

test('work runs one at a time and in order, also after a failure', async (t) => {
  const locked = mutex()
  const order: string[] = []
  const work = (name: string) => async () => {
    order.push(`${name} starts`)
    await setImmediate()
    order.push(`${name} ends`)
    if (name === 'b') throw new Error('b failed')
    return name
  }
  const results = await Promise.allSettled([locked(work('a')), locked(work('b')), locked(work('c'))])
  t.same(order, ['a starts', 'a ends', 'b starts', 'b ends', 'c starts', 'c ends'])
  t.match(results, [{ value: 'a' }, { reason: { message: 'b failed' } }, { value: 'c' }])
})
