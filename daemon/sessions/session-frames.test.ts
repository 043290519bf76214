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
    await t.rejects(sessionFrames(stream).next(), /frame/, bytes.toString('hex'))
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

/** Hands on so many bytes at a time. */
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
