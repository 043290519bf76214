import { Duplex, PassThrough } from 'node:stream'
import { type Test, test } from 'tap'
import { longestFrame, sessionChannels } from '../../api/sessions.ts'
import { sessionFrames } from './session-frames.ts'

const { input, output, request } = sessionChannels

test('frames arrive as they were sent, however the stream is cut', async (t) => {
  const [one, other] = pair(7)
  const sent = [
    [output, Buffer.from('hello')],
    [input, Buffer.alloc(0)],
    [output, Buffer.alloc(200_000, 'x')],
    [request, Buffer.alloc(300_000, 'r')],
  ] as const
  const sending = (async () => {
    for (const [channel, payload] of sent) await one.send(channel, payload)
    one.end()
  })()
  const got: [number, number][] = []
  for (;;) {
    const frame = await other.next()
    if (frame === undefined) break
    const last = got.at(-1)
    if (last?.[0] === frame.channel && frame.channel === output && last[1] > 5) last[1] += frame.payload.length
    else got.push([frame.channel, frame.payload.length])
  }
  await sending
  t.same(got, [
    [output, 5],
    [input, 0],
    [output, 200_000],
    [request, 300_000],
  ])
})

test('a sender waits for its reader, and gets an error when the stream closes', async (t) => {
  const [one] = pair(1 << 20)
  const chunk = Buffer.alloc(longestFrame.data)
  let sent = 0
  const sending = (async () => {
    for (; sent < 1000; sent++) await one.send(output, chunk)
  })()
  await turns()
  t.ok(sent < 5, `${sent} frames wait`)
  one.destroy()
  await t.rejects(sending, /closed/)
  await t.rejects(one.send(output, chunk), /closed/)
})

test('too long a frame, and a stream that ends within one, are errors', async (t) => {
  for (const bytes of [
    Buffer.from([output, 1, 0, 1]),
    Buffer.from([request, 0xff, 0xff, 0xff]),
    Buffer.from([output, 0, 0]),
    Buffer.from([output, 0, 0, 5, 1]),
    Buffer.from([output, 0, 0, 5]),
  ]) {
    const stream = new PassThrough()
    stream.end(bytes)
    const { next } = sessionFrames(stream)
    const all = async () => {
      while ((await next()) !== undefined);
    }
    await t.rejects(all(), /frame/, bytes.toString('hex'))
  }
  t.test('and nothing at all is its end', (t: Test) => {
    const stream = new PassThrough()
    stream.end()
    return t.resolveMatch(sessionFrames(stream).next(), undefined)
  })
})

function pair(pieces: number) {
  const [there, back] = [cut(pieces), cut(pieces)]
  const end = (writable: PassThrough, readable: PassThrough) => {
    const duplex = Duplex.from({ writable, readable })
    return sessionFrames(duplex)
  }
  return [end(there, back), end(back, there)] as const
}

/** Hands on this many bytes at a time. */
function cut(bytes: number): PassThrough {
  return new PassThrough({
    transform(chunk: Buffer, _, done) {
      for (let at = 0; at < chunk.length; at += bytes * 97) this.push(chunk.subarray(at, at + bytes * 97))
      done()
    },
  })
}

async function turns(): Promise<void> {
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve))
}

test('text is one frame, and so is an empty payload', async (t) => {
  const [stream, other] = pair(1 << 20)
  const sending = (async () => {
    await stream.sendText(output, 'hé')
    await stream.send(output, Buffer.alloc(0))
    await stream.send(request, Buffer.alloc(longestFrame.request, 'r'))
    stream.end()
  })()
  t.match(await other.next(), { channel: output, payload: Buffer.from('hé'), message: Buffer.from('\x01hé') })
  t.match(await other.next(), { channel: output, payload: Buffer.alloc(0), message: Buffer.of(output) })
  t.equal((await other.next())?.payload.length, longestFrame.request, 'the longest request is one frame')
  t.equal(await other.next(), undefined)
  await sending
})

test('data of more than 60 KiB is sent in equal frames', async (t) => {
  const written: Buffer[] = []
  const stream = new PassThrough({ highWaterMark: 1 << 20 })
  stream.on('data', (chunk: Buffer) => written.push(chunk))
  const frames = sessionFrames(Duplex.from({ writable: stream }))
  const longest = 60 * 1024
  await frames.send(output, Buffer.alloc(longest, 'x'))
  await turns()
  t.equal(Buffer.concat(written).length, 4 + longest, 'exactly as much is one frame')
  written.length = 0
  await frames.send(output, Buffer.alloc(longest + 2, 'x'))
  await turns()
  const both = Buffer.concat(written)
  t.equal(both.length, 8 + longest + 2)
  t.equal(both.readUIntBE(1, 3), longest / 2 + 1)
})

test('a frame of more than its channel allows is refused by its head', async (t) => {
  const stream = new PassThrough()
  stream.write(Buffer.from([output, 1, 0, 1]))
  await t.rejects(sessionFrames(stream).next(), {
    message: `A frame of 65537 bytes is longer than ${longestFrame.data} bytes`,
  })
})

test('the end of the stream between head and payload is within a frame', async (t) => {
  const stream = new PassThrough()
  stream.end(Buffer.from([output, 0, 0, 5]))
  await t.rejects(sessionFrames(stream).next(), { message: 'The stream of the session ended within a frame' })
})

test('a stream that was paused before is read, and is paused where nothing is taken', async (t) => {
  const stream = new PassThrough().pause()
  const { next, isHeld: before } = sessionFrames(stream)
  t.notOk(before)
  stream.write(Buffer.from([output, 0, 0, 1, 120]))
  t.match(await next(), { channel: output, payload: Buffer.from('x') })
  const there = new PassThrough()
  const frames = sessionFrames(there)
  const whole = Buffer.alloc(4 + longestFrame.data)
  whole.writeUInt32BE(longestFrame.data)
  for (let i = 0; i < 4; i++) there.write(whole)
  await turns()
  t.ok(frames.isHeld)
  t.ok(there.isPaused())
  for (let taken = 0; taken < 4 * longestFrame.data; ) taken += (await frames.next())?.payload.length ?? 0
  t.notOk(frames.isHeld)
})

test('frames are read wherever the stream is cut, and pings are dropped', async (t) => {
  const head = (channel: number, length: number) => {
    const bytes = Buffer.alloc(4)
    bytes.writeUInt32BE(length)
    bytes.writeUInt8(channel)
    return bytes
  }
  const { ping } = sessionChannels
  const bytes = Buffer.concat([
    head(output, 5),
    Buffer.from('first'),
    head(ping, 3),
    Buffer.from('xyz'),
    head(ping, 0),
    head(output, 0),
    head(output, 4),
    Buffer.from('last'),
  ])
  for (let size = 1; size <= bytes.length; size++) {
    const stream = new PassThrough()
    const frames = sessionFrames(stream)
    for (let at = 0; at < bytes.length; at += size) stream.write(bytes.subarray(at, at + size))
    stream.end()
    const texts: (string | undefined)[] = []
    for (let frame = await frames.next(); frame !== undefined; frame = await frames.next()) {
      texts.push(frame.payload.toString())
    }
    t.same(texts, ['first', '', 'last'], `pieces of ${size}`)
  }
  const cut = new PassThrough()
  cut.end(bytes.subarray(0, 15))
  const frames = sessionFrames(cut)
  await frames.next()
  await t.rejects(frames.next(), { message: 'The stream of the session ended within a frame' }, 'also within a ping')
})
