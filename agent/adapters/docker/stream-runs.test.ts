import { test } from 'tap'
import {
  fuzzSeed,
  mutatedBytes,
  type RandomNumbers,
  randomNumbers,
  randomPieces,
} from '../../../daemon/testing/fuzz.ts'
import { runReader, type StreamRun } from './stream-runs.ts'

function frame(stream: number, text: string): Buffer {
  const head = Buffer.alloc(8)
  head.writeUInt8(stream)
  head.writeUInt32BE(Buffer.byteLength(text), 4)
  return Buffer.concat([head, Buffer.from(text)])
}

const written = ({ stream, bytes }: StreamRun) => [stream, String(bytes)] as const

test('frames of one stream that come together are joined, in their order', async (t) => {
  const bytes = Buffer.concat([
    frame(1, 'one\n'),
    frame(1, 'two\n'),
    frame(2, 'error\n'),
    frame(1, ''),
    frame(1, 'three'),
  ])
  t.same(runReader()(bytes).map(written), [
    ['stdout', 'one\ntwo\n'],
    ['stderr', 'error\n'],
    ['stdout', 'three'],
  ])
})

test('what has come of a frame is given before its rest', async (t) => {
  const [read, bytes] = [runReader(), frame(2, 'a long line')]
  t.same(read(bytes.subarray(0, 5)), [])
  t.same(read(bytes.subarray(5, 10)).map(written), [['stderr', 'a ']])
  t.same(read(bytes.subarray(10)).map(written), [['stderr', 'long line']])
  t.same(read(frame(0, 'x')).map(written), [['stdout', 'x']], 'data sent to its input does not fail')
})

test('an invalid or too long frame is refused', async (t) => {
  t.throws(() => runReader()(Buffer.from('hello, world')), /frames/)
  t.throws(() => runReader()(Buffer.from([3, 0, 0, 0, 0, 0, 0, 1])), /frames/)
  t.throws(() => runReader()(Buffer.from([1, 0, 0, 0, 0, 0x10, 0, 1])), /frames/)
  t.same(runReader()(Buffer.from([1, 0, 0, 0, 0, 0x10, 0, 0])), [])
})

test('each stream has the same bytes however they are cut', async (t) => {
  const random = randomNumbers()
  for (let round = 0; round < 1_000; round++) {
    const sent = someFrames(random)
    const read = runReader()
    const runs = [
      ...randomPieces(Buffer.concat(sent.map(([stream, text]) => frame(stream, text))), 700, random),
    ].flatMap((piece) => read(Buffer.from(piece)).map(written))
    const isSame = [1, 2].every((stream) => {
      const name = stream === 1 ? 'stdout' : 'stderr'
      const got = runs.filter(([of]) => of === name).map(([, text]) => text)
      return (
        got.join('') ===
        sent
          .filter(([of]) => of === stream)
          .map(([, text]) => text)
          .join('')
      )
    })
    if (!isSame) return t.fail(`seed ${fuzzSeed}, round ${round}`)
  }
  t.pass()
})

test('no bytes crash the reader, or give more than was sent', async (t) => {
  const random = randomNumbers()
  for (let round = 0; round < 1_000; round++) {
    const bytes = mutatedBytes(Buffer.concat(someFrames(random).map(([stream, text]) => frame(stream, text))), random)
    const read = runReader()
    let given = 0
    try {
      for (const piece of randomPieces(bytes, 700, random)) {
        for (const run of read(Buffer.from(piece))) given += run.bytes.length
      }
    } catch (error) {
      if (!/Docker sent invalid frames/.test(String(error))) t.fail(`seed ${fuzzSeed}, round ${round}: ${error}`)
    }
    if (given > bytes.length) t.fail(`seed ${fuzzSeed}, round ${round}: ${given} of ${bytes.length} bytes`)
  }
  t.pass()
})

function someFrames(random: RandomNumbers): readonly (readonly [stream: number, text: string])[] {
  return Array.from({ length: 1 + (random() % 6) }, () => {
    const text = `${'x'.repeat(random() % 300)}${random()}`
    return [1 + (random() % 2), random() % 8 === 0 ? '' : text] as const
  })
}
