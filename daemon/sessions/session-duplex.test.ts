import { once } from 'node:events'
import { Duplex, PassThrough, Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { test } from 'tap'
import { sessionChannels as channels } from '../../api/sessions.ts'
import { sessionDuplex } from './session-duplex.ts'
import { sessionFrames } from './session-frames.ts'

test('bytes pass both ways, and each direction ends by itself', async (t) => {
  const { near, far } = pair()
  near.end('a question')
  t.equal(await text(far), 'a question')
  far.write('an ')
  far.end('answer')
  t.equal(await text(near), 'an answer')
})

test('long streams arrive whole, read in pieces of any size', async (t) => {
  const { near, far } = pair()
  const sent = Buffer.alloc(3_000_000, 'abcdefg')
  const received: Buffer[] = []
  await Promise.all([
    pipeline(Readable.from([sent.subarray(0, 1), sent.subarray(1, 200_000), sent.subarray(200_000)]), near, {
      end: true,
    }).catch(() => undefined),
    (async () => {
      for (;;) {
        const piece: Buffer | null = far.read(10_000) ?? far.read()
        if (piece !== null) received.push(piece)
        else if (far.readableEnded) return far.destroy()
        else await new Promise((resolve) => setImmediate(resolve))
      }
    })(),
  ])
  t.ok(Buffer.concat(received).equals(sent))
})

test('a reader that stops stops the writer', async (t) => {
  const { near } = pair()
  let written = 0
  for (let i = 0; i < 200; i++) {
    if (!near.writableNeedDrain) {
      near.write(Buffer.alloc(64 * 1024))
      written++
    }
    await new Promise((resolve) => setImmediate(resolve))
  }
  t.ok(near.writableNeedDrain, 'it waits')
  t.ok(written < 10, `${written} pieces`)
  near.destroy()
})

test('what comes on other channels is handed over, and may end or fail the stream', async (t) => {
  const { frames, duplex, others } = single()
  await frames.send(channels.errorOutput, Buffer.from('aside'))
  await frames.send(channels.output, Buffer.alloc(0))
  await frames.send(channels.output, Buffer.from('data'))
  await frames.send(channels.end, Buffer.of(channels.input))
  await frames.send(channels.status, Buffer.from('over'))
  await frames.send(channels.output, Buffer.from('too late'))
  t.equal(await text(duplex), 'data')
  t.same(others, ['aside', '\0', 'over'])
  const failing = single()
  await failing.frames.send(channels.status, Buffer.from('failed'))
  await t.rejects(text(failing.duplex), /it failed/)
})

test('its end is that of the session', async (t) => {
  let isDestroyed = false
  const [one] = lines()
  const frames = {
    ...sessionFrames(one),
    destroy() {
      isDestroyed = true
    },
  }
  const duplex = sessionDuplex(frames, { send: channels.input, receive: channels.output })
  duplex.destroy()
  await once(duplex, 'close')
  t.ok(isDestroyed)
})

/** Without ending its other direction, as an iteration would. */
function text(stream: Duplex): Promise<string> {
  return new Promise((resolve, reject) => {
    let all = ''
    stream.on('data', (piece: Buffer) => {
      all += piece.toString()
    })
    stream.once('end', () => resolve(all)).once('error', reject)
  })
}

function lines() {
  const [there, back] = [new PassThrough(), new PassThrough()]
  const line = (writable: PassThrough, readable: PassThrough) => {
    const duplex = Duplex.from({ writable, readable })
    duplex.on('error', () => undefined)
    duplex.once('close', () => {
      writable.destroy()
      readable.destroy()
    })
    return duplex
  }
  return [line(there, back), line(back, there)] as const
}

function pair() {
  const [one, two] = lines()
  return {
    near: sessionDuplex(sessionFrames(one), { send: channels.input, receive: channels.output }),
    far: sessionDuplex(sessionFrames(two), { send: channels.output, receive: channels.input }),
  }
}

function single() {
  const [one, two] = lines()
  const others: string[] = []
  const duplex = sessionDuplex(sessionFrames(one), {
    send: channels.input,
    receive: channels.output,
    other({ payload }) {
      others.push(payload.toString())
      if (payload.toString() === 'failed') throw new Error('it failed')
      return payload.toString() === 'over' ? 'ended' : undefined
    },
  })
  return { frames: sessionFrames(two), duplex, others }
}
