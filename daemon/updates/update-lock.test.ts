import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { skipWithout } from '../../test/support/missing-parts.ts'
import { testFolder } from '../testing/test-folder.ts'
import { withUpdateLock } from './update-lock.ts'

const skip = skipWithout('util-linux', existsSync('/usr/bin/flock'))

test('one program at a time holds the lock, and the next one gets it', { skip }, async (t) => {
  const path = join(testFolder(t), 'lock')
  const order: string[] = []
  await withUpdateLock(path, async () => {
    await t.rejects(
      withUpdateLock(path, async () => order.push('too early'), 0),
      /Another program holds/,
    )
    order.push('first')
  })
  await withUpdateLock(path, async () => order.push('second'))
  t.same(order, ['first', 'second'])
})

test('an action that fails releases the lock', { skip }, async (t) => {
  const path = join(testFolder(t), 'lock')
  const failing = async () => {
    throw new Error('It failed')
  }
  await t.rejects(withUpdateLock(path, failing), /It failed/)
  t.equal(await withUpdateLock(path, async () => 'free', 0), 'free')
})
