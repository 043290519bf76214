import { test } from 'tap'
import { aNode } from '../../../api/testing/builders.ts'
import { rateLimitedQueue } from './rate-limited-queue.ts'
import { evictionRate, noZones, planZones, type ZoneCount, zoneCounts, zoneOf, zoneState } from './zones.ts'

const settings = {
  nodeEvictionRate: 0.1,
  secondaryNodeEvictionRate: 0.01,
  unhealthyZoneThreshold: 0.55,
  largeClusterSizeThreshold: 50,
}
const state = (ready: number, notReady: number) => zoneState({ ready, notReady }, settings)

test('a zone is as well as its nodes', async (t) => {
  t.equal(state(5, 0), 'Normal')
  t.equal(state(0, 0), 'Normal')
  t.equal(state(0, 1), 'FullDisruption')
  t.equal(state(1, 2), 'Normal', 'two are never a disruption')
  t.equal(state(2, 3), 'PartialDisruption')
  t.equal(state(9, 11), 'PartialDisruption', 'exactly at the threshold it is one')
  t.equal(state(10, 10), 'Normal')
})

test('in disruption a large zone is slow and a small one stands still', async (t) => {
  const partial = (total: number) => evictionRate('PartialDisruption', { ready: 10, notReady: total - 10 }, settings)
  t.same([partial(51), partial(50)], [0.01, 0])
  t.equal(evictionRate('FullDisruption', { ready: 0, notReady: 3 }, settings), 0.1)
})

test('a zone is region and zone, old labels before new, each on its own', async (t) => {
  const zone = (labels: { [key: string]: string }) => zoneOf(aNode({ labels }))
  const [beta, stable] = ['failure-domain.beta.kubernetes.io', 'topology.kubernetes.io']
  t.equal(zone({}), '')
  t.equal(zone({ [`${beta}/zone`]: 'a', [`${stable}/zone`]: 'b' }), zone({ [`${stable}/zone`]: 'a' }))
  t.not(zone({ [`${stable}/region`]: 'a' }), zone({ [`${stable}/zone`]: 'a' }))
})

test('all zones down is a turn, coming back is another, and neither is taken twice', async (t) => {
  const counts = (...zones: readonly ZoneCount[]) => new Map(zones.map((count, i) => [`z${i}`, count]))
  const [down, well] = [
    { ready: 0, notReady: 4 },
    { ready: 4, notReady: 0 },
  ]
  const first = planZones(noZones, counts(down, well), settings)
  t.same([first.turn, [...first.rates.values()]], [undefined, [0.1, 0.1]])
  const all = planZones(first.zones, counts(down, down), settings)
  t.same([all.turn, [...all.rates.values()]], ['entering', [0, 0]])
  const still = planZones(all.zones, counts(down, down, down), settings)
  t.same([still.turn, [...still.rates.values()]], [undefined, [0, 0, 0]], 'a new zone does not open the gate')
  const back = planZones(still.zones, counts(down, { ready: 1, notReady: 3 }, down), settings)
  t.same([back.turn, [...back.rates.values()]], ['leaving', [0.1, 0, 0.1]])
  t.equal(planZones(back.zones, counts(down, well), settings).turn, undefined)
  t.equal(planZones(first.zones, counts(down), settings).turn, 'entering', 'the healthy zone was removed')
  t.equal(planZones(noZones, new Map(), settings).turn, undefined, 'a fleet without nodes')
})

test('in no window of time do more leave the queue than the rate allows', async (t) => {
  let seed = 11
  const random = (below: number) => {
    seed = (seed * 16807) % 2147483647
    return seed % below
  }
  for (const rate of [0.01, 0.1, 2]) {
    const queue = rateLimitedQueue(rate, 0)
    const taken: number[] = []
    for (let now = 0; now < 600_000; now += 1 + random(700)) {
      if (random(3) > 0) queue.add(`n${random(1000)}`)
      const name = queue.take(now)
      if (name === undefined) continue
      taken.push(now)
      if (random(4) > 0) queue.remove(name)
    }
    const intervals = taken.slice(1).map((at, i) => at - (taken[i] ?? 0))
    t.ok(
      intervals.every((ms) => ms >= 1000 / rate),
      `${taken.length} in ten minutes at ${rate}/s`,
    )
  }
})

test('first come first served; who is taken stays first until removed; a failure costs its token', async (t) => {
  const queue = rateLimitedQueue(0.1, 0)
  for (const name of ['a', 'b', 'a']) queue.add(name)
  t.equal(queue.take(0), 'a')
  t.equal(queue.take(9_999), undefined)
  t.equal(queue.nextMs(5_000), 10_000)
  t.equal(queue.take(10_000), 'a')
  queue.remove('a')
  t.equal(queue.take(20_000), 'b')
})

test('a new rate starts with its token unless the old one’s was spent; rate nought stops', async (t) => {
  const fresh = rateLimitedQueue(0.1, 0)
  fresh.add('a')
  fresh.setRate(1, 0)
  t.equal(fresh.take(0), 'a')
  fresh.setRate(0.5, 1)
  t.equal(fresh.nextMs(1), 2_001, 'spent')
  fresh.setRate(0, 5_000)
  t.same([fresh.take(9_999_999), fresh.nextMs(6_000)], [undefined, undefined])
  fresh.setRate(0.1, 10_000)
  t.equal(fresh.nextMs(10_000), 20_000, 'after a stop no node is taken at once')
})

test('nodes are counted by zone and readiness until they are taken out, but for those excluded by label', async (t) => {
  const { counts, count } = zoneCounts()
  count('a', aNode(), 1)
  count('a', aNode({ ready: 'False' }), 1)
  count('a', aNode({ ready: 'Unknown' }), 1)
  count('b', aNode({ conditions: [] }), 1)
  count('b', aNode({ labels: { 'node.kubernetes.io/exclude-disruption': '' } }), 1)
  t.same(
    [...counts],
    [
      ['a', { ready: 1, notReady: 2 }],
      ['b', { ready: 0, notReady: 1 }],
    ],
  )
  count('a', aNode({ ready: 'False' }), -1)
  count('a', aNode(), -1)
  t.same(counts.get('a'), { ready: 0, notReady: 1 })
  count('a', aNode({ ready: 'Unknown' }), -1)
  t.same([...counts.keys()], ['b'], 'a zone without nodes has no entry')
})

test('a node may have a region alone or a zone alone, and no labels at all', async (t) => {
  const region = zoneOf(aNode({ labels: { 'topology.kubernetes.io/region': 'eu' } }))
  const zone = zoneOf(aNode({ labels: { 'topology.kubernetes.io/zone': 'attic' } }))
  const both = zoneOf(
    aNode({ labels: { 'topology.kubernetes.io/region': 'eu', 'topology.kubernetes.io/zone': 'attic' } }),
  )
  t.same([region, zone, both], ['eu:\u0000:', ':\u0000:attic', 'eu:\u0000:attic'])
  const { labels: _, ...metadata } = aNode().metadata
  t.equal(zoneOf({ ...aNode(), metadata }), '')
  const { counts, count } = zoneCounts()
  count('', { ...aNode(), metadata }, 1)
  t.same(counts.get(''), { ready: 1, notReady: 0 })
})
