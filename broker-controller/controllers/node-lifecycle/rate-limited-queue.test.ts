import { test } from 'tap'
import { rateLimitedQueue } from './rate-limited-queue.ts'

const filled = (rate: number, ...names: readonly string[]) => {
  const queue = rateLimitedQueue(rate, 0)
  for (const name of names) queue.add(name)
  return queue
}
const taken = (queue: ReturnType<typeof filled>, nowMs: number) => {
  const name = queue.take(nowMs)
  if (name !== undefined) queue.remove(name)
  return name
}

test('the first name goes at once after a quiet time, each other one after a full interval', async (t) => {
  const queue = filled(0.1, 'a', 'b', 'c')
  t.equal(taken(queue, 1_000), 'a')
  t.equal(taken(queue, 1_000), undefined)
  t.equal(queue.nextMs(1_000), 11_000)
  t.equal(taken(queue, 10_999), undefined)
  t.equal(taken(queue, 11_000), 'b')
  t.equal(taken(queue, 60_000), 'c', 'a long time gives one token only')
  queue.add('d')
  t.equal(taken(queue, 60_001), undefined)
})

test('a name that waits keeps its place until it is removed', async (t) => {
  const queue = filled(1, 'a', 'b')
  queue.add('a')
  t.equal(queue.size, 2)
  t.equal(queue.take(0), 'a')
  t.equal(queue.take(1_000), 'a', 'it was taken, and is still in the queue')
  queue.remove('a')
  t.notOk(queue.has('a'))
  t.equal(queue.take(2_000), 'b')
})

test('an empty queue and one that stands still have no next time', async (t) => {
  t.equal(filled(1).nextMs(0), undefined)
  t.equal(filled(1).take(0), undefined)
  t.equal(filled(0, 'a').nextMs(0), undefined)
  t.equal(filled(0, 'a').take(99_000), undefined)
})

test('another rate counts from its change, with a token in hand only if that was not spent', async (t) => {
  const rested = filled(0.1, 'a')
  rested.setRate(0.01, 50_000)
  t.equal(taken(rested, 50_000), 'a')
  const spent = filled(0.1, 'a', 'b')
  taken(spent, 0)
  spent.setRate(0.01, 1_000)
  t.equal(spent.nextMs(1_000), 101_000)
  const same = filled(0.1, 'a', 'b')
  taken(same, 0)
  same.setRate(0.1, 9_000)
  t.equal(same.nextMs(9_000), 10_000, 'the same rate changes nothing')
  const stopped = filled(0.1, 'a', 'b')
  taken(stopped, 0)
  stopped.setRate(0, 1_000)
  t.equal(taken(stopped, 99_000), undefined)
  stopped.setRate(0.1, 100_000)
  t.equal(stopped.nextMs(100_000), 110_000, 'it does not begin with a token')
})
