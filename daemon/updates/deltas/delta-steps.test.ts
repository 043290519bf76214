import { test } from 'tap'
import { seededRandom } from '../../testing/seeded-random.ts'
import { type DeltaPart, type DeltaStep, deltaBytes, deltaReader } from './delta-steps.ts'

const none = new Uint8Array()
const parts: readonly DeltaPart[] = [
  { bytes: none, from: 0, length: 5 },
  { bytes: Buffer.from('new'), from: 100_000, length: 1 },
  { bytes: none, from: 3, length: 70_000 },
  { bytes: Buffer.alloc(300, 'x'), from: 2 ** 31, length: 2 },
  { bytes: Buffer.from('end'), from: 0, length: 0 },
]

/** The steps, with inserts that are cut up joined. */
function joined(steps: readonly DeltaStep[]): readonly unknown[] {
  const list: unknown[] = []
  for (const one of steps) {
    const last = list.at(-1)
    const text = one.step === 'insert' ? Buffer.from(one.bytes).toString() : undefined
    if (text !== undefined && typeof last === 'string') list[list.length - 1] = last + text
    else list.push(text ?? [one.step === 'copy' && one.from, one.step === 'copy' && one.length])
  }
  return list
}

function read(delta: Uint8Array, pieceBytes: number): readonly DeltaStep[] {
  const reader = deltaReader()
  const steps: DeltaStep[] = []
  for (let at = 0; at < delta.length; at += pieceBytes) steps.push(...reader.read(delta.subarray(at, at + pieceBytes)))
  reader.end()
  return steps
}

test('steps are read as they were written, whatever the pieces', async (t) => {
  const delta = deltaBytes(parts)
  for (const pieceBytes of [1, 2, 3, 7, 64, 1000])
    t.same(
      joined(read(delta, pieceBytes)),
      [[0, 5], 'new', [100_000, 1], [3, 70_000], 'x'.repeat(300), [2 ** 31, 2], 'end'],
      `pieces of ${pieceBytes}`,
    )
  t.same(read(deltaBytes([]), 1), [], 'nothing')
})

const wrong: { readonly [name: string]: readonly [readonly number[], RegExp] } = {
  'another format': [[2], /format 2/],
  'a copy from before the base': [[1, 0, 5, 1], /before its base/],
  'a copy of no bytes': [[1, 0, 0, 0], /copy of no bytes/],
  'a length without end': [[1, 255, 255, 255, 255, 255, 255, 255, 255, 1], /too large/],
  'zeros that go on': [[1, 128, 128, 128, 128, 128, 128, 128, 128, 128], /too large/],
  'a number that is cut': [[1, 200], /cut short/],
  'new bytes that are cut': [[1, 3, 65], /cut short/],
  'a copy without a place': [[1, 0, 5], /cut short/],
  nothing: [[], /cut short/],
}
for (const [name, [bytes, why]] of Object.entries(wrong)) {
  test(`a delta with ${name} is refused`, async (t) => {
    t.throws(() => read(Uint8Array.from(bytes), 4), why)
  })
}

test('no bytes make the reader copy from a negative place, or end it otherwise than by an error', async (t) => {
  const random = seededRandom(7)
  for (let round = 0; round < 2000; round++) {
    const bytes = Uint8Array.from({ length: 20 }, (_, at) => (at === 0 ? 1 : Math.floor(random() * 256)))
    try {
      for (const one of read(bytes, 5)) if (one.step === 'copy' && one.from < 0) t.fail(bytes.join())
    } catch (error) {
      if (!/^The delta /.test(String((error as Error).message))) t.fail(String(error))
    }
  }
})
