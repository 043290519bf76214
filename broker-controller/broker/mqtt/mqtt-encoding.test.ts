import { generate } from 'mqtt-packet'
import { test } from 'tap'
import {
  connackPacket,
  pingrespPacket,
  pubackPacket,
  publishPacket,
  subackPacket,
  unsubackPacket,
} from './mqtt-encoding.ts'

test('packets are those of another encoder, byte for byte', async (t) => {
  t.same(connackPacket(5), generate({ cmd: 'connack', returnCode: 5, sessionPresent: false }))
  t.same(pingrespPacket, generate({ cmd: 'pingresp' }))
  for (const messageId of [1, 255, 256, 65_535]) {
    t.same(pubackPacket(messageId), generate({ cmd: 'puback', messageId }))
    t.same(unsubackPacket(messageId), generate({ cmd: 'unsuback', messageId, granted: [] }))
    t.same(subackPacket(messageId, [0, 1, 128]), generate({ cmd: 'suback', messageId, granted: [0, 1, 128] }))
  }
  const topic = 'bramble/v1/nodes/pi-1/desired'
  for (const length of [0, 90, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152]) {
    for (const qos of [0, 1] as const) {
      for (const retain of [false, true]) {
        const body = 'é'.repeat(length / 2)
        const expected = generate({ cmd: 'publish', topic, payload: body, qos, retain, dup: false, messageId: 77 })
        t.ok(publishPacket({ topic, body, qos, retain, messageId: 77 }).equals(expected), `${length}, QoS ${qos}`)
      }
    }
  }
})
