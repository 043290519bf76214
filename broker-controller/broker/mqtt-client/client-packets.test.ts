import { type Packet, parser } from 'mqtt-packet'
import { test } from 'tap'
import { connectPacket, disconnectPacket, pingreqPacket, subscribePacket } from './client-packets.ts'

function parsed(bytes: Buffer): Packet | undefined {
  const parse = parser({ protocolVersion: 4 })
  let found: Packet | undefined
  parse.on('packet', (packet) => {
    found = packet
  })
  parse.parse(bytes)
  return found
}

test('CONNECT has a clean session, the keep alive, and a retained will of QoS 1', async (t) => {
  const packet = parsed(
    connectPacket({ clientId: 'bramble', keepAliveSeconds: 300, will: { topic: 'a/b', body: 'x'.repeat(200) } }),
  )
  t.match(packet, {
    cmd: 'connect',
    protocolVersion: 4,
    clean: true,
    keepalive: 300,
    clientId: 'bramble',
    will: { topic: 'a/b', qos: 1, retain: true, payload: Buffer.from('x'.repeat(200)) },
  })
})

test('SUBSCRIBE asks for QoS 1 on each filter', async (t) => {
  t.match(parsed(subscribePacket(300, ['a/+', 'b'])), {
    cmd: 'subscribe',
    messageId: 300,
    subscriptions: [
      { topic: 'a/+', qos: 1 },
      { topic: 'b', qos: 1 },
    ],
  })
})

test('PINGREQ and DISCONNECT are complete packets', async (t) => {
  t.equal(parsed(pingreqPacket)?.cmd, 'pingreq')
  t.equal(parsed(disconnectPacket)?.cmd, 'disconnect')
})
