import { test } from 'tap'
import { inNames, ipv4Rules, ipv6Rules, isAddressOf, isRangeOf } from './rule-family.ts'

test('an address of a family is one in the form that its packets have', async (t) => {
  for (const text of ['10.0.0.1', '255.255.255.255']) t.ok(isAddressOf(ipv4Rules, text), text)
  for (const text of ['fd00::1', '::1', '2001:db8:0:1:1:1:1:1']) t.ok(isAddressOf(ipv6Rules, text), text)
  for (const text of ['fd00::1', '10.0.0.256', '010.0.0.1', '']) t.notOk(isAddressOf(ipv4Rules, text), text)
  for (const text of ['10.0.0.1', 'FD00::1', 'fd00:0::1', '::ffff:10.0.0.1', 'fd00::1%eth0', 'fd00::1 accept', '']) {
    t.notOk(isAddressOf(ipv6Rules, text), text)
  }
})

test('a range of a family has no bits beyond its mask', async (t) => {
  for (const text of ['10.0.0.0/8', '10.0.0.1/32', '0.0.0.0/0']) t.ok(isRangeOf(ipv4Rules, text), text)
  for (const text of ['fd00::/8', 'fd00::1/128', '::/0', 'fd00:10:244:300::/56']) t.ok(isRangeOf(ipv6Rules, text), text)
  for (const text of ['fd00::/8', '10.0.0.1/8', '10.0.0.0', '010.0.0.0/8']) t.notOk(isRangeOf(ipv4Rules, text), text)
  const wrong = ['10.0.0.0/8', 'fd00::1/64', 'fd00::', 'fd00::/129', 'fd00::/064', 'fd00::/64/1', 'FD00::/8', '::/ 0']
  for (const text of wrong) t.notOk(isRangeOf(ipv6Rules, text), text)
})

test('names of chains and sets have addresses without colons', async (t) => {
  t.equal(inNames('10.0.0.1'), '10.0.0.1')
  t.equal(inNames('fd00::1'), 'fd00..1')
})
