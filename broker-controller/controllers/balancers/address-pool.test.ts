import { test } from 'tap'
import { freeAddresses, parseAddressRange, poolHas } from './address-pool.ts'

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
  t.same([...freeAddresses(two, new Set())], ['192.168.1.254', '192.168.2.1'])
  t.same([...freeAddresses(two, new Set(['192.168.1.254']))], ['192.168.2.1'])
  t.same([...freeAddresses(two, new Set(['192.168.1.254', '192.168.2.1']))], [])
  t.ok(poolHas(two, '192.168.2.1'))
  t.notOk(poolHas(two, '192.168.2.0'))
  t.notOk(poolHas(two, '192.168.2.2'))
  t.notOk(poolHas(two, 'fd00::1'))
})

test('the pool is searched once, however many addresses are taken from it', async (t) => {
  const taken = new Set<string>()
  let lookups = 0
  const has = (ip: string) => {
    lookups++
    return taken.has(ip)
  }
  for (const ip of freeAddresses(pool('192.168.2.0/24'), { has })) taken.add(ip)
  t.same([taken.size, lookups], [254, 254])
})
