import { test } from 'tap'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import type { FlowShare, LevelLimits } from './flow-levels.ts'
import { levelShares } from './flow-shares.ts'

const rate = (perSecond: number, burst: number) => ({ perSecond, burst })
const share = (more: Partial<FlowShare>): FlowShare => ({ rate: rate(10, 10), seats: 2, streams: 4, ...more })

function opened(limits: { readonly flow?: Partial<FlowShare>; readonly level?: Partial<FlowShare> } = {}) {
  const clock = fakeClock()
  const ended: string[] = []
  const both: LevelLimits = { flow: share(limits.flow ?? {}), level: share(limits.level ?? {}) }
  return { clock, ended, shares: levelShares(both, clock, ({ key }) => void ended.push(key)) }
}
const [ada, bob] = [{ key: 'ada' }, { key: 'bob' }]

test('a flow has its own tokens, and waits for the next one', async (t) => {
  const { shares, clock } = opened({ flow: { rate: rate(2, 3) }, level: { rate: rate(100, 100) } })
  t.same(
    [1, 2, 3, 4].map(() => shares.take(ada)),
    [0, 0, 0, 500],
  )
  t.equal(shares.take(bob), 0, 'another one has its own')
  await clock.advance(500)
  t.same([shares.take(ada), shares.take(ada)], [0, 500])
})

test('a level that is used up has tokens for owners that used little, and none for the one that used it up', async (t) => {
  const { shares } = opened({ flow: { rate: rate(10, 100) }, level: { rate: rate(10, 10) } })
  for (let count = 0; count < 10; count++) t.equal(shares.take(ada), 0)
  t.ok(shares.take(ada) > 0)
  t.equal(shares.take(bob), 0)
  const all = ['bob/1', 'bob/2', 'bob/3'].map((key) => ({ key, owner: 'bob' }))
  const taken = Array.from({ length: 12 }, (_, at) => shares.take(all[at % 3] ?? bob)).filter((waitMs) => waitMs === 0)
  t.ok(taken.length < 12, 'the flows of one owner share what is its own')
})

test('what an answer cost is charged afterwards, to the others at most as much as a flow has at once', async (t) => {
  const { shares } = opened({ flow: { rate: rate(1, 5) }, level: { rate: rate(10, 10) } })
  shares.charge(ada, 1_000)
  shares.charge(ada, Number.NaN)
  t.equal(shares.take(ada), 6_000, 'the flow owes at most what it may have at once')
  t.equal(shares.take(bob), 0)
})

test('seats are taken by running requests; a full level has some for owners with fewer', async (t) => {
  const { seats } = opened({ flow: { seats: 2 }, level: { seats: 2 } }).shares
  t.ok(seats.isFree(ada))
  seats.add(ada)
  seats.add(ada)
  t.notOk(seats.isFree(ada), 'a flow has two')
  t.ok(seats.isFree(bob))
  seats.add(bob)
  t.notOk(seats.isFree(bob), 'its share of the full level')
  t.notOk(seats.isFree({ key: 'bob/2', owner: 'bob' }), 'also by another flow of the owner')
  for (const flow of [ada, ada, bob]) seats.remove(flow)
  t.ok(seats.isFree(ada))
})

test('a new stream has the place of the newest one of who has most', async (t) => {
  const { shares, ended } = opened({ flow: { streams: 4 }, level: { streams: 4 } })
  const { streams } = shares
  const held = [1, 2, 3].map(() => streams.add(ada, 1))
  t.ok(streams.hasRoom(ada, 1))
  t.notOk(streams.hasRoom(ada, 2), 'a flow has four')
  held.push(streams.add(ada, 1))
  t.ok(streams.hasRoom(bob, 1))
  streams.add(bob, 1)
  t.same(ended, ['ada'])
  t.same(
    held.map(({ ending }) => ending.signal.aborted),
    [false, false, false, true],
  )
  t.notOk(streams.hasRoom({ key: 'ada/2', owner: 'ada' }, 1), 'who has most takes from no other')
  const [first, , , last] = held
  if (first) streams.remove(first)
  if (last) streams.remove(last)
  t.ok(streams.hasRoom({ key: 'ada/2', owner: 'ada' }, 1), 'an end counts once')
  t.notOk(streams.hasRoom({ key: 'ada/2', owner: 'ada' }, 2))
})
