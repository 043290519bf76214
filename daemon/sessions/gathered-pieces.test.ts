import { PassThrough } from 'node:stream'
import { test } from 'tap'
import { gatheredPieces } from './gathered-pieces.ts'

/** `waits` counts; the time stands still unless it is set. */
function manualTime() {
  const time = { now: 1_000, waits: 0, onWait: () => {} }
  const wait = async () => {
    time.waits++
    time.onWait()
  }
  return { time, given: { nowMs: () => time.now, wait } }
}

test('a single answer is not delayed, and pieces that follow at once come together', async (t) => {
  const stream = new PassThrough()
  const { time, given } = manualTime()
  const pieces = gatheredPieces(stream, given)
  const next = async () => String((await pieces.next()).value)
  stream.write('one')
  t.equal(await next(), 'one')
  t.equal(time.waits, 0)
  stream.write('two')
  t.equal(await next(), 'two')
  time.onWait = () => {
    stream.write('three ')
    stream.write('four')
  }
  t.equal(await next(), 'three four')
  t.equal(time.waits, 1)
})

test('nothing waits where a piece comes later, or is large', async (t) => {
  const stream = new PassThrough({ highWaterMark: 1024 * 1024 })
  const { time, given } = manualTime()
  const pieces = gatheredPieces(stream, given)
  for (const length of [10, 10, 10]) {
    const asked = pieces.next()
    time.now += 3
    stream.write(Buffer.alloc(length))
    t.equal((await asked).value?.length, length)
  }
  for (const length of [40_000, 50_000]) {
    stream.write(Buffer.alloc(length))
    t.equal((await pieces.next()).value?.length, length)
  }
  t.equal(time.waits, 0)
})

test('the end and an error of the stream are those of the pieces, and a reader that stops leaves it open', async (t) => {
  const ends = new PassThrough()
  ends.end('last')
  const got: string[] = []
  for await (const piece of gatheredPieces(ends)) got.push(String(piece))
  t.same(got, ['last'])
  const fails = new PassThrough()
  fails.destroy(new Error('cut'))
  await t.rejects(gatheredPieces(fails).next(), /cut/)
  const left = new PassThrough()
  left.write('one')
  for await (const piece of gatheredPieces(left)) {
    t.equal(String(piece), 'one')
    break
  }
  t.equal(left.destroyed, false)
})
