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
  t.equal(connections.add(third), undefined, 'the second one counts as a stranger no more')
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

test('a connection with a trusted certificate counts no more, and is not closed for others', async (t) => {
  const connections = strangerConnections<ConnectionEnds>({ strangersPerAddress: 1, strangers: 1 })
  connections.add(from(1))
  connections.identified(from(2))
  connections.identified(from(1, '10.0.0.8'))
  connections.identified({ ...from(1), localPort: 8883 })
  const second = from(2)
  t.same(connections.add(second)?.socket, from(1), 'others are none of its ends')
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

test('the end of a connection that was never added is no matter', async (t) => {
  const connections = strangerConnections<ConnectionEnds>({ strangersPerAddress: 1, strangers: 1 })
  const first = from(1)
  connections.add(first)
  connections.remove(from(1))
  t.same(connections.add(from(2))?.socket, first, 'it is another socket')
})
