/** Seeded fuzzing of what a client or a node sends on a stream: SPDY, and the frames of sessions. */
import { PassThrough } from 'node:stream'
import { type Test, test } from 'tap'
import { sessionChannels } from '../../../api/sessions.ts'
import { sessionFrames } from '../../../daemon/sessions/session-frames.ts'
import {
  fuzzSeed,
  mutatedBytes,
  type RandomNumbers,
  randomNumbers,
  randomPieces,
} from '../../../daemon/testing/fuzz.ts'
import type { ByteChannel } from './byte-channel.ts'
import { spdyConnection } from './spdy-connection.ts'
import { headerWriter } from './spdy-headers.ts'

const rounds = 400

test('no bytes in SPDY crash the connection, keep it from ending, or make it hold much', async (t) => {
  const random = randomNumbers()
  const before = process.memoryUsage()
  for (let round = 0; round < rounds; round++) {
    const { channel, isDestroyed } = channelOf(mutatedBytes(await conversation(random), random), random)
    const connection = spdyConnection(channel)
    let accepted = 0
    for (let stream = await connection.accept(); stream !== undefined; stream = await connection.accept()) {
      accepted++
      const taken = stream
      // Some streams are read, some answered, some left.
      const choice = random() % 4
      if (choice === 0) void drain(taken)
      if (choice === 1) void taken.send(Buffer.from('answer')).catch(() => undefined)
      if (choice === 2) void taken.reset().catch(() => undefined)
      if (choice === 3) taken.signal.addEventListener('abort', () => undefined)
    }
    if (!isDestroyed() || accepted > 256) t.fail(`seed ${fuzzSeed}, round ${round}: ${accepted} streams`)
  }
  grew(t, before)
})

test('no bytes of a node crash its session, or make it hold more than a frame', async (t) => {
  const random = randomNumbers()
  const before = process.memoryUsage()
  for (let round = 0; round < rounds; round++) {
    const stream = new PassThrough()
    const frames = sessionFrames(stream)
    const bytes = mutatedBytes(session(random), random)
    for (const piece of randomPieces(bytes, 500, random)) stream.write(piece)
    stream.end()
    try {
      for (let frame = await frames.next(); frame !== undefined; frame = await frames.next()) {
        if (frame.payload.length > 512 * 1024) t.fail(`seed ${fuzzSeed}, round ${round}: ${frame.payload.length} bytes`)
      }
    } catch (error) {
      if (!/frame|stream/.test(String(error))) t.fail(`seed ${fuzzSeed}, round ${round}: ${error}`)
    }
    stream.destroy()
  }
  grew(t, before)
})

function grew(t: Test, before: NodeJS.MemoryUsage): void {
  const grown = (process.memoryUsage().rss - before.rss) / 2 ** 20
  t.ok(grown < 200, `${grown.toFixed(0)} MiB more after ${rounds} rounds`)
}

async function drain(stream: { next(): Promise<Buffer | undefined> }): Promise<void> {
  while ((await stream.next()) !== undefined);
}

/** What kubectl sends: streams that are opened, their data, pings and resets. */
async function conversation(random: RandomNumbers): Promise<Buffer> {
  const writer = headerWriter()
  const frames: Buffer[] = []
  const streams = 1 + (random() % 8)
  for (let i = 0; i < streams; i++) {
    const block = await writer.write(
      new Map([
        ['streamtype', 'data'],
        ['port', '80'],
        ['requestid', String(i >> 1)],
      ]),
    )
    frames.push(control(1, [i * 2 + 1, 0], Buffer.concat([Buffer.alloc(2), block])))
    const data = Buffer.alloc(random() % 2_000, 'd')
    const head = Buffer.alloc(8)
    head.writeUInt32BE(i * 2 + 1)
    head.writeUInt32BE((random() % 3 === 0 ? 0x1000000 : 0) + data.length, 4)
    frames.push(head, data)
    if (random() % 4 === 0) frames.push(control(6, [i * 2 + 1]))
    if (random() % 8 === 0) frames.push(control(3, [i * 2 + 1, 5]))
  }
  writer.close()
  return Buffer.concat(frames)
}

function control(type: number, values: readonly number[], rest: Buffer = Buffer.alloc(0)): Buffer {
  const frame = Buffer.alloc(8 + 4 * values.length)
  frame.writeUInt32BE(0x80030000 + type)
  frame.writeUInt32BE(4 * values.length + rest.length, 4)
  for (const [i, value] of values.entries()) frame.writeUInt32BE(value, 8 + 4 * i)
  return Buffer.concat([frame, rest])
}

function session(random: RandomNumbers): Buffer {
  const channels = Object.values(sessionChannels)
  return Buffer.concat(
    Array.from({ length: 1 + (random() % 10) }, () => {
      const payload = Buffer.alloc(random() % 3_000, 'p')
      const head = Buffer.alloc(4)
      head.writeUInt32BE(payload.length)
      head.writeUInt8(channels[random() % channels.length] ?? 0)
      return Buffer.concat([head, payload])
    }),
  )
}

/** It ends after the bytes, which come in pieces of any size. */
function channelOf(bytes: Buffer, random: RandomNumbers) {
  let at = 0
  let isDestroyed = false
  const closed = new AbortController()
  // The client leaves some time after its data was last read.
  let leaving = setTimeout(() => closed.abort('closed'), 5)
  const channel: ByteChannel = {
    async next() {
      await new Promise((resolve) => setImmediate(resolve))
      leaving = leaving.refresh()
      if (isDestroyed || at >= bytes.length) return undefined
      const end = at + 1 + (random() % 700)
      const piece = bytes.subarray(at, end)
      at = end
      return piece
    },
    send: async () => undefined,
    flushed: async () => undefined,
    closed: closed.signal,
    close: () => undefined,
    destroy() {
      clearTimeout(leaving)
      isDestroyed = true
    },
  }
  return { channel, isDestroyed: () => isDestroyed }
}
