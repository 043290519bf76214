/**
 * Program: the name server of a network, on the address that is its argument. `outside.example` and all names below it have the
 * address 192.0.2.80; no other name exists.
 */
import { createSocket } from 'node:dgram'
import { upstreamAnswer } from '../../agent/network/testing/upstream.ts'

const name = Buffer.from('\u0007outside\u0007example\0')

const socket = createSocket('udp4')
socket.on('message', (question, { address, port }) => {
  const isOurs = question.toString('latin1').toLowerCase().includes(name.toString('latin1'))
  const isAddress = question.includes(Buffer.concat([Buffer.from([0, 0, 1, 0, 1])]))
  const given = isOurs ? { addresses: isAddress ? ['192.0.2.80'] : [] } : { code: 3 }
  socket.send(upstreamAnswer(question, given), port, address)
})
socket.bind(53, process.argv[2], () => process.stdout.write('listening\n'))
