import { isIP } from 'node:net'
import { test } from 'tap'
import { isIPAddress } from './ip-address.ts'

const texts = [
  ...[
    '10.0.0.1',
    '0.0.0.0',
    '255.255.255.255',
    '256.0.0.1',
    '1.2.3',
    '1.2.3.4.5',
    '01.2.3.4',
    '',
    ' 1.2.3.4',
    'a.b.c.d',
  ],
  ...['::', '::1', '1::', '2001:db8::ffff', '1:2:3:4:5:6:7:8', '1:2:3:4:5:6:7', '1:2:3:4:5:6:7:8:9', '1::2::3'],
  ...['::ffff:192.0.2.1', '1:2:3:4:5:6:192.0.2.1', '192.0.2.1::', '::192.0.2.1:1', '12345::', 'g::', ':1', '1:', ':::'],
  ...['1:2:3:4:5:6:7::', '::1:2:3:4:5:6:7', '1:2:3:4::5:6:7:8', 'fe80::1'],
]

test('an address is what the machine takes for one', async (t) => {
  for (const text of texts) t.equal(isIPAddress(text), isIP(text) !== 0, text)
})
