import { test } from 'tap'
import { type ConnectionEnds, strangerConnections } from './stranger-connections.ts'

const from = (remotePort: number): ConnectionEnds => ({
  remoteAddress: '10.0.0.7',
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
