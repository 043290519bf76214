import { test } from 'tap'
import { collectedBytes } from './collected-bytes.ts'

test('the pieces of a body are joined in their order', async (t) => {
  const body = collectedBytes(100_000)
  t.equal(body.take().length, 0)
  const pieces = ['a', '', 'bc', 'x'.repeat(5_000), 'y'.repeat(20_000), 'z']
  for (const piece of pieces) t.ok(body.add(Buffer.from(piece)))
  t.equal(body.take().toString(), pieces.join(''))
})

test('a body may have at most so many bytes', async (t) => {
  const body = collectedBytes(10)
  t.ok(body.add(Buffer.from('0123456789')))
  t.equal(body.take().toString(), '0123456789')
  t.notOk(body.add(Buffer.from('a')))
  t.equal(body.take().length, 0, 'what came is dropped')
  t.notOk(body.add(Buffer.from('b')), 'and nothing is taken behind a gap')
})

test('many pieces are kept as one buffer', async (t) => {
  const body = collectedBytes(2 ** 20)
  const piece = Buffer.alloc(64)
  for (let at = 0; at < 2 ** 14; at++) {
    piece.fill(at & 255)
    body.add(piece)
  }
  const bytes = body.take()
  t.equal(bytes.length, 2 ** 20)
  t.ok(
    bytes.every((byte, at) => byte === ((at >> 6) & 255)),
    'of each piece its bytes are kept, not the piece',
  )
  t.ok(bytes.buffer.byteLength <= 2 ** 20, 'at most as much memory as the body may have')
})

test('a body that is cut up is refused after some small pieces, and stays refused', async (t) => {
  const body = collectedBytes(2 ** 20)
  const one = Buffer.from('x')
  let pieces = 0
  while (body.add(one)) pieces++
  t.equal(pieces, 1_040, '1,024, and one for each 64 bytes')
  t.equal(body.isCutUp, true)
  t.equal(body.take().length, 0)
  t.notOk(body.add(Buffer.alloc(1_000)))
  const slow = collectedBytes(2 ** 20)
  for (let at = 0; at < 1_000; at++) slow.add(one)
  t.equal(slow.take().length, 1_000, 'a short one may be')
  t.equal(slow.isCutUp, false)
})
