/** Seeded fuzzing of what Docker sends of a container: its frames, and the lines of its log. */
import { test } from 'tap'
import {
  fuzzSeed,
  mutatedBytes,
  type RandomNumbers,
  randomNumbers,
  randomPieces,
} from '../../../daemon/testing/fuzz.ts'
import { frameReader, type StreamFrame, withoutInnerTimes } from './stream-frames.ts'

const rounds = 2_000
const time = '2026-01-02T03:04:05.123456789Z '

test('frames are the same however the stream is cut', async (t) => {
  const random = randomNumbers()
  for (let round = 0; round < rounds; round++) {
    const sent = someFrames(random)
    const read = frameReader()
    const pieces = [...randomPieces(Buffer.concat(sent.map(encoded)), 700, random)]
    const got = pieces
      .flatMap((piece) => read(piece))
      .map(({ stream, payload }) => ({ stream, payload: String(payload) }))
    const expected = sent.map(({ stream, payload }) => ({ stream, payload: String(payload) }))
    if (JSON.stringify(got) !== JSON.stringify(expected)) return t.fail(`seed ${fuzzSeed}, round ${round}`)
  }
  t.pass()
})

test('no bytes crash the reader, make frames of nothing, or take what was not sent', async (t) => {
  const random = randomNumbers()
  for (let round = 0; round < rounds; round++) {
    const bytes = mutatedBytes(Buffer.concat(someFrames(random).map(encoded)), random)
    const [read, strip] = [frameReader(), withoutInnerTimes()]
    let given = 0
    try {
      for (const piece of randomPieces(bytes, 700, random)) {
        for (const frame of read(piece)) {
          given += frame.payload.length
          if (strip(frame).length > frame.payload.length) t.fail(`seed ${fuzzSeed}, round ${round}: longer`)
        }
      }
    } catch (error) {
      if (!/Docker sent invalid frames/.test(String(error))) t.fail(`seed ${fuzzSeed}, round ${round}: ${error}`)
    }
    if (given > bytes.length) t.fail(`seed ${fuzzSeed}, round ${round}: ${given} of ${bytes.length} bytes`)
  }
  t.pass()
})

function someFrames(random: RandomNumbers): readonly StreamFrame[] {
  return Array.from({ length: 1 + (random() % 6) }, () => {
    const text = `${random() % 2 === 0 ? time : ''}${'x'.repeat(random() % 2_000)}${random() % 3 === 0 ? '' : '\n'}`
    return { stream: random() % 2 === 0 ? 'stdout' : 'stderr', payload: Buffer.from(text) }
  })
}

function encoded({ stream, payload }: StreamFrame): Buffer {
  const head = Buffer.alloc(8)
  head.writeUInt8(stream === 'stderr' ? 2 : 1)
  head.writeUInt32BE(payload.length, 4)
  return Buffer.concat([head, payload])
}
