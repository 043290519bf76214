import { test } from 'tap'
import { fakeClock } from './testing/fake-clock.ts'
import { workQueue } from './work-queue.ts'

test('a burst of changes to one key is one visit', async (t) => {
  const queue = workQueue(fakeClock())
  const stop = new AbortController()
  const visits: string[] = []
  for (const key of ['a', 'b', 'a', 'a']) queue.add(key)
  for await (const key of queue.keys(stop.signal)) {
    visits.push(key)
    queue.done(key)
    if (visits.length === 2) stop.abort()
  }
  t.same(visits, ['a', 'b'])
})

test('a key that changes during its visit is visited once more, and never twice at a time', async (t) => {
  const clock = fakeClock()
  const queue = workQueue(clock)
  const stop = new AbortController()
  const keys = queue.keys(stop.signal)[Symbol.asyncIterator]()
  queue.add('a')
  t.same(await keys.next(), { value: 'a', done: false })
  queue.add('a')
  queue.add('a')
  const next = keys.next()
  let early = true
  void next.then(() => t.notOk(early, 'not before the visit has ended'))
  await clock.settle()
  early = false
  queue.done('a')
  t.same(await next, { value: 'a', done: false })
  queue.done('a')
  stop.abort()
  t.ok((await keys.next()).done, 'no third visit')
})

test('a planned visit comes at its time; the earliest plan counts, and a change comes first', async (t) => {
  const clock = fakeClock()
  const queue = workQueue(clock)
  const stop = new AbortController()
  const visits: [string, number][] = []
  const visiting = (async () => {
    for await (const key of queue.keys(stop.signal)) {
      visits.push([key, clock.monotonicMs()])
      queue.done(key)
    }
  })()
  queue.addAfter('late', 300)
  queue.addAfter('late', 200)
  queue.addAfter('late', 500)
  queue.addAfter('changed', 400)
  await clock.advance(100)
  queue.add('changed')
  await clock.advance(1000)
  t.same(visits, [
    ['changed', 100],
    ['late', 200],
  ])
  queue.addAfter('never', 10_000)
  stop.abort()
  await visiting
  t.equal(clock.sleepers, 0, 'nothing is left waiting')
})

test('many planned visits wait with one timer, and a visit that is no longer planned does not come', async (t) => {
  const clock = fakeClock()
  const queue = workQueue(clock)
  const stop = new AbortController()
  const visits: [string, number][] = []
  const visiting = (async () => {
    for await (const key of queue.keys(stop.signal)) {
      visits.push([key, clock.monotonicMs()])
      queue.done(key)
    }
  })()
  for (const ms of [500, 300, 100, 200, 400]) queue.addAfter(`after ${ms}`, ms)
  await clock.settle()
  t.equal(clock.sleepers, 1)
  queue.add('after 100')
  await clock.advance(250)
  queue.addAfter('sooner', 10)
  await clock.settle()
  t.equal(clock.sleepers, 1, 'the timer is replaced by an earlier one')
  await clock.advance(1000)
  t.same(visits, [
    ['after 100', 0],
    ['after 200', 200],
    ['sooner', 260],
    ['after 300', 300],
    ['after 400', 400],
    ['after 500', 500],
  ])
  t.equal(clock.sleepers, 0)
  stop.abort()
  await visiting
})

test('a visit that is planned for no time holds back no other, and comes as late as a retry', async (t) => {
  const clock = fakeClock()
  const queue = workQueue(clock)
  const stop = new AbortController()
  const visits: [string, number][] = []
  const visiting = (async () => {
    for await (const key of queue.keys(stop.signal)) {
      visits.push([key, clock.monotonicMs()])
      queue.done(key)
    }
  })()
  queue.addAfter('never', Number.NaN)
  queue.addAfter('soon', 20)
  await clock.advance(60_000)
  t.same(visits, [
    ['soon', 20],
    ['never', 30_000],
  ])
  stop.abort()
  await visiting
})

test('a key that fails comes back later each time, and starts over after a success', async (t) => {
  const clock = fakeClock()
  const queue = workQueue(clock, () => 1)
  const stop = new AbortController()
  const keys = queue.keys(stop.signal)[Symbol.asyncIterator]()
  queue.add('a')
  const waits: number[] = []
  for (let visit = 0; visit < 3; visit++) {
    await keys.next()
    waits.push(queue.failed('a'))
    await clock.advance(waits.at(-1) ?? 0)
  }
  t.same(waits, [200, 400, 800])
  await keys.next()
  queue.done('a', 50)
  await clock.advance(50)
  await keys.next()
  t.equal(queue.failed('a'), 200)
  stop.abort()
  await keys.next()
})

test('the wait after a failure is drawn from the randomness of the clock, where it has one', async (t) => {
  const drawn = (random: () => number) => {
    const queue = workQueue({ ...fakeClock(), random })
    return queue.failed('a')
  }
  t.equal(
    drawn(() => 0.5),
    100,
  )
  t.equal(
    drawn(() => 0.25),
    50,
  )
})
