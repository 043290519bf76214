import { test } from 'tap'
import { turnsByKey } from './turns-by-key.ts'

test('work waits for earlier work of its key, also for work that fails, and for no other', async (t) => {
  const inTurn = turnsByKey()
  const order: string[] = []
  let release = () => {}
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  const first = inTurn('a', async () => {
    order.push('a 1')
    await held
    throw new Error('failed')
  })
  const second = inTurn('a', async () => void order.push('a 2'))
  t.equal(await inTurn('b', async () => order.push('b')), 2)
  t.same(order, ['a 1', 'b'])
  release()
  await t.rejects(first, { message: 'failed' })
  await second
  t.same(order, ['a 1', 'b', 'a 2'])
})
