import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { test } from 'tap'
import { dueTimes, waitMs } from './due-times.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

test('keys come due in the order of their times, those of one time in the order they were given', async (t) => {
  const due = dueTimes()
  for (const [key, ms] of [
    ['c', 30],
    ['a', 10],
    ['d', 30],
    ['b', 20],
  ] as const)
    due.set(key, ms)
  t.equal(due.nextMs(), 10)
  t.match(due.next(), { key: 'a', dueMs: 10 })
  t.same(due.take(9), [])
  t.same(due.take(20), ['a', 'b'])
  t.same(due.take(100), ['c', 'd'])
  t.equal(due.nextMs(), undefined)
})

test('a key has one time: set moves it, advance only brings it forward', async (t) => {
  const due = dueTimes()
  due.set('a', 10)
  due.set('a', 50)
  t.same(due.take(40), [], 'the earlier time is forgotten')
  due.advance('a', 60)
  t.equal(due.nextMs(), 50)
  due.advance('a', 45)
  t.same(due.take(45), ['a'])
  due.set('b', 1)
  due.delete('b')
  t.equal(due.size, 0)
  t.same(due.take(100), [])
})

test('whatever happens, what is taken is what was due', async (t) => {
  let seed = 7
  const random = (below: number) => {
    seed = (seed * 1103515245 + 12345) % 2147483648
    return seed % below
  }
  const due = dueTimes()
  const expected = new Map<string, number>()
  for (let now = 0; now < 3000; now++) {
    const key = `k${random(200)}`
    if (random(5) === 0) {
      due.delete(key)
      expected.delete(key)
    } else {
      const ms = now + random(300)
      due.set(key, ms)
      expected.set(key, ms)
    }
    const late = [...expected].filter(([, ms]) => ms <= now).map(([name]) => name)
    for (const name of late) expected.delete(name)
    const taken = due.take(now)
    if (taken.sort().join() !== late.sort().join()) return t.same(taken, late, `at ${now}`)
  }
  t.equal(due.size, expected.size)
})

test('a key that is given its time again keeps its place, one with a later time is brought forward', async (t) => {
  const due = dueTimes()
  due.set('a', 10)
  due.set('b', 10)
  due.set('a', 10)
  t.same(due.take(10), ['a', 'b'])
  due.advance('c', 30)
  t.equal(due.get('c'), 30)
  due.advance('c', 30)
  due.advance('c', 20)
  t.equal(due.get('c'), 20)
  t.equal(due.get('none'), undefined)
  t.equal(due.size, 1)
})

test('a key that gets another time again and again is held in memory once, and keeps the order', async (t) => {
  const due = dueTimes()
  due.set('kept', 5_000)
  const heapBytes = () => {
    collectGarbage()
    return process.memoryUsage().heapUsed
  }
  const before = heapBytes()
  for (let ms = 1_000_000; ms > 0; ms--) due.set('moved', 10_000 + ms)
  t.ok(heapBytes() - before < 10_000_000, 'a million entries of replaced times take 60 MB or more')
  due.delete('moved')
  due.set('late', 6_000)
  t.same(due.take(100_000), ['kept', 'late'])
})

test('the wait is until the next time, from nothing to a day', async (t) => {
  const day = 86_400_000
  t.same([waitMs(undefined, 5), waitMs(15, 5), waitMs(5, 5), waitMs(1, 5), waitMs(day + 6, 5)], [day, 10, 0, 0, day])
})
