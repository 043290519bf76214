import { test } from 'tap'
import { fuzzSeed, mutatedBytes, randomNumbers, randomPieces } from '../../../daemon/testing/fuzz.ts'
import { bodyReader, responseHead } from './body-reader.ts'

const head = (text: string) => responseHead(Buffer.from(`HTTP/1.1 ${text}\r\n\r\nrest`))
const inChunks = { status: 200, isChunked: true, length: undefined, bodyAt: 0 }
const encoded = (texts: readonly string[]) =>
  `${texts.map((text) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`).join('')}0\r\n\r\n`

test('the head of a response has its status and how the body ends', async (t) => {
  t.match(head('200 OK\r\nTransfer-Encoding: chunked\r\nX: 1'), { status: 200, isChunked: true, length: undefined })
  t.match(head('404 Not Found\r\ncontent-length: 12'), { status: 404, isChunked: false, length: 12, bodyAt: 46 })
  t.match(head('200 OK'), { status: 200, isChunked: false, length: undefined })
  t.equal(responseHead(Buffer.from('HTTP/1.1 200 OK\r\nX: ')), undefined, 'the rest may follow')
  t.throws(() => responseHead(Buffer.from('hello\r\n\r\n')), /an invalid HTTP response/)
  t.throws(() => responseHead(Buffer.alloc(20_000, 'x')), /an invalid HTTP response/, 'without an end')
})

test('chunks are joined however they are cut, and the last one ends the body', async (t) => {
  const texts = ['one\n', 'x'.repeat(300), '\r\n', 'two']
  for (const size of [1, 2, 5, 100, 1_000]) {
    const [reader, bytes] = [bodyReader(inChunks), Buffer.from(encoded(texts))]
    const got: string[] = []
    for (let at = 0; at < bytes.length; at += size) {
      got.push(String(reader.read(Buffer.from(bytes.subarray(at, at + size)))))
      if (at + size < bytes.length - 5) t.notOk(reader.isEnded || reader.mayEnd)
    }
    t.equal(got.join(''), texts.join(''), `${size} bytes at a time`)
    t.ok(reader.isEnded && reader.mayEnd)
  }
})

test('an invalid chunk is refused', async (t) => {
  for (const bytes of ['hello', '3\r\nabcX', '\r\n', 'fffffffff\r\n', '3;name=value\r\n']) {
    t.throws(() => bodyReader(inChunks).read(Buffer.from(bytes)), /invalid chunks/, bytes)
  }
})

test('a body with a length ends with it, one without with the connection', async (t) => {
  const counted = bodyReader({ ...inChunks, isChunked: false, length: 5 })
  t.equal(String(counted.read(Buffer.from('abc'))), 'abc')
  t.notOk(counted.isEnded || counted.mayEnd)
  t.equal(String(counted.read(Buffer.from('defg'))), 'de')
  t.ok(counted.isEnded && counted.mayEnd)
  const open = bodyReader({ ...inChunks, isChunked: false })
  t.equal(String(open.read(Buffer.from('abc'))), 'abc')
  t.ok(open.mayEnd)
  t.notOk(open.isEnded)
})

test('no bytes crash the reader, or give more than was sent', async (t) => {
  const random = randomNumbers()
  for (let round = 0; round < 1_000; round++) {
    const texts = Array.from({ length: 1 + (random() % 5) }, () => 'y'.repeat(1 + (random() % 200)))
    const bytes = mutatedBytes(Buffer.from(encoded(texts)), random)
    const reader = bodyReader(inChunks)
    let given = 0
    try {
      for (const piece of randomPieces(bytes, 100, random)) given += reader.read(Buffer.from(piece)).length
    } catch (error) {
      if (!/invalid chunks/.test(String(error))) t.fail(`seed ${fuzzSeed}, round ${round}: ${error}`)
    }
    if (given > bytes.length) t.fail(`seed ${fuzzSeed}, round ${round}: ${given} of ${bytes.length} bytes`)
  }
  t.pass()
})
