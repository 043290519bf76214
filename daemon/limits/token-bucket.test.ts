import { test } from 'tap'
import { fakeClock } from '../testing/fake-clock.ts'
import { tokenBuckets } from './token-bucket.ts'

test('a bucket allows its burst at once, and then its rate', async (t) => {
  const clock = fakeClock()
  const buckets = tokenBuckets({ perSecond: 10, burst: 3 }, clock)
  t.same(
    [1, 2, 3].map(() => buckets.take('a')),
    [0, 0, 0],
  )
  t.equal(buckets.take('a'), 100, 'the time until the next token')
  await clock.advance(100)
  t.equal(buckets.take('a'), 0)
  t.equal(buckets.take('a'), 100)
})

test('one key cannot use the tokens of another', async (t) => {
  const buckets = tokenBuckets({ perSecond: 1, burst: 1 }, fakeClock())
  buckets.take('greedy')
  t.ok(buckets.take('greedy') > 0)
  t.equal(buckets.take('modest'), 0)
})

test('a cost known afterwards delays what comes next, by twice the burst at most', async (t) => {
  const clock = fakeClock()
  const buckets = tokenBuckets({ perSecond: 10, burst: 5 }, clock)
  buckets.charge('a', 1_000_000)
  t.equal(buckets.take('a'), 600)
  await clock.advance(600)
  t.equal(buckets.take('a'), 0)
})

test('a single cost above the burst takes a full bucket, and the debt is paid afterwards', async (t) => {
  const clock = fakeClock()
  const buckets = tokenBuckets({ perSecond: 10, burst: 5 }, clock)
  t.equal(buckets.take('a', 8), 0)
  t.equal(buckets.take('a'), 400)
})

test('tokens reserved ahead return how long to wait', async (t) => {
  const clock = fakeClock()
  const buckets = tokenBuckets({ perSecond: 10, burst: 5 }, clock)
  t.same(
    [5, 1, 1].map((tokens) => buckets.reserve('a', tokens)),
    [0, 100, 200],
  )
  await clock.advance(200)
  t.equal(buckets.reserve('a', 0), 0)
})

test('tokens given back can be taken again, and never make more than the burst', async (t) => {
  const buckets = tokenBuckets({ perSecond: 1, burst: 2 }, fakeClock())
  buckets.take('a', 2)
  buckets.refund('a', 10)
  t.equal(buckets.take('a', 2), 0)
  t.ok(buckets.take('a') > 0)
})

test('a stranger with ever new keys fills no memory', async (t) => {
  const clock = fakeClock()
  const buckets = tokenBuckets({ perSecond: 1, burst: 1 }, clock, 100)
  buckets.take('empty')
  for (let key = 0; key < 10_000; key++) {
    buckets.take(`key-${key}`)
    buckets.take('empty')
  }
  t.ok(buckets.size <= 100)
  t.ok(buckets.take('empty') > 0, 'a bucket in use is kept')
})
