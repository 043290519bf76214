import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { test } from 'tap'
import { sendDatagram } from './datagram.ts'

test('an answer that cannot be sent ends nothing', async (t) => {
  const socket = createSocket('udp4')
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  const own = socket.address()
  await sendDatagram(socket, Buffer.from('lost'), { address: '127.0.0.1', port: 0 })
  const received = once(socket, 'message')
  await sendDatagram(socket, Buffer.from('kept'), own)
  t.equal(String((await received)[0]), 'kept')
  socket.close()
  await sendDatagram(socket, Buffer.from('late'), own)
})
