import { gunzipSync } from 'node:zlib'
import { test } from 'tap'
import { hashOf, packedDocument } from './packed-document.ts'

test('a document is kept packed, and has the hash of its bytes', async (t) => {
  const document = await packedDocument(['{"a":', Buffer.from('"ä'.repeat(2)), '}'])
  const text = '{"a":"ä"ä}'
  t.equal(gunzipSync(document.gzip).toString(), text)
  t.equal((await document.bytes()).toString(), text)
  t.equal(document.hash, hashOf(text))
  t.match(document.hash, /^[0-9A-F]{32}$/)
  t.equal((await packedDocument(['x'], { hash: 'B' })).hash, 'B')
})

test('readers at the same time share the bytes, which are not kept', async (t) => {
  const document = await packedDocument(['x'.repeat(1_000_000)], { keptMs: 0 })
  t.ok(document.gzip.length < 10_000)
  const [first, second] = await Promise.all([document.bytes(), document.bytes()])
  t.equal(first, second)
  // A timer that was set later fires later.
  await new Promise((resolve) => setTimeout(resolve, 1))
  t.not(await document.bytes(), first)
})

test('a long document is written in several turns of the event loop', async (t) => {
  let turns = 0
  let isOver = false
  const count = () => {
    turns += 1
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  function* pieces() {
    for (let index = 0; index < 20; index++) yield 'x'.repeat(100_000)
  }
  await packedDocument(pieces())
  isOver = true
  t.ok(turns > 5, `${turns} turns`)
})

test('a document that cannot be made is an error', async (t) => {
  function* pieces(): Generator<string> {
    yield 'x'
    throw new Error('no type')
  }
  await t.rejects(packedDocument(pieces()), { message: 'no type' })
})
