import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { test } from 'tap'
import { until } from '../../testing/until.ts'
import { unacknowledgedBytes, unacknowledgedIn } from './sent-data.ts'

const lines = [
  '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode',
  '   0: 0100007F:22B3 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0000000000000000 100 0 0 10 0',
  '   1: 0500A8C0:A1B2 0100A8C0:22B3 01 0000005D:00000000 01:00000133 00000007     0        0 2 3 0000000000000000 3200 4 30 1 7',
  '   2: 0500A8C0:A1B3 0100A8C0:22B3 01 00000000:00000000 00:00000000 00000000     0        0 3 1 0000000000000000 20 4 30 10 -1',
].join('\n')

test('what waits for an acknowledgement is read from the line of the connection', (t) => {
  t.equal(unacknowledgedIn(lines, 0xa1b2, 0x22b3), 0x5d)
  t.equal(unacknowledgedIn(lines, 0xa1b3, 0x22b3), 0)
  t.equal(unacknowledgedIn(lines, 0xa1b4, 0x22b3), undefined)
  t.equal(unacknowledgedIn('', 1, 2), undefined)
  t.end()
})

test('the bytes on a real connection are acknowledged soon, unless the receiver is full', async (t) => {
  const server = createServer()
  const accepted: Socket[] = []
  server.on('connection', (socket) => accepted.push(socket.pause()))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const client = connect(typeof address === 'object' && address !== null ? address.port : 0, '127.0.0.1')
  await once(client, 'connect')
  t.teardown(() => {
    for (const socket of [client, ...accepted]) socket.destroy()
    server.close()
  })
  client.write('a heartbeat')
  let waiting: number | undefined
  const look = async () => {
    waiting = await unacknowledgedBytes('/', client)
  }
  await look()
  while (waiting !== 0) await look()
  client.write(Buffer.alloc(32 * 1024 * 1024))
  await until('the receiver is full', () => client.writableLength > 0)
  await look()
  t.ok((waiting ?? 0) > 0, `${waiting} bytes`)
  t.equal(await unacknowledgedBytes('/nowhere', client), undefined)
})
