import { test } from 'tap'
import { distrust, type StoreTrust, trustAfter, trustWaitMs } from './store-trust.ts'

const minute = 60_000
const fresh: StoreTrust = { known: [] }
const ofA: StoreTrust = { known: ['a'] }
const seen = (trust: StoreTrust, store: string | undefined, nowMs: number, isEmpty = false) =>
  trustAfter(trust, { store, nowMs, isEmpty })

test('the first store of a machine without volumes is obeyed at once', async (t) => {
  t.same(seen(fresh, 'a', 0, true), ofA)
  t.equal(distrust(ofA, 'a'), undefined)
})

test('a machine with volumes of another life waits for ten minutes', async (t) => {
  const waiting = seen(fresh, 'a', 5)
  t.match(distrust(waiting, 'a'), /follows the orders of another store \(a\) when it has known it for 10 minutes$/)
  t.equal(trustWaitMs(waiting, 5 + minute), 9 * minute)
  t.equal(seen(waiting, 'a', 5 + 10 * minute - 1), waiting)
  t.same(seen(waiting, 'a', 5 + 10 * minute), ofA)
})

test('another store is obeyed after ten minutes without the first one between', async (t) => {
  const once = seen(ofA, 'b', 0)
  t.equal(distrust(once, 'a'), undefined, 'the one before counts as long')
  t.ok(distrust(once, 'b'))
  const back = seen(once, 'a', 9 * minute)
  t.same(back, ofA)
  t.equal(trustWaitMs(back, 0), undefined)
  const again = seen(back, 'b', 9 * minute + 1)
  t.ok(distrust(seen(again, 'b', 11 * minute), 'b'), 'the time begins again')
  t.same(seen(again, 'c', 19 * minute + 1).other, { store: 'c', seenMs: 0, sinceMs: 19 * minute + 1 })
  t.same(seen(again, 'b', 19 * minute + 1), { known: ['a', 'b'] })
})

test('the time without a connection does not count', async (t) => {
  const tried = seen(ofA, 'b', 0)
  const gone = seen(tried, undefined, minute)
  t.equal(trustWaitMs(gone, minute), undefined)
  t.equal(seen(gone, undefined, 60 * minute), gone)
  t.same(seen(gone, 'a', 60 * minute), ofA, 'a backup that was tried for a minute')
  const again = seen(gone, 'b', 60 * minute)
  t.equal(trustWaitMs(again, 62 * minute), 7 * minute)
  t.same(seen(again, 'b', 69 * minute), { known: ['a', 'b'] })
})

test('an earlier store is never obeyed again', async (t) => {
  const ofB: StoreTrust = { known: ['a', 'b'] }
  const back = seen(ofB, 'a', 0)
  t.same(back.known, ['a', 'b'])
  t.equal(seen(back, 'a', 60 * minute), back)
  t.match(distrust(back, 'a'), /^the order is from an earlier store \(a\)/)
  t.equal(trustWaitMs(back, 0), undefined, 'time does not change that')
})

test('a machine remembers 32 stores', async (t) => {
  const many: StoreTrust = {
    known: Array.from({ length: 32 }, (_, index) => `s${index}`),
    other: { store: 'x', seenMs: 0, sinceMs: 0 },
  }
  const { known } = seen(many, 'x', 10 * minute)
  t.equal(known.length, 32)
  t.same([known[0], known.at(-1)], ['s1', 'x'])
})
