import { test } from 'tap'
import { hostAddress, hostIPsMeet, isOpenAtIPv6, meetsOneOf, whyUnreachable } from './host-port-address.ts'

const taken = (hostIP: string) => new Set([hostAddress(hostIP)])

test('a port without hostIP meets every other, and that of a whole family each of the family', async (t) => {
  const meeting = [
    ['', '192.0.2.1'],
    ['', 'fd00::1'],
    ['', '::'],
    ['0.0.0.0', '192.0.2.1'],
    ['0.0.0.0', 'fd00::1'],
    ['0.0.0.0', '::'],
    ['::', 'fd00::1'],
    ['0:0::0', 'fd00::1'],
    ['FD00:0::1', 'fd00::1'],
    ['192.0.2.1', '192.0.2.1'],
  ] as const
  for (const [one, other] of meeting) {
    t.ok(hostIPsMeet(one, other), `${one} and ${other}`)
    t.ok(hostIPsMeet(other, one), `${other} and ${one}`)
    t.ok(meetsOneOf(one, taken(other)), `${one} and ${other}, taken`)
    t.ok(meetsOneOf(other, taken(one)), `${other} and ${one}, taken`)
  }
})

test('two addresses do not meet, nor does that of all of IPv6 one of IPv4', async (t) => {
  for (const [one, other] of [
    ['192.0.2.1', '192.0.2.2'],
    ['fd00::1', 'fd00::2'],
    ['fd00::1', '192.0.2.1'],
    ['::', '192.0.2.1'],
  ] as const) {
    t.notOk(hostIPsMeet(one, other), `${one} and ${other}`)
    t.notOk(hostIPsMeet(other, one), `${other} and ${one}`)
    t.notOk(meetsOneOf(one, taken(other)), `${one} and ${other}, taken`)
    t.notOk(meetsOneOf(other, taken(one)), `${other} and ${one}, taken`)
  }
})

test('a port is open at IPv6 without hostIP, and with one of IPv6', async (t) => {
  for (const hostIP of ['', '::', 'fd00::1']) t.ok(isOpenAtIPv6(hostIP), hostIP)
  for (const hostIP of ['0.0.0.0', '192.0.2.1']) t.notOk(isOpenAtIPv6(hostIP), hostIP)
})

test('no packet for a pod has an address of loopback, of the link, of multicast, or an IPv4-mapped one', async (t) => {
  for (const hostIP of ['::1', 'fe80::1', 'FEBF::1', 'ff02::1', '::ffff:192.0.2.1']) {
    t.match(whyUnreachable(hostIP), /address$|address of the link$/, hostIP)
  }
  for (const hostIP of ['', '::', 'fd00::1', '2001:db8::1', '0.0.0.0', '127.0.0.1']) {
    t.equal(whyUnreachable(hostIP), undefined, hostIP)
  }
})
