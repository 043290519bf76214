import { test } from 'tap'
import { addressGroup, type PendingLimits, pendingConnections } from './pending-connections.ts'

const limits = {
  handshakes: 3,
  handshakesPerAddress: 2,
  pending: 8,
  pendingPerAddress: 5,
  waitMs: 12_000,
  handshakeMs: 10_000,
}

function pendingWith(over: Partial<PendingLimits> = {}) {
  const started: string[] = []
  const closed: string[] = []
  const pending = pendingConnections<string>(
    { ...limits, ...over },
    (name) => void started.push(name),
    (name) => void closed.push(name),
  )
  return { started, closed, pending }
}

test('handshakes are bounded per address and in total, and the others wait their turn', async (t) => {
  const { started, pending } = pendingWith()
  for (const name of ['a1', 'a2', 'a3', 'a4']) t.ok(pending.add(name, '10.0.0.1', 0))
  t.same(started, ['a1', 'a2'])
  for (const name of ['b1', 'b2']) pending.add(name, '10.0.0.2', 0)
  t.same(started, ['a1', 'a2', 'b1'], 'another address is not held up')
  pending.remove('a1', 0)
  t.same(started.slice(3), ['b2'], 'addresses take turns')
  pending.remove('b1', 0)
  pending.remove('b2', 0)
  t.same(started.slice(4), ['a3'])
  pending.remove('a4', 0)
  pending.remove('a2', 0)
  pending.remove('a3', 0)
  t.equal(pending.size, 0)
  pending.remove('a3', 0)
  t.ok(pending.add('a5', '10.0.0.1', 0) && started.includes('a5'))
})

test('too many of one address, or in total, are refused', async (t) => {
  const { pending } = pendingWith()
  const added = (address: string, names: readonly string[]) => names.filter((name) => pending.add(name, address, 0))
  t.same(added('10.0.0.1', ['a1', 'a2', 'a3', 'a4', 'a5', 'a6']).length, 5)
  t.same(added('10.0.0.2', ['b1', 'b2', 'b3', 'b4']).length, 4, 'the fourth has the place of one of the other address')
  t.notOk(pending.add('b5', '10.0.0.2', 0))
  pending.remove('a1', 0)
  t.ok(pending.add('b5', '10.0.0.2', 0))
})

test('addresses that have all places between them give some to another', async (t) => {
  const { pending, started, closed } = pendingWith({ handshakesPerAddress: 1 })
  for (const name of ['a1', 'a2', 'a3', 'a4', 'a5']) t.ok(pending.add(name, '10.0.0.1', 0))
  for (const name of ['b1', 'b2', 'b3']) t.ok(pending.add(name, '10.0.0.2', 0))
  t.ok(pending.add('c1', '10.0.0.3', 0))
  t.same(closed, ['a5'], 'the newest of the address with the most')
  t.ok(started.includes('c1'))
  t.ok(pending.add('c2', '10.0.0.3', 0))
  t.same(closed, ['a5', 'a4'])
  t.notOk(pending.add('c3', '10.0.0.3', 0), 'it would have as many as any other is left with')
  t.notOk(pending.add('a6', '10.0.0.1', 0))
  t.equal(pending.size, 8)
})

test('those that wait or shake hands for too long are named', async (t) => {
  const { pending, started } = pendingWith({ handshakes: 1 })
  pending.add('a1', '10.0.0.1', 0)
  pending.add('b1', '10.0.0.2', 1_000)
  t.same(pending.overdue(10_000), [])
  t.same(pending.overdue(10_001), ['a1'])
  t.same(pending.overdue(13_001), ['a1', 'b1'])
  pending.remove('a1', 12_000)
  t.same(started, ['a1', 'b1'])
  t.same(pending.overdue(22_000), [], 'its time begins with its handshake')
  t.same(pending.overdue(22_001), ['b1'])
})

test('IPv6 addresses count by their /64', async (t) => {
  t.equal(addressGroup('192.168.1.5'), '192.168.1.5')
  t.equal(addressGroup('2001:db8:1:2:3:4:5:6'), '2001:db8:1:2::/64')
  t.equal(addressGroup('2001:db8:1:2::9'), '2001:db8:1:2::/64')
  t.equal(addressGroup('2001:db8::1'), '2001:db8:0:0::/64')
  t.equal(addressGroup('::1'), '0:0:0:0::/64')
  t.equal(addressGroup('2001:db8::4:5:6:7:8'), '2001:db8:0:4::/64')
  t.equal(addressGroup('2001::3:4:5:6:7:8'), '2001:0:3:4::/64')
  t.equal(addressGroup('2001:db8::'), '2001:db8:0:0::/64')
  t.equal(addressGroup('fe80::1%eth0'), 'fe80:0:0:0::/64')
})
