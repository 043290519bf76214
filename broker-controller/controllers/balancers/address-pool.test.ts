import { test } from 'tap'
import { freeAddress, parseAddressRange, poolHas } from './address-pool.ts'

const pool = (...texts: readonly string[]) =>
  texts.map((text) => parseAddressRange(text) ?? { text, first: 0, last: -1 })

test('a range is two addresses, a network or one address', async (t) => {
  const [a, b, c] = pool('192.168.1.240-192.168.1.250', '192.168.2.0/28', '192.168.1.9')
  t.match(a, { first: 0xc0a801f0, last: 0xc0a801fa })
  t.match(b, { first: 0xc0a80200, last: 0xc0a8020f })
  t.match(c, { first: 0xc0a80109, last: 0xc0a80109 })
  for (const text of [
    '',
    'web',
    '192.168.1.250-192.168.1.240',
    '192.168.1.1/28',
    '192.168.1.1-2-3',
    'fd00::1-fd00::2',
  ]) {
    t.equal(parseAddressRange(text), undefined, text)
  }
})

test('addresses are assigned in order, and never those that end with 0 or 255', async (t) => {
  const two = pool('192.168.1.254-192.168.2.1')
  t.equal(freeAddress(two, new Set()), '192.168.1.254')
  t.equal(freeAddress(two, new Set(['192.168.1.254'])), '192.168.2.1')
  t.equal(freeAddress(two, new Set(['192.168.1.254', '192.168.2.1'])), undefined)
  t.ok(poolHas(two, '192.168.2.1'))
  t.notOk(poolHas(two, '192.168.2.0'))
  t.notOk(poolHas(two, '192.168.2.2'))
  t.notOk(poolHas(two, 'fd00::1'))
})
