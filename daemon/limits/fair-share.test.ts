import { test } from 'tap'
import { displacedFor, isWithinFairShare, type Weighted } from './fair-share.ts'

test('a flow gets what the others leave, and as much as any of them where they leave nothing', async (t) => {
  t.equal(isWithinFairShare(3, [], 3), true)
  t.equal(isWithinFairShare(4, [], 3), false)
  t.equal(isWithinFairShare(8, [1, 1], 10), true, 'the others do not need more')
  t.equal(isWithinFairShare(9, [1, 1], 10), false)
  t.equal(isWithinFairShare(5, [100], 10), true, 'half of it')
  t.equal(isWithinFairShare(6, [100], 10), false)
  t.equal(isWithinFairShare(4, [100, 2, 100], 14), true, 'two is left to the one that wants two')
  t.equal(isWithinFairShare(4, [100, 3, 100], 14), false)
  t.equal(
    isWithinFairShare(
      1,
      Array.from({ length: 10 }, () => 1),
      10,
    ),
    false,
    'there are more flows than places',
  )
})

type Named = Weighted & { readonly name: string }

const streams = (name: string, ...weights: number[]) => weights.map((weight, at) => ({ name: `${name}${at}`, weight }))

test('the newest stream of the flow with most is displaced, as long as that flow keeps no fewer than the newcomer has', async (t) => {
  const displaced = (own: number, weight: number, flows: ReturnType<typeof streams>[], excess: number) =>
    displacedFor<Named>({ own, weight }, flows, excess)?.map(({ name }) => name)
  const [three, five] = [streams('three-', 1, 1, 1), streams('five-', 1, 1, 1, 1, 1)]
  t.same(displaced(0, 1, [three, five], 0), [], 'there is room')
  t.same(displaced(0, 1, [three, five], -3), [])
  t.same(displaced(0, 1, [three, five], 1), ['five-4'])
  t.same(displaced(0, 2, [three, five], 2), ['five-4', 'five-3'])
  t.same(displaced(3, 1, [three, five], 1), ['five-4'])
  t.same(displaced(4, 1, [three, five], 1), undefined, 'equal to it')
  t.same(displaced(0, 2, [three, five], 4), ['five-4', 'five-3', 'three-2', 'five-2'], 'the largest changes')
  t.same(displaced(0, 1, [], 1), undefined)
})

test('heavy streams are displaced whole, and not for a lighter flow that would become the heavier one', async (t) => {
  const heavy = streams('heavy-', 1, 8)
  t.same(
    displacedFor<Named>({ own: 0, weight: 1 }, [heavy], 1)?.map(({ name }) => name),
    ['heavy-1'],
  )
  t.same(displacedFor<Named>({ own: 1, weight: 1 }, [heavy], 1), undefined)
})
