import { test } from 'tap'
import { type ConnectionEnds, strangerConnections } from './stranger-connections.ts'

const from = (remotePort: number, remoteAddress = '10.0.0.7'): ConnectionEnds => ({
  remoteAddress,
  remotePort,
  localAddress: '10.0.0.1',
  localPort: 6443,
})

test('a connection on the port of one whose end is noticed late is identified as itself', async (t) => {
  const connections = strangerConnections<ConnectionEnds>({ strangersPerAddress: 1, strangers: 10 })
  const [old, young, third] = [from(40_000), from(40_000), from(40_001)]
  connections.add(old)
  t.same(connections.add(young), { socket: old, reason: 'AddressLimit' })
  connections.remove(old)
  connections.identified(from(40_000))
  t.equal(connections.add(third), undefined, 'the second one no longer counts as a stranger')
})

test('over the limit of its address the oldest connection from there is closed', async (t) => {
  const connections = strangerConnections<ConnectionEnds>({ strangersPerAddress: 2, strangers: 10 })
  const other = from(1, '10.0.0.8')
  const [first, second, third] = [from(1), from(2), from(3)]
  t.equal(connections.add(other), undefined)
  t.equal(connections.add(first), undefined)
  t.equal(connections.add(second), undefined)
  t.same(connections.add(third), { socket: first, reason: 'AddressLimit' })
})

test('over the limit of all the oldest of all is closed', async (t) => {
  const connections = strangerConnections<ConnectionEnds>({ strangersPerAddress: 2, strangers: 2 })
  const [first, second, third] = [from(1, '10.0.0.1'), from(1, '10.0.0.2'), from(1, '10.0.0.3')]
  t.equal(connections.add(first), undefined)
  t.equal(connections.add(second), undefined, 'just at the limit')
  t.same(connections.add(third), { socket: first, reason: 'StrangerLimit' })
  connections.remove(second)
  t.equal(connections.add(from(2, '10.0.0.4')), undefined, 'one ended by itself')
})

test('a connection with a trusted certificate no longer counts, and is not closed for others', async (t) => {
  const connections = strangerConnections<ConnectionEnds>({ strangersPerAddress: 1, strangers: 1 })
  connections.add(from(1))
  connections.identified(from(2))
  connections.identified(from(1, '10.0.0.8'))
  connections.identified({ ...from(1), localPort: 8883 })
  const second = from(2)
  t.same(connections.add(second)?.socket, from(1), 'the ends of others are not its own')
  connections.identified(from(2))
  connections.remove(second)
  t.equal(connections.add(from(3)), undefined)
})

test('the connections of one address are counted without those that ended', async (t) => {
  const connections = strangerConnections<ConnectionEnds>({ strangersPerAddress: 2, strangers: 10 })
  const [first, second, third] = [from(1), from(2), from(3)]
  connections.add(first)
  connections.add(second)
  connections.remove(first)
  t.equal(connections.add(third), undefined)
  t.same(connections.add(from(4)), { socket: second, reason: 'AddressLimit' })
})

test('the end of a connection that was never added changes nothing', async (t) => {
  const connections = strangerConnections<ConnectionEnds>({ strangersPerAddress: 1, strangers: 1 })
  const first = from(1)
  connections.add(first)
  connections.remove(from(1))
  t.same(connections.add(from(2))?.socket, first, 'it is another socket')
})

test('those on which no request came are closed first, and the others before a quarter of the places is not left to them', async (t) => {
  const connections = strangerConnections<ConnectionEnds>({ strangersPerAddress: 8, strangers: 100 })
  const spoken = Array.from({ length: 4 }, (_, at) => from(1 + at))
  const silent = Array.from({ length: 4 }, (_, at) => from(11 + at))
  for (const one of [...spoken, ...silent]) connections.add(one)
  for (const one of spoken) connections.spoke(one)
  connections.spoke(from(999))
  const more = Array.from({ length: 4 }, (_, at) => from(21 + at))
  t.same(
    more.map((one) => connections.add(one)?.socket),
    silent,
    'the older ones that spoke stay',
  )
  for (const one of more) connections.spoke(one)
  const [first, second, third] = [from(31), from(32), from(33)]
  t.same(connections.add(first)?.socket, spoken[0], 'all of them spoke')
  t.same(connections.add(second)?.socket, spoken[1], 'two that are silent are a quarter')
  t.same(connections.add(third)?.socket, first)
})

test('over the limit of all the address with the most loses its oldest', async (t) => {
  const connections = strangerConnections<ConnectionEnds>({ strangersPerAddress: 10, strangers: 5 })
  const few = from(1, '10.0.0.1')
  const many = Array.from({ length: 4 }, (_, at) => from(1 + at, '10.0.0.2'))
  for (const one of [few, ...many]) connections.add(one)
  t.same(connections.add(from(1, '10.0.0.3')), { socket: many[0], reason: 'StrangerLimit' })
  t.same(connections.add(from(1, '10.0.0.4')), { socket: many[1], reason: 'StrangerLimit' })
  t.equal(connections.identified(few), true)
  t.equal(connections.identified(few), false, 'it is no longer a stranger')
  t.equal(connections.add(from(1, '10.0.0.5')), undefined)
})
