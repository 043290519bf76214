import { test } from 'tap'
import { packetMeter } from './packet-meter.ts'

const packet = (length: number, lengthBytes: readonly number[]) => [0x30, ...lengthBytes, ...Array(length).fill(0xff)]

test('packets up to the limit pass, in pieces of any length', async (t) => {
  const stream = Uint8Array.from([
    ...packet(0, [0]),
    ...packet(5, [5]),
    ...packet(200, [0xc8, 1]),
    ...packet(127, [127]),
  ])
  for (const pieceLength of [1, 2, 3, 7, 100, stream.length]) {
    const meter = packetMeter(200)
    for (let at = 0; at < stream.length; at += pieceLength) {
      t.ok(meter(stream.subarray(at, at + pieceLength)), `pieces of ${pieceLength} at ${at}`)
    }
  }
})

test('a packet that is too large is refused by its header, wherever that comes', async (t) => {
  t.notOk(packetMeter(200)(Uint8Array.from([0x30, 0xc9, 1])))
  const meter = packetMeter(200)
  t.ok(meter(Uint8Array.from(packet(200, [0xc8, 1]))))
  t.ok(meter(Uint8Array.from([0x30, 0xff])))
  t.notOk(meter(Uint8Array.from([0xff])), 'too large already, whatever follows')
  t.notOk(packetMeter(2 ** 40)(Uint8Array.from([0x30, 0xff, 0xff, 0xff, 0xff])), 'no length has five bytes')
})
