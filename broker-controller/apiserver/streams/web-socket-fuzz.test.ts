/** Seeded fuzzing of what a client sends on a WebSocket: its frames, and the messages of each subprotocol. */
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { Duplex, PassThrough } from 'node:stream'
import { test } from 'tap'
import {
  fuzzSeed,
  mutatedBytes,
  type RandomNumbers,
  randomNumbers,
  randomPieces,
} from '../../../daemon/testing/fuzz.ts'
import { socketEncoding } from './socket-encoding.ts'
import { acceptWebSocket } from './web-socket.ts'

const rounds = 400
const protocols = ['v5.channel.k8s.io', 'v4.base64.channel.k8s.io', 'base64.binary.k8s.io', '']
const longestMessage = 1024 * 1024

test('no bytes on a WebSocket crash the server, keep it from ending, or make it hold much', async (t) => {
  const random = randomNumbers()
  const before = process.memoryUsage().rss
  for (let round = 0; round < rounds; round++) {
    const protocol = protocols[round % protocols.length] ?? ''
    const [there, back] = [new PassThrough(), new PassThrough()]
    back.resume()
    const socket = Duplex.from({ writable: back, readable: there })
    for (const one of [there, back, socket]) one.on('error', () => undefined)
    const channel = await acceptWebSocket(connectionOn(socket, protocol), protocol)
    if (channel === undefined) return t.fail('the handshake was refused')
    for (const piece of randomPieces(mutatedBytes(frames(random), random), 3_000, random)) there.write(piece)
    there.end()
    for (let message = await channel.next(); message !== undefined; message = await channel.next()) {
      if (message.length > longestMessage) t.fail(`seed ${fuzzSeed}, round ${round}: ${message.length} bytes`)
    }
    t.ok(channel.closed.aborted || socket.destroyed || socket.readableEnded)
    channel.destroy()
    socket.destroy()
  }
  const grown = (process.memoryUsage().rss - before) / 2 ** 20
  t.ok(grown < 200, `${grown.toFixed(0)} MiB more after ${rounds} rounds`)
})

test('a message of a subprotocol becomes no longer than it is', async (t) => {
  const random = randomNumbers()
  for (let round = 0; round < 4_000; round++) {
    const { encode, decode } = socketEncoding(protocols[round % protocols.length] ?? '')
    const bytes = Buffer.from(Array.from({ length: random() % 64 }, () => random() % 256))
    const written = Buffer.from(encode(Buffer.concat([Buffer.of(random() % 5), bytes])))
    const read = decode(mutatedBytes(written, random))
    if (read.length > written.length + 64) t.fail(`seed ${fuzzSeed}, round ${round}: ${read.length} bytes`)
  }
  t.pass()
})

function connectionOn(socket: Duplex, protocol: string) {
  const incoming = new IncomingMessage(new Socket())
  incoming.method = 'GET'
  incoming.headers = {
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
    ...(protocol !== '' && { 'sec-websocket-protocol': protocol }),
  }
  return { incoming, socket, head: Buffer.alloc(0), signal: new AbortController().signal }
}

/** What a client sends: messages, in one frame or several, pings, and perhaps its close (RFC 6455, 5.2). */
function frames(random: RandomNumbers): Buffer {
  const sent = Array.from({ length: 1 + (random() % 8) }, () => {
    const opcode = [0, 1, 2, 2, 2, 8, 9, 10][random() % 8] ?? 2
    const isControl = opcode >= 8
    const payload = Buffer.alloc(random() % (isControl ? 126 : 70_000), 97)
    return frame(opcode, isControl || random() % 4 !== 0, payload, random)
  })
  return Buffer.concat(sent)
}

function frame(opcode: number, isLast: boolean, payload: Buffer, random: RandomNumbers): Buffer {
  const size = payload.length
  const length = size < 126 ? Buffer.of(0x80 | size) : Buffer.alloc(size < 65_536 ? 3 : 9)
  if (length.length === 3) {
    length.writeUInt8(0x80 | 126)
    length.writeUInt16BE(size, 1)
  } else if (length.length === 9) {
    length.writeUInt8(0x80 | 127)
    length.writeUInt32BE(size, 5)
  }
  const mask = Buffer.alloc(4)
  mask.writeUInt32BE(random())
  const masked = payload.map((byte, i) => byte ^ (mask[i % 4] ?? 0))
  return Buffer.concat([Buffer.of((isLast ? 0x80 : 0) | opcode), length, mask, masked])
}
