import { test } from 'tap'
import { hasOwnAddress } from './own-address.ts'

test('an address is the machine’s, or another one’s', async (t) => {
  t.equal(await hasOwnAddress('127.0.0.1'), true)
  t.equal(await hasOwnAddress('192.0.2.1'), false, 'of no machine (RFC 5737)')
  t.equal(await hasOwnAddress('2001:db8::1'), false, 'of no machine (RFC 3849)')
  t.equal(await hasOwnAddress('fe80::1'), true, 'of a link that is not named: not known')
})
