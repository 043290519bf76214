import { test } from 'tap'
import { addressKey, peerAddress } from './peer-address.ts'

test('an IPv4 address is one peer, however the listener writes it', async (t) => {
  t.equal(addressKey(peerAddress({ remoteAddress: '::ffff:192.0.2.7' })), '192.0.2.7')
  t.equal(addressKey('192.0.2.7'), '192.0.2.7')
  t.equal(peerAddress({ remoteAddress: '2001:db8::ffff:192.0.2.7' }), '2001:db8::ffff:192.0.2.7', 'not mapped')
})

test('connections without an address, as those already closed, are one peer together', async (t) => {
  t.equal(peerAddress({ remoteAddress: undefined }), undefined)
  t.equal(addressKey(undefined), 'unknown')
})

test('a host cannot be many peers by choosing other addresses of its IPv6 network', async (t) => {
  t.equal(addressKey('2001:db8:1:2:3:4:5:6'), '2001:db8:1:2::/64')
  t.equal(addressKey('2001:db8:1:2::9'), addressKey('2001:db8:1:2:ffff::1'))
  t.equal(addressKey('2001:db8::1'), '2001:db8:0:0::/64')
  t.equal(addressKey('fe80::1%eth0'), 'fe80:0:0:0::/64')
  t.equal(addressKey('fe80::1:2%eth10'), 'fe80:0:0:0::/64')
  t.equal(addressKey('::1'), '0:0:0:0::/64')
  t.equal(addressKey('::'), '0:0:0:0::/64')
  t.equal(addressKey('2001:db8::'), '2001:db8:0:0::/64')
  t.equal(addressKey('2001::2:3:4:5:6'), '2001:0:0:2::/64', 'the zeros are in front of what counts')
  t.equal(addressKey('::2:3:4:5:6:7:8'), '0:2:3:4::/64')
  t.not(addressKey('2001:db8:1:2::1'), addressKey('2001:db8:1:3::1'))
})
