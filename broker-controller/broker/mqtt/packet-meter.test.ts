import { test } from 'tap'
import { packetMeter, wholePackets } from './packet-meter.ts'

const packet = (length: number, lengthBytes: readonly number[]) => [0x30, ...lengthBytes, ...Array(length).fill(0xff)]

const stream = Buffer.from([...packet(0, [0]), ...packet(5, [5]), ...packet(200, [0xc8, 1]), ...packet(127, [127])])

test('packets up to the limit pass, in pieces of any length', async (t) => {
  for (const pieceLength of [1, 2, 3, 7, 100, stream.length]) {
    const meter = packetMeter(200)
    for (let at = 0; at < stream.length; at += pieceLength) {
      t.type(meter(stream.subarray(at, at + pieceLength)), 'number', `pieces of ${pieceLength} at ${at}`)
    }
  }
})

test('packets are passed on whole and in order, in whatever pieces they arrive', async (t) => {
  for (const pieceLength of [1, 2, 3, 7, 100, stream.length]) {
    const passed: Buffer[] = []
    const take = wholePackets(200, (packets) => void passed.push(packets))
    for (let at = 0; at < stream.length; at += pieceLength) t.ok(take(stream.subarray(at, at + pieceLength)))
    t.ok(Buffer.concat(passed).equals(stream))
    const meter = packetMeter(200)
    for (const packets of passed) t.equal(meter(packets), packets.length, 'ends with a packet')
  }
})

test('a packet that arrives in very many pieces is passed on in one', async (t) => {
  const passed: Buffer[] = []
  const take = wholePackets(256 * 1024, (packets) => void passed.push(packets))
  const large = Buffer.from(packet(250_000, [0x90, 0xa1, 0x0f]))
  let isTaken = true
  for (let at = 0; at < large.length; at++) isTaken &&= take(large.subarray(at, at + 1))
  t.ok(isTaken)
  t.equal(passed.length, 1)
  t.ok(passed[0]?.equals(large))
})

test('a packet that is too large is refused by its header, wherever that comes', async (t) => {
  t.equal(packetMeter(200)(Uint8Array.from([0x30, 0xc9, 1])), undefined)
  const meter = packetMeter(200)
  t.equal(meter(Uint8Array.from(packet(200, [0xc8, 1]))), 203)
  t.equal(meter(Uint8Array.from([0x30, 0xff])), 0)
  t.equal(meter(Uint8Array.from([0xff])), undefined, 'too large already, whatever follows')
  t.equal(packetMeter(2 ** 40)(Uint8Array.from([0x30, 0xff, 0xff, 0xff, 0xff])), undefined, 'no length has five bytes')
})
