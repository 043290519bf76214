import { test } from 'tap'
import {
  formatIPv6,
  formatIPv6Range,
  ipv6RangesOverlap,
  isRoutableIPv6,
  parseIPv6,
  parseIPv6Range,
  sizeOfIPv6Range,
} from './ipv6-range.ts'

test('an address is a number, and a number is an address in canonical form', async (t) => {
  t.equal(parseIPv6('::1'), 1n)
  t.equal(parseIPv6('FD00:0:0::10'), (0xfd00n << 112n) + 16n)
  t.equal(formatIPv6((0xfd00n << 112n) + 16n), 'fd00::10')
  t.equal(formatIPv6(0n), '::')
  for (const text of ['10.0.0.1', 'fd00::1%eth0', 'fd00::/64', 'fd00', '']) t.equal(parseIPv6(text), undefined, text)
})

test('a range has no bits beyond its mask', async (t) => {
  const range = parseIPv6Range('fd00:10:244:0000::/56')
  t.equal(range && formatIPv6Range(range), 'fd00:10:244::/56')
  t.equal(range && sizeOfIPv6Range(range), 1n << 72n)
  for (const text of ['fd00::1/64', 'fd00::/129', 'fd00::', '10.0.0.0/8', 'fd00::/64/3', 'fd00::/x']) {
    t.equal(parseIPv6Range(text), undefined, text)
  }
})

test('ranges overlap where one has addresses of the other', async (t) => {
  const overlap = (one: string, other: string) => {
    const [a, b] = [parseIPv6Range(one), parseIPv6Range(other)]
    return a && b && ipv6RangesOverlap(a, b) && ipv6RangesOverlap(b, a)
  }
  t.ok(overlap('fd00::/56', 'fd00:0:0:ff::/64'))
  t.notOk(overlap('fd00::/56', 'fd00:0:0:100::/64'))
})

test('routers forward global and unique local addresses, and no others', async (t) => {
  const isRoutable = (text: string) => isRoutableIPv6(parseIPv6(text) ?? 0n)
  for (const text of ['2001:db8::1', '3fff::1', 'fc00::1', 'fdff::1']) t.ok(isRoutable(text), text)
  const others = ['::', '::1', '::ffff:10.0.0.1', '64:ff9b::1', '4000::1', 'fbff::1', 'fe80::1', 'fec0::1', 'ff02::1']
  for (const text of others) t.notOk(isRoutable(text), text)
})
