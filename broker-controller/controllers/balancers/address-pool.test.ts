import { test } from 'tap'
import { freeAddresses, parseAddressRange, poolHas } from './address-pool.ts'

const pool = (...texts: readonly string[]) =>
  texts.map((text) => parseAddressRange(text) ?? { text, family: 'IPv4' as const, first: 0n, last: -1n })

test('a range is two addresses, a network or one address', async (t) => {
  const [a, b, c] = pool('192.168.1.240-192.168.1.250', '192.168.2.0/28', '192.168.1.9')
  t.match(a, { first: 0xc0a801f0n, last: 0xc0a801fan })
  t.match(b, { first: 0xc0a80200n, last: 0xc0a8020fn })
  t.match(c, { first: 0xc0a80109n, last: 0xc0a80109n })
  for (const text of [
    '',
    'web',
    '192.168.1.250-192.168.1.240',
    '192.168.1.1/28',
    '192.168.1.1-2-3',
    'fd00::2-fd00::1',
    'fd00::1/120',
    'fd00::1-192.168.1.9',
    '192.168.1.9-fd00::1',
    'fe80::1%eth0',
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

test('an IPv6 range is the same', async (t) => {
  const [a, b, c] = pool('fd00:9::240-FD00:9:0::0250', 'fd00:9::2:0/120', 'fd00:9::9')
  const first = 0xfd00_0009n << 96n
  t.match(a, { family: 'IPv6', first: first + 0x240n, last: first + 0x250n })
  t.match(b, { first: first + 0x20000n, last: first + 0x200ffn })
  t.match(c, { first: first + 9n, last: first + 9n })
  t.ok(poolHas(pool('fd00:9::240-fd00:9::250'), 'fd00:9::24f'))
  t.notOk(poolHas(pool('fd00:9::240-fd00:9::250'), 'fd00:9::251'))
  t.same(
    [...freeAddresses(pool('192.168.1.9', 'fd00:9::/126'), new Set(['fd00:9::2']))],
    [...['192.168.1.9', 'fd00:9::1', 'fd00:9::3']],
  )
  t.notOk(poolHas(pool('fd00:9::/126'), 'fd00:9::'), 'that of the routers of the link')
  t.notOk(poolHas(pool('192.168.1.240'), '::c0a8:1f0'), 'the same number in the other family')
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
