import { test } from 'tap'
import { aLease, aNode } from '../../../api/testing/builders.ts'
import { judgeLink, linkOf, type Suspicion, suspicionText, withSuspectedLink } from './link-suspicion.ts'

const settings = {
  linkSuspicionPatienceMs: 900_000,
  linkSuspicionWindowMs: 20_000,
  linkSuspicionShare: 0.5,
  linkSuspicionNodes: 5,
  nodeMonitorGracePeriodMs: 50_000,
}
const names = (count: number) => Array.from({ length: count }, (_, i) => `pi-${i + 1}`)

type Situation = { total: number; lost: { readonly [name: string]: number }; outOfService?: readonly string[] }

function judged(
  before: readonly Suspicion[],
  { total, lost, outOfService = [] }: Situation,
  nowMs: number,
  by = settings,
) {
  const nodes = new Set(names(total))
  const facts = { nodes, lost: new Map(Object.entries(lost)), outOfService: new Set(outOfService) }
  return judgeLink('attic', before, facts, nowMs, by)
}
const members = (suspicions: readonly Suspicion[]) => suspicions.map(({ members }) => [...members.keys()].join())

test('two and half of a link lost within the window accuse it; one, fewer, or one after the other do not', async (t) => {
  t.same(judged([], { total: 1, lost: { 'pi-1': 0 } }, 0), [])
  t.same(judged([], { total: 2, lost: { 'pi-1': 0 } }, 0), [])
  t.same(members(judged([], { total: 2, lost: { 'pi-1': 0, 'pi-2': 20_000 } }, 20_000)), ['pi-1,pi-2'])
  t.same(judged([], { total: 2, lost: { 'pi-1': 0, 'pi-2': 20_001 } }, 20_001), [])
  t.same(judged([], { total: 6, lost: { 'pi-1': 0, 'pi-2': 1 } }, 1), [], 'two of six')
  const five = Object.fromEntries(names(5).map((name) => [name, 0]))
  t.equal(judged([], { total: 100, lost: five }, 0).length, 1, 'five at once are too many for chance')
  t.equal(judged([], { total: 4, lost: { 'pi-1': 0, 'pi-2': 1 } }, 1)[0]?.untilMs, 900_000)
})

test('the suspicion ends a grace after the first is back, and does not begin again', async (t) => {
  const begun = judged([], { total: 4, lost: { 'pi-1': 0, 'pi-2': 0, 'pi-3': 0 } }, 0)
  const back = judged(begun, { total: 4, lost: { 'pi-2': 0, 'pi-3': 0 } }, 90_000)
  t.equal(back[0]?.untilMs, 140_000)
  t.equal(judged(back, { total: 4, lost: { 'pi-2': 0, 'pi-3': 0 } }, 200_000)[0]?.untilMs, 140_000)
  t.same(judged(back, { total: 4, lost: {} }, 200_000), [], 'forgotten when no node is lost')
  const again = judged(back, { total: 4, lost: { 'pi-1': 210_000, 'pi-2': 0, 'pi-3': 0 } }, 210_000)
  t.same(members(again), ['pi-1,pi-2,pi-3'], 'a node that is lost again alone does not make the link suspect')
  t.equal(again[0]?.untilMs, 140_000)
})

test('a node that was removed is not one that came back; one out of service proves that they are dead', async (t) => {
  const begun = judged([], { total: 3, lost: { 'pi-1': 0, 'pi-2': 0, 'pi-3': 0 } }, 0)
  t.equal(judged(begun, { total: 2, lost: { 'pi-1': 0, 'pi-2': 0 } }, 10_000)[0]?.untilMs, 900_000)
  const given = judged(begun, { total: 3, lost: { 'pi-1': 0, 'pi-2': 0, 'pi-3': 0 }, outOfService: ['pi-2'] }, 60_000)
  t.equal(given[0]?.untilMs, 60_000)
})

test('late-comers join while it lasts; who is lost much later must be many again', async (t) => {
  const begun = judged([], { total: 6, lost: { 'pi-1': 0, 'pi-2': 0, 'pi-3': 0 } }, 0)
  const lost = { 'pi-1': 0, 'pi-2': 0, 'pi-3': 0, 'pi-4': 19_000, 'pi-5': 300_000 }
  t.same(members(judged(begun, { total: 6, lost }, 300_000)), ['pi-1,pi-2,pi-3,pi-4'])
  const second = Object.fromEntries(names(9).map((name, i) => [name, i < 3 ? 0 : 300_000]))
  t.same(members(judged(begun, { total: 9, lost: second }, 300_000)), [
    'pi-1,pi-2,pi-3',
    'pi-4,pi-5,pi-6,pi-7,pi-8,pi-9',
  ])
})

test('however losses fall, one that is far from all others is never excused', async (t) => {
  for (let seed = 1; seed < 400; seed++) {
    const random = (n: number) => ((seed * 2_654_435_761 + n * 40_503 * seed) >>> 7) % 100
    const total = 2 + (seed % 9)
    const lost = Object.fromEntries(names(total).flatMap((name, i) => (i % 3 ? [[name, random(i) * 1_000]] : [])))
    const excused = judged([], { total, lost }, 100_000).flatMap(({ members }) => [...members])
    for (const [name, ms] of excused) {
      const near = Object.values(lost).filter((other) => Math.abs(other - ms) <= settings.linkSuspicionWindowMs)
      if (near.length < Math.max(2, Math.min(5, Math.ceil(total / 2)))) t.fail(`${name} of seed ${seed}`)
    }
  }
})

test('the label names the link, else the address, else what was noted before a restart', async (t) => {
  const lease = aLease({ annotations: { 'bramble.dev/address': '203.0.113.7' } })
  t.equal(linkOf(aNode({ labels: { 'bramble.dev/link': 'attic' } }), lease), 'attic')
  t.equal(linkOf(aNode(), lease), '203.0.113.7')
  t.equal(linkOf(aNode(), undefined), undefined)
  const noted = withSuspectedLink(aNode(), 'attic')
  t.equal(noted && linkOf(noted, undefined), 'attic')
  t.equal(noted && withSuspectedLink(noted, 'attic'), undefined)
  t.strictSame(noted && withSuspectedLink(noted, undefined)?.metadata.annotations, {})
  const unlabelled = { ...aNode(), metadata: { name: 'pi-01' } }
  t.equal(linkOf(unlabelled, aLease()), undefined)
  t.equal(withSuspectedLink(unlabelled, undefined), undefined)
})

test('no link is suspected where that is switched off', async (t) => {
  const off = { ...settings, linkSuspicionPatienceMs: 0 }
  t.same(judged([], { total: 2, lost: { 'pi-1': 0, 'pi-2': 0 } }, 0, off), [])
})

test('nodes that were lost within the window before the first or after the last are late-comers', async (t) => {
  const first = { 'pi-1': 30_000, 'pi-2': 45_000, 'pi-3': 45_000 }
  const begun = judged([], { total: 6, lost: first }, 45_000)
  const cases = [
    { ms: 9_999, joins: false },
    { ms: 10_000, joins: true },
    { ms: 40_000, joins: true },
    { ms: 65_000, joins: true },
    { ms: 65_001, joins: false },
  ]
  for (const { ms, joins } of cases) {
    const later = judged(begun, { total: 6, lost: { ...first, 'pi-4': ms } }, 70_000)
    t.same(members(later), [joins ? 'pi-1,pi-2,pi-3,pi-4' : 'pi-1,pi-2,pi-3'], `lost at ${ms} ms`)
  }
})

test('late-comers begin no suspicion of their own, however many', async (t) => {
  const lost = Object.fromEntries(names(6).map((name, i) => [name, i < 3 ? 0 : 15_000]))
  const begun = judged([], { total: 6, lost: { 'pi-1': 0, 'pi-2': 0, 'pi-3': 0 } }, 0)
  t.same(members(judged(begun, { total: 6, lost }, 15_000)), ['pi-1,pi-2,pi-3,pi-4,pi-5,pi-6'])
})

test('no node joins a suspicion that has ended', async (t) => {
  const lost = { 'pi-1': 0, 'pi-2': 0, 'pi-3': 0 }
  const begun = judged([], { total: 6, lost }, 0)
  const given = judged(begun, { total: 6, lost, outOfService: ['pi-1'] }, 10_000)
  t.equal(given[0]?.untilMs, 10_000)
  for (const nowMs of [10_000, 15_000]) {
    t.same(members(judged(given, { total: 6, lost: { ...lost, 'pi-4': nowMs } }, nowMs)), ['pi-1,pi-2,pi-3'])
  }
})

test('a node belongs to one suspicion, also when another one comes near it in time', async (t) => {
  const lost = { 'pi-1': 0, 'pi-2': 0, 'pi-3': 0, 'pi-4': 15_000 }
  const second = { ...lost, 'pi-5': 30_000, 'pi-6': 30_000, 'pi-7': 30_000 }
  const begun = judged([], { total: 6, lost: { 'pi-1': 0, 'pi-2': 0, 'pi-3': 0 } }, 0)
  const both = judged(begun, { total: 6, lost: second }, 30_000)
  t.same(members(both), ['pi-1,pi-2,pi-3,pi-4', 'pi-5,pi-6,pi-7'])
  t.same(members(judged(both, { total: 6, lost: second }, 31_000)), ['pi-1,pi-2,pi-3,pi-4', 'pi-5,pi-6,pi-7'])
})

test('the suspicion is described by its counts and the name of the link', async (t) => {
  const [suspicion] = judged([], { total: 4, lost: { 'pi-1': 0, 'pi-2': 0, 'pi-3': 0 } }, 0)
  t.equal(
    suspicion && suspicionText(suspicion),
    '3 of the 4 nodes of link attic were lost together: the network is suspected',
  )
})
