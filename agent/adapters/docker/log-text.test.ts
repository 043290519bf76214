import { test } from 'tap'
import {
  fuzzSeed,
  mutatedBytes,
  type RandomNumbers,
  randomNumbers,
  randomPieces,
} from '../../../daemon/testing/fuzz.ts'
import { logTextReader } from './log-text.ts'

const inChunks = { status: 200, isChunked: true, length: undefined, bodyAt: 0 }

function frame(stream: number, text: string): Buffer {
  const head = Buffer.alloc(8)
  head.writeUInt8(stream)
  head.writeUInt32BE(Buffer.byteLength(text), 4)
  return Buffer.concat([head, Buffer.from(text)])
}

function chunk(content: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${content.length.toString(16)}\r\n`), content, Buffer.from('\r\n')])
}

const last = Buffer.from('0\r\n\r\n')

/** The text of these bytes, given to a reader in pieces. */
function textOf(pieces: Iterable<Buffer>, reader = logTextReader(inChunks)): string {
  return [...pieces].map((piece) => String(reader.read(Buffer.from(piece)))).join('')
}

test('the text of frames in chunks is joined, and the last chunk ends it', async (t) => {
  const reader = logTextReader(inChunks)
  const bytes = Buffer.concat([chunk(frame(1, 'one\n')), chunk(frame(2, '')), chunk(frame(2, 'wrong\n')), last])
  t.equal(String(reader.read(bytes.subarray(0, 20))), 'one\n')
  t.notOk(reader.isEnded || reader.mayEnd)
  t.equal(String(reader.read(Buffer.from(bytes.subarray(20)))), 'wrong\n')
  t.ok(reader.isEnded && reader.mayEnd)
})

test('a response without chunks is read to its end', async (t) => {
  const bytes = Buffer.concat([frame(1, 'one\n'), frame(2, 'wrong\n')])
  const counted = logTextReader({ ...inChunks, isChunked: false, length: bytes.length })
  t.equal(textOf([bytes, Buffer.from('more')], counted), 'one\nwrong\n')
  t.ok(counted.isEnded && counted.mayEnd)
  t.ok(logTextReader({ ...inChunks, isChunked: false }).mayEnd)
})

test('an invalid chunk, an invalid frame and too much data are refused', async (t) => {
  const read = (bytes: Buffer) => () => textOf([bytes])
  for (const text of ['hello', '\r\n', 'fffffffff\r\n', '3;name=value\r\n']) {
    t.throws(read(Buffer.from(text)), /invalid chunks/, text)
  }
  for (const text of ['1\r\n', 'X\r\n']) {
    t.throws(read(Buffer.concat([chunk(frame(1, 'x')).subarray(0, -2), Buffer.from(text)])), /invalid chunks/, text)
  }
  t.throws(read(chunk(Buffer.from('hello, world'))), /invalid frames/)
  t.throws(read(chunk(Buffer.from([3, 0, 0, 0, 0, 0, 0, 1]))), /invalid frames/)
  t.throws(read(chunk(Buffer.from([1, 0, 0, 0, 0, 0x10, 0, 1]))), /invalid frames/)
  t.equal(textOf([chunk(Buffer.from([1, 0, 0, 0, 0, 0x10, 0, 0]))]), '')
})

test('the text is the same however frames, chunks and pieces are cut', async (t) => {
  const random = randomNumbers()
  for (let round = 0; round < 1_000; round++) {
    const sent = someTexts(random)
    const frames = Buffer.concat(sent.map((text) => frame(1 + (random() % 2), text)))
    const chunks = [...randomPieces(frames, 500, random)].map(chunk)
    const got = textOf(randomPieces(Buffer.concat([...chunks, last]), 700, random))
    if (got !== sent.join('')) return t.fail(`seed ${fuzzSeed}, round ${round}`)
  }
  t.pass()
})

test('no bytes crash the reader, or give more than was sent', async (t) => {
  const random = randomNumbers()
  for (let round = 0; round < 1_000; round++) {
    const whole = Buffer.concat([...someTexts(random).map((text) => chunk(frame(1, text))), last])
    const bytes = mutatedBytes(whole, random)
    try {
      const { length } = textOf(randomPieces(bytes, 700, random))
      if (length > bytes.length) t.fail(`seed ${fuzzSeed}, round ${round}: ${length} of ${bytes.length} bytes`)
    } catch (error) {
      if (!/Docker sent invalid/.test(String(error))) t.fail(`seed ${fuzzSeed}, round ${round}: ${error}`)
    }
  }
  t.pass()
})

function someTexts(random: RandomNumbers): readonly string[] {
  return Array.from({ length: 1 + (random() % 6) }, () => (random() % 8 === 0 ? '' : 'x'.repeat(random() % 300)))
}
