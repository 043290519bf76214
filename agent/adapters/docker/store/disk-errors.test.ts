import { readFile } from 'node:fs/promises'
import { test } from 'tap'
import { diskErrorOf } from './disk-errors.ts'

test('errors of a damaged disk are kept apart from those of this process', async (t) => {
  // The kernel has no memory at the address 0.
  t.equal(await readFile('/proc/self/mem').catch(diskErrorOf), 'EIO')
  t.equal(diskErrorOf(Object.assign(new Error('lstat'), { errno: -117, code: 'Unknown system error -117' })), 'EUCLEAN')
  t.equal(diskErrorOf(Object.assign(new Error('read'), { errno: -74 })), 'EBADMSG')
  t.equal(await readFile('/').catch(diskErrorOf), undefined, 'EISDIR')
  t.equal(diskErrorOf(Object.assign(new Error('open'), { errno: -24, code: 'EMFILE' })), undefined)
  t.equal(diskErrorOf('EIO'), undefined)
})
