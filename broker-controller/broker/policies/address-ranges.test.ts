import { test } from 'tap'
import { addressRanges } from './address-ranges.ts'

test('a block is a range, without the blocks that it excepts', (t) => {
  const of = (cidr: string, ...except: readonly string[]) => addressRanges([{ cidr, except }])
  t.same(of('10.0.0.0/24'), ['10.0.0.0-10.0.0.255'])
  t.same(of('10.0.0.7/24'), ['10.0.0.0-10.0.0.255'], 'bits beyond the mask do not count')
  t.same(of('192.0.2.1/32'), ['192.0.2.1-192.0.2.1'])
  t.same(of('0.0.0.0/0', '128.0.0.0/1'), ['0.0.0.0-127.255.255.255'])
  t.same(of('10.0.0.0/24', '10.0.0.128/25', '10.0.0.0/26'), ['10.0.0.64-10.0.0.127'])
  t.same(of('10.0.0.0/24', '10.0.0.64/26', '10.0.0.96/27'), ['10.0.0.0-10.0.0.63', '10.0.0.128-10.0.0.255'])
  t.same(of('10.0.0.0/30', '10.0.0.0/31', '10.0.0.2/31'), [])
  t.same(of('2001:db8::/32', '2001:db8:1::/48'), [])
  t.end()
})

test('blocks of one rule are joined where they overlap or touch, and an exception of one does not affect the others', (t) => {
  t.same(addressRanges([{ cidr: '10.0.1.0/24' }, { cidr: '10.0.0.0/24' }]), ['10.0.0.0-10.0.1.255'])
  t.same(addressRanges([{ cidr: '10.0.0.0/8', except: ['10.1.0.0/16'] }, { cidr: '10.1.2.0/24' }]), [
    '10.0.0.0-10.0.255.255',
    '10.1.2.0-10.1.2.255',
    '10.2.0.0-10.255.255.255',
  ])
  t.same(addressRanges([{ cidr: '10.0.0.0/8' }, { cidr: '10.2.0.0/16' }, { cidr: 'fd00::/8' }]), [
    '10.0.0.0-10.255.255.255',
  ])
  t.end()
})

test('IPv6 blocks are ranges of their own, in canonical form', (t) => {
  const of = (cidr: string, ...except: readonly string[]) => addressRanges([{ cidr, except }], 'IPv6')
  t.same(of('2001:DB8::/32', '2001:db8:8000::/33'), ['2001:db8::-2001:db8:7fff:ffff:ffff:ffff:ffff:ffff'])
  t.same(of('fd00::7/128'), ['fd00::7-fd00::7'])
  t.same(of('fd00::7/126'), ['fd00::4-fd00::7'], 'bits beyond the mask do not count')
  t.same(of('::/0', '::/1', '8000::/1'), [])
  t.same(of('10.0.0.0/8'), [])
  t.same(of('::ffff:10.0.0.0/104'), [], 'no packet has an IPv4-mapped address')
  t.same(of('::/0', '::ffff:0:0/97'), ['::-::fffe:ffff:ffff', '::1:0:0:0-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'])
  t.same(addressRanges([{ cidr: 'fd00::/17' }, { cidr: '10.0.0.0/8' }, { cidr: 'fd00:8000::/17' }], 'IPv6'), [
    'fd00::-fd00:ffff:ffff:ffff:ffff:ffff:ffff:ffff',
  ])
  t.end()
})
