import { test } from 'tap'
import { type Lease, leaseDurationAnnotation } from '../../../api/lease.ts'
import type { Node } from '../../../api/node.ts'
import { aLease, aNode } from '../../../api/testing/builders.ts'
import { withFlappingTaint } from './flapping.ts'
import { silenceText, silentNode } from './node-conditions.ts'
import {
  disconnectedAtMs,
  firstSight,
  lateAtMs,
  type NodeHealth,
  type Now,
  seenLease,
  seenNode,
  silenceOf,
  silentAtMs,
  steadyAtMs,
} from './node-health.ts'
import { withAbsence } from './planned-absence.ts'

const settings = {
  nodeMonitorGracePeriodMs: 50_000,
  nodeStartupGracePeriodMs: 60_000,
  nodeLeaseDurationLimitMs: 1_800_000,
  nodeConnectionLossDebounceMs: 5_000,
  nodeHeartbeatToleranceMs: 3_500,
  plannedAbsenceLimitMs: 600_000,
  flappingLosses: 3,
  flappingWindowMs: 900_000,
  flappingSettleTimeMs: 300_000,
}
const at = (monotonicMs: number) => ({ monotonicMs, wallMs: Date.parse('2026-01-01T01:00:00Z') })
const beat = (second: number) => aLease({ renewTime: `2026-01-01T00:00:${String(second).padStart(2, '0')}.000000Z` })
const lost = aLease({ annotations: { 'bramble.dev/connection': 'lost' } })
const sight = (node: Node, lease: Lease | undefined, now: Now) => firstSight(node, lease, now, settings)
const renewed = (health: NodeHealth, lease: Lease, ms: number) => seenLease(health, lease, at(ms), settings)
const reported = (health: NodeHealth, node: Node, ms: number) => seenNode(health, node, ms, settings)

function heartbeat(lastHeartbeatTime: string, status: 'True' | 'False' = 'True') {
  return aNode({ conditions: [{ type: 'Ready', status, lastHeartbeatTime }] })
}

test('a node that has reported gets a full grace at first sight, one that has not is as old as its object', async (t) => {
  t.equal(sight(aNode(), undefined, at(1_000)).lastSeenMs, 1_000)
  t.equal(sight(aNode({ conditions: [] }), undefined, at(0)).lastSeenMs, -3_600_000)
  const unborn = aNode({ conditions: [], metadata: { creationTimestamp: '2030-01-01T00:00:00Z' } })
  t.equal(sight(unborn, undefined, at(7)).lastSeenMs, 7, 'a date that jumped back makes no node old')
})

test('exactly at the grace a node is not yet silent', async (t) => {
  const health = sight(aNode(), undefined, at(0))
  t.equal(silenceOf(health, settings, 50_000), undefined)
  t.equal(silenceOf(health, settings, 50_001), 'silent')
  const fresh = renewed(sight(aNode({ conditions: [] }), undefined, at(0)), beat(1), 0)
  t.equal(silentAtMs(fresh, settings), 60_000, 'the start-up grace until a status came')
})

const metered = (seconds: number) =>
  aNode({ metadata: { annotations: { [leaseDurationAnnotation]: String(seconds) } } })

test('a metered node is given the grace of the lease it announced, after a restart of the controller, too', (t) => {
  const health = sight(metered(1_200), undefined, at(0))
  t.equal(silenceOf(health, settings, 1_500_000), undefined)
  t.equal(silenceOf(health, settings, 1_500_001), 'silent')
  const lease = { ...beat(1), spec: { ...beat(1).spec, leaseDurationSeconds: 1_200 } }
  const beating = renewed(sight(aNode(), undefined, at(0)), lease, 0)
  t.equal(silenceOf(beating, settings, 330_000), undefined, 'a tenth of the period')
  t.equal(silenceOf(beating, settings, 330_001), 'late')
  const usualAgain = renewed(beating, beat(2), 300_000)
  t.equal(silentAtMs(usualAgain, settings), 350_000, 'metered no longer')
  t.end()
})

test('no node stays Ready for long because it announces a long lease', (t) => {
  const limitMs = 1_800_000 * 1.25
  for (const seconds of [3_600, 1e9, Number.MAX_VALUE]) {
    t.equal(silentAtMs(sight(metered(seconds), undefined, at(0)), settings), limitMs)
    const lease = { ...beat(1), spec: { ...beat(1).spec, leaseDurationSeconds: seconds } }
    t.equal(silentAtMs(renewed(sight(aNode(), undefined, at(0)), lease, 0), settings), limitMs)
  }
  for (const nonsense of [0, -5, Number.NaN]) {
    t.equal(silentAtMs(sight(metered(nonsense), undefined, at(0)), settings), 50_000)
  }
  const strict = { ...settings, nodeLeaseDurationLimitMs: 0 }
  t.equal(silentAtMs(firstSight(metered(1_200), undefined, at(0), strict), strict), 50_000, 'a limit of nothing')
  t.end()
})

test('with a short grace a node known from before has the time that its agent may take to connect', (t) => {
  const short = { ...settings, nodeMonitorGracePeriodMs: 10_000 }
  const health = firstSight(aNode(), undefined, at(0), short)
  t.equal(silentAtMs(health, short), 35_000)
  t.equal(silentAtMs(seenLease(health, beat(1), at(1_000), short), short), 11_000)
  t.end()
})

test('a sign of life is a change, whatever times it carries', async (t) => {
  const health = sight(heartbeat('2026-01-01T00:00:10Z'), beat(10), at(0))
  t.equal(reported(health, heartbeat('2026-01-01T00:00:10Z'), 5).lastSeenMs, 0, 'the same again does not count')
  t.equal(reported(health, heartbeat('1970-01-01T00:00:00Z'), 5).lastSeenMs, 5, 'a clock that woke up in 1970')
  t.equal(reported(health, aNode({ conditions: [] }), 5).lastSeenMs, 5, 'Ready vanished')
  t.equal(renewed(health, beat(10), 5).lastSeenMs, 0)
  t.equal(renewed(health, beat(20), 5).lastSeenMs, 5)
  t.equal(renewed(health, beat(0), 5).lastSeenMs, 5, 'our own date was set back')
})

test('what the controller writes about a node that never reported is not a heartbeat', async (t) => {
  const health = sight(aNode({ conditions: [] }), beat(1), at(0))
  const written = silentNode(aNode({ conditions: [] }), { is: 'silent', text: '' }, '2026-01-01T01:01:00Z')
  if (written === undefined) return t.fail('nothing was written')
  const seen = reported(health, written, 60_001)
  t.equal(seen.lastSeenMs, 0)
  t.equal(silenceOf(seen, settings, 60_001), 'silent')
  t.equal(reported(seen, heartbeat('2026-01-01T00:00:10Z'), 70_000).lastSeenMs, 70_000, 'its own report is one')
})

test('Ready changes when its status does', async (t) => {
  const health = sight(heartbeat('2026-01-01T00:00:10Z'), undefined, at(0))
  t.equal(reported(health, heartbeat('2026-01-01T00:00:20Z'), 5).readyChangedMs, 0)
  t.equal(reported(health, heartbeat('2026-01-01T00:00:20Z', 'False'), 5).readyChangedMs, 5)
})

test('a lost connection counts from when we learnt of it, until it is back or a sign of life outweighs it', async (t) => {
  const health: NodeHealth = { ...sight(aNode(), lost, at(0)), lastSeenMs: 0 }
  const again = renewed(health, lost, 3_000)
  t.equal(disconnectedAtMs(again, settings), 5_000)
  t.equal(silenceOf(again, settings, 5_000), undefined)
  t.equal(silenceOf(again, settings, 5_001), 'disconnected')
  t.equal(silenceOf(renewed(again, beat(30), 4_000), settings, 9_000), undefined)
  const late = aLease({ renewTime: beat(40).spec?.renewTime ?? '', annotations: { 'bramble.dev/connection': 'lost' } })
  t.equal(silenceOf(renewed(again, late, 4_000), settings, 9_000), undefined, 'the will of an old connection')
})

const goodbye = (reason: string, seconds?: number) =>
  aLease({
    annotations: {
      'bramble.dev/connection': 'goodbye',
      'bramble.dev/connection-reason': reason,
      ...(seconds !== undefined && { 'bramble.dev/expected-back-seconds': String(seconds) }),
    },
  })

test('a goodbye is a broken connection whose node is away until it is expected back', async (t) => {
  const away = renewed(sight(aNode(), undefined, at(0)), goodbye('reboot', 180), 1_000)
  t.equal(silenceOf(away, settings, 6_000), undefined, 'the debounce first')
  t.equal(silenceOf(away, settings, 6_001), 'away')
  t.equal(silenceOf(away, settings, 181_000), 'away')
  t.equal(silenceOf(away, settings, 181_001), 'silent')
  const again = renewed(away, goodbye('reboot', 180), 90_000)
  t.equal(silenceOf(again, settings, 181_001), 'silent', 'the same goodbye seen once more is not another one')
  t.equal(renewed(away, beat(30), 90_000).absence, undefined, 'it is back')
})

test('a goodbye without a time, or one that is not taken, is a lost connection; a long one is cut short', async (t) => {
  const stopped = renewed(sight(aNode(), undefined, at(0)), goodbye('agent-stopped'), 0)
  t.equal(silenceOf(stopped, settings, 5_001), 'disconnected')
  t.equal(silenceText('disconnected', stopped), 'The node disconnected cleanly (agent-stopped).')
  const holiday = renewed(sight(aNode(), undefined, at(0)), goodbye('holiday', 1e9), 0)
  t.equal(holiday.absence?.expectedBack?.ms, 600_000)
  const deaf = { ...settings, plannedAbsenceLimitMs: 0 }
  const unheard = seenLease(sight(aNode(), undefined, at(0)), goodbye('reboot', 180), at(0), deaf)
  t.equal(silenceOf(unheard, deaf, 50_001), 'silent')
})

test('the goodbye written on the Node outlasts a restart of the controller', async (t) => {
  const away = renewed(sight(aNode(), undefined, at(0)), goodbye('reboot', 180), 0)
  const noted = withAbsence(aNode({ ready: 'Unknown' }), away.absence)
  t.match(noted?.metadata.annotations, { 'bramble.dev/goodbye-reason': 'reboot' })
  if (noted === undefined) return t.fail('nothing is noted')
  t.equal(withAbsence(noted, away.absence), undefined)
  const restarted = sight(noted, undefined, { monotonicMs: 7_000, wallMs: at(0).wallMs + 60_000 })
  t.equal(restarted.absence?.expectedBack?.ms, 127_000, 'a minute of it has passed')
  t.same(withAbsence(noted, undefined)?.metadata.annotations, {})
  const late = sight(noted, undefined, { monotonicMs: 0, wallMs: at(0).wallMs + 3_600_000 })
  t.equal(late.absence?.expectedBack, undefined)
})

test('who loses Ready often within a while flaps, until it has stayed Ready; announced losses do not count', async (t) => {
  const flip = (health: NodeHealth, ms: number) =>
    reported(reported(health, heartbeat('a', 'False'), ms), heartbeat('b', 'True'), ms + 1_000)
  let health = sight(heartbeat('b'), undefined, at(0))
  for (const ms of [0, 100_000]) health = flip(health, ms)
  t.notOk(health.flapping.isFlapping)
  t.notOk(flip(health, 950_000).flapping.isFlapping, 'the first is forgotten')
  const announced = { ...health, absence: renewed(health, goodbye('reboot', 180), 200_000).absence }
  t.notOk(flip(announced, 201_000).flapping.isFlapping)
  health = flip(health, 200_000)
  t.ok(health.flapping.isFlapping)
  t.equal(steadyAtMs(health, settings), 501_000)
  t.equal(steadyAtMs(flip(health, 300_000), settings), 601_000, 'the time begins again')
  const off = { ...settings, flappingLosses: 0 }
  t.notOk(seenNode(health, heartbeat('c', 'False'), 400_000, off).flapping.isFlapping)
  const marked = withFlappingTaint(aNode(), true, 'now')
  t.ok(marked && sight(marked, undefined, at(0)).flapping.isFlapping, 'the taint is remembered over a restart')
})

test('how long a node has been Unknown is measured from its date, and from now where the date is of no use', async (t) => {
  const unknown = (lastTransitionTime?: string) => {
    const given = lastTransitionTime !== undefined && { lastTransitionTime }
    const node = aNode({ conditions: [{ type: 'Ready', status: 'Unknown', ...given }] })
    return sight(node, undefined, at(5_000)).unknownMs
  }
  t.equal(unknown('2026-01-01T00:59:00Z'), -55_000)
  t.equal(unknown('2030-01-01T00:00:00Z'), 5_000, 'a date in the future')
  t.equal(unknown(), 5_000)
  t.equal(sight(aNode({ ready: 'False' }), undefined, at(5_000)).unknownMs, undefined)
})

test('Unknown begins and ends with the status of Ready', async (t) => {
  const health = sight(aNode(), undefined, at(0))
  const unknown = reported(health, aNode({ ready: 'Unknown' }), 7)
  t.equal(unknown.unknownMs, 7)
  t.equal(reported(unknown, aNode({ ready: 'Unknown' }), 9).unknownMs, 7, 'it is Unknown still')
  t.equal(reported(unknown, aNode({ ready: 'False' }), 9).unknownMs, undefined)
  t.equal(reported(reported(health, aNode({ ready: 'False' }), 7), aNode(), 9).flapping.lossesMs.length, 1)
})

test('a node without a status can be neither late nor disconnected, only silent', async (t) => {
  const bare = renewed(sight(aNode({ conditions: [] }), lost, at(0)), lost, 0)
  t.equal(disconnectedAtMs(bare, settings), undefined)
  t.equal(lateAtMs(renewed(bare, beat(1), 0), settings), undefined)
  t.equal(lateAtMs(sight(aNode(), undefined, at(0)), settings), undefined, 'no renewal was seen')
  t.equal(lateAtMs(renewed(sight(aNode(), undefined, at(0)), beat(1), 0), settings), 13_500)
})

test('an absence ends with the next renewal, and not with the loss of the old connection', async (t) => {
  const away = renewed(sight(aNode(), undefined, at(0)), goodbye('reboot', 180), 0)
  t.same(renewed(away, lost, 1_000).absence, away.absence)
  t.equal(renewed(away, lost, 1_000).lostMs, 0, 'the loss keeps its beginning')
  t.same(renewed(away, aLease(), 1_000).absence, away.absence, 'a lease that is not renewed is not a return')
  const back = renewed(away, beat(30), 1_000)
  t.same([back.absence, back.lostMs, back.lastSeenMs], [undefined, undefined, 1_000])
})

test('a node that never reported changed last when its object was made, and gets no time to reconnect', async (t) => {
  const short = { ...settings, nodeMonitorGracePeriodMs: 10_000 }
  const { status: _, ...neverReported } = aNode()
  for (const node of [neverReported, { ...neverReported, status: {} }, aNode({ conditions: [] })]) {
    const health = firstSight(node, undefined, at(5_000), short)
    t.match(health, { ready: undefined, readyChangedMs: -3_595_000, lastSeenMs: -3_595_000 })
  }
})

test('a first condition is a sign of life although it carries no time', async (t) => {
  const health = sight(aNode({ conditions: [] }), undefined, at(0))
  t.equal(reported(health, aNode({ conditions: [{ type: 'Ready', status: 'True' }] }), 5).lastSeenMs, 5)
})

test('a report about a long lease counts from then on, beside what the Lease announces', async (t) => {
  const health = sight(aNode(), beat(1), at(0))
  t.equal(silentAtMs(reported(health, metered(1_200), 0), settings), 1_500_000)
  const lease = { ...beat(2), spec: { ...beat(2).spec, leaseDurationSeconds: 1_200 } }
  t.equal(silentAtMs(reported(renewed(health, lease, 0), aNode(), 0), settings), 1_500_000)
})

test('a Lease that was never renewed is not a heartbeat, and cannot be late', async (t) => {
  const { spec: _, ...empty } = beat(1)
  const { renewTime: _renewTime, ...unrenewed } = { ...beat(1).spec }
  const before = sight(aNode(), beat(1), at(0))
  for (const lease of [empty, { ...empty, spec: unrenewed }]) {
    t.match(renewed(before, lease, 5), { lastSeenMs: 0, renewTime: before.renewTime })
    t.equal(lateAtMs(sight(aNode(), lease, at(0)), settings), undefined)
  }
})
