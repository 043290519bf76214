import { test } from 'tap'
import { aLease, aNode, type LeaseOverrides, type NodeOverrides } from '../../../api/testing/builders.ts'
import { firstSight, type NodeHealth } from './node-health.ts'
import { defaultNodeLifecycleSettings as settings } from './node-lifecycle-settings.ts'
import { judgedFromMs, type NodeRoster, nodeRoster } from './node-roster.ts'

const zone = 'topology.kubernetes.io/zone'
const connection = 'bramble.dev/connection'
const at = (monotonicMs: number) => ({ monotonicMs, wallMs: Date.parse('2026-01-01T01:00:00Z') + monotonicMs })
const version = (resourceVersion: string, more: NodeOverrides = {}) =>
  aNode({ ...more, metadata: { resourceVersion, ...more.metadata } })
const beat = (second: number, more: LeaseOverrides = {}) =>
  aLease({ renewTime: `2026-01-01T01:00:${String(second).padStart(2, '0')}.000000Z`, ...more })
const lost = (second: number) => beat(second, { annotations: { [connection]: 'lost' } })

function withNode(over: NodeOverrides = {}): NodeRoster {
  const roster = nodeRoster(settings)
  roster.putNode(aNode(over), at(0))
  return roster
}

/** As the controller does: each node that is taken is checked. */
function checked(roster: NodeRoster, nowMs: number): readonly string[] {
  const names = roster.take(nowMs)
  for (const name of names) roster.checked(name, nowMs)
  return names
}

test('a node is checked when it changed, and then only when it would be silent', async (t) => {
  const roster = withNode()
  t.same(checked(roster, 0), ['pi-01'])
  t.equal(roster.nextMs(), 5_000, 'a period after Ready changed')
  t.same(checked(roster, 5_000), [], 'it is well')
  t.equal(roster.nextMs(), 55_000, 'the first whole period after its grace')
  t.same(checked(roster, 54_999), [])
  t.same(checked(roster, 55_000), ['pi-01'])
})

test('a heartbeat puts the check off, and is late after 14 s', async (t) => {
  const roster = withNode()
  t.equal(roster.putLease(beat(0), at(0)), false)
  checked(roster, 0)
  checked(roster, 5_000)
  t.equal(roster.nextMs(), 14_000)
  t.equal(roster.putLease(beat(10), at(10_000)), false)
  t.same(checked(roster, 14_000), [])
  t.equal(roster.nextMs(), 24_000)
  t.same(checked(roster, 24_000), ['pi-01'])
})

test('a lease has a node checked when its connection is lost, is back, or it leaves', async (t) => {
  const roster = withNode()
  t.equal(roster.putLease(aLease({ name: 'unknown' }), at(0)), false)
  roster.putLease(beat(0), at(0))
  checked(roster, 0)
  t.equal(roster.putLease(lost(0), at(1_000)), true)
  t.equal(roster.nextMs(), 2_001, 'after the debounce')
  t.equal(roster.putLease(lost(0), at(1_500)), false, 'it was lost before')
  t.equal(roster.putLease(beat(1), at(1_600)), true, 'it is back')
  const goodbye = { [connection]: 'goodbye', 'bramble.dev/expected-back-seconds': '120' }
  t.equal(roster.putLease(beat(1, { annotations: goodbye }), at(2_000)), true)
  t.equal(roster.nextMs(), 2_000, 'a leave is handled at once')
  checked(roster, 5_000)
  t.equal(roster.get('pi-01')?.health.absence?.expectedBack?.ms, 122_000)
})

test('a lease that is there before its node counts for it', async (t) => {
  const roster = nodeRoster(settings)
  t.equal(roster.putLease(beat(0), at(0)), false)
  roster.putNode(aNode(), at(1_000))
  t.equal(roster.get('pi-01')?.health.renewTime, '2026-01-01T01:00:00.000000Z')
  roster.deleteLease('pi-01')
  roster.deleteNode('pi-01')
  roster.putNode(aNode(), at(2_000))
  t.equal(roster.get('pi-01')?.health.renewTime, undefined)
})

test('an older version of a node is ignored, and another node of the name is a new one', async (t) => {
  const roster = nodeRoster(settings)
  const reading = () => {
    const { node, health } = roster.get('pi-01') ?? {}
    return [node?.metadata.resourceVersion, health?.lastSeenMs]
  }
  roster.putNode(version('10'), at(0))
  roster.putNode(version('9', { ready: 'False' }), at(1_000))
  t.same(reading(), ['10', 0])
  roster.putNode(version('10'), at(2_000))
  t.same(reading(), ['10', 0], 'no sign of life: its heartbeat is the same')
  roster.putNode(version('9', { uid: 'another' }), at(3_000))
  t.same(reading(), ['9', 3_000])
})

test('nodes are counted in their zone, as long as they are there', async (t) => {
  const roster = nodeRoster(settings)
  const counts = () => Object.fromEntries([...roster.counts()].map(([name, count]) => [name.split('\0:')[1], count]))
  roster.putNode(version('1', { name: 'a', labels: { [zone]: 'attic' } }), at(0))
  roster.putNode(version('1', { name: 'b', labels: { [zone]: 'attic' }, ready: 'Unknown' }), at(0))
  t.same(counts(), { attic: { ready: 1, notReady: 1 } })
  roster.putNode(version('2', { name: 'b', labels: { [zone]: 'cellar' } }), at(1))
  t.same(counts(), { attic: { ready: 1, notReady: 0 }, cellar: { ready: 1, notReady: 0 } })
  roster.putLease(beat(0, { name: 'b' }), at(2))
  roster.deleteNode('a')
  roster.deleteNode('a')
  t.same(counts(), { cellar: { ready: 1, notReady: 0 } })
  t.same([roster.get('a'), [...roster.entries()].length, roster.take(10)], [undefined, 1, ['b']])
})

test('nodes that were lost together are checked at once, and when the suspicion of their link ends', async (t) => {
  const roster = nodeRoster(settings)
  const names = ['a', 'b']
  const put = (resourceVersion: string, ready: 'True' | 'Unknown', ms: number) => {
    const labels = { 'bramble.dev/link': 'attic' }
    for (const name of names) roster.putNode(version(resourceVersion, { name, labels, ready }), at(ms))
  }
  put('1', 'True', 0)
  checked(roster, 0)
  put('2', 'Unknown', 60_000)
  roster.take(60_000)
  roster.judgeLinks(60_001)
  t.equal(roster.suspicionOf('a', 60_001)?.untilMs, 960_000)
  t.same(checked(roster, 60_001), names)
  for (let nowMs = roster.nextMs() ?? 0; nowMs < 960_000; nowMs = roster.nextMs() ?? 0) checked(roster, nowMs)
  t.same([roster.nextMs(), roster.suspicionOf('a', 960_000)], [960_000, undefined])
  t.same(checked(roster, 960_000), names)
})

test('a full grace makes every node as new, and grace for some only those', async (t) => {
  const roster = nodeRoster(settings)
  for (const name of ['reported', 'silent']) roster.putNode(aNode({ name }), at(0))
  roster.putNode(aNode({ name: 'fresh', conditions: [] }), at(0))
  roster.putLease(beat(0, { name: 'reported' }), at(0))
  const awaited = roster.awaited()
  t.same(
    awaited.map(({ node }) => node.metadata.name),
    ['silent'],
    'it reported to an earlier process alone',
  )
  roster.giveGraceTo(awaited, 7_000)
  const seen = () => ['reported', 'silent'].map((name) => roster.get(name)?.health.lastSeenMs)
  t.same(seen(), [0, 7_000])
  checked(roster, 7_000)
  roster.giveFullGrace(9_000)
  t.same([...seen(), roster.get('reported')?.health.heartbeatMs], [9_000, 9_000, undefined])
  t.same(checked(roster, 9_000).toSorted(), ['fresh', 'reported', 'silent'])
})

test('a node that is steady again has no losses', async (t) => {
  const roster = withNode({ taints: [{ key: 'bramble.dev/flapping', effect: 'NoSchedule' }] })
  t.equal(roster.get('pi-01')?.health.flapping.isFlapping, true)
  roster.steady('pi-01')
  roster.steady('unknown')
  t.same(roster.get('pi-01')?.health.flapping, { lossesMs: [], isFlapping: false })
})

test('a node is judged a period after its readiness changed, and one that is Unknown after its grace', async (t) => {
  const health = (over: NodeOverrides, more: Partial<NodeHealth> = {}): NodeHealth => ({
    ...firstSight(aNode(over), undefined, at(0), settings),
    ...more,
  })
  const reported = { renewTime: '2026-01-01T01:00:00.000000Z' }
  const never = [{ type: 'Ready', status: 'Unknown', reason: 'NodeStatusNeverUpdated' }] as const
  const cases: readonly (readonly [title: string, NodeHealth, fromMs: number])[] = [
    ['not ready', health({ ready: 'False' }), 5_000],
    ['changed within a period', health({ ready: 'False' }, { readyChangedMs: 4_999 }), 5_000],
    ['changed at a whole period', health({ ready: 'False' }, { readyChangedMs: 5_000 }), 10_000],
    ['never reported', health({ conditions: never }, { readyChangedMs: 61_000 }), 61_000],
    ['Unknown before this process', health({ ready: 'Unknown' }), 5_000],
    [
      'Unknown early, for a late heartbeat',
      health({ ready: 'Unknown' }, { ...reported, readyChangedMs: 14_000 }),
      60_000,
    ],
    [
      'Unknown when its silence was proven',
      health({ ready: 'Unknown' }, { ...reported, readyChangedMs: 55_000 }),
      60_000,
    ],
    ['Unknown again later', health({ ready: 'Unknown' }, { ...reported, readyChangedMs: 80_000 }), 85_000],
  ]
  for (const [title, one, fromMs] of cases) t.equal(judgedFromMs(one, settings), fromMs, title)
})
