import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { test } from 'tap'
import { openHouseholdLink } from './household-link.ts'

const accepted = Buffer.from([0x20, 2, 0, 0])

test('a message that is too long ends the connection before it has arrived', async (t) => {
  const server = createServer((socket: Socket) => {
    socket.on('error', () => undefined)
    socket.once('data', () => {
      // PUBLISH of 256 MB, the longest that MQTT has; a part of it follows.
      socket.write(
        Buffer.concat([accepted, Buffer.from([0x30, 0xff, 0xff, 0xff, 0x7f]), Buffer.alloc(2 * 1024 * 1024)]),
      )
    })
  }).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  const broker = {
    ...{ isEncrypted: false, host: '127.0.0.1', port, username: undefined },
    ...{ passwordFile: undefined, caFile: undefined, clientFiles: undefined },
  }
  const stop = new AbortController()
  t.teardown(() => stop.abort())
  const link = await openHouseholdLink({ broker, clientId: 'test' }, stop.signal)
  t.teardown(() => link.close())
  t.match(await link.ended, { message: 'A message is longer than 1048576 bytes' })
})
