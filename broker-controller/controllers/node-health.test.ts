import { test } from 'tap'
import { aLease, aNode } from '../../api/testing/builders.ts'
import {
  disconnectedAtMs,
  firstSight,
  type NodeHealth,
  seenLease,
  seenNode,
  silenceOf,
  silentAtMs,
} from './node-health.ts'

const settings = {
  nodeMonitorGracePeriodMs: 50_000,
  nodeStartupGracePeriodMs: 60_000,
  nodeConnectionLossDebounceMs: 5_000,
}
const at = (monotonicMs: number) => ({ monotonicMs, wallMs: Date.parse('2026-01-01T01:00:00Z') })
const beat = (second: number) => aLease({ renewTime: `2026-01-01T00:00:${String(second).padStart(2, '0')}.000000Z` })
const lost = aLease({ annotations: { 'bramble.dev/connection': 'lost' } })

function heartbeat(lastHeartbeatTime: string, status: 'True' | 'False' = 'True') {
  return aNode({ conditions: [{ type: 'Ready', status, lastHeartbeatTime }] })
}

test('a node that has reported gets a full grace at first sight, one that has not is as old as its object', async (t) => {
  t.equal(firstSight(aNode(), undefined, at(1_000)).heardMs, 1_000)
  t.equal(firstSight(aNode({ conditions: [] }), undefined, at(0)).heardMs, -3_600_000)
  const unborn = aNode({ conditions: [], metadata: { creationTimestamp: '2030-01-01T00:00:00Z' } })
  t.equal(firstSight(unborn, undefined, at(7)).heardMs, 7, 'a date that jumped back makes nobody old')
})

test('exactly at the grace a node is not yet silent', async (t) => {
  const health = firstSight(aNode(), undefined, at(0))
  t.equal(silenceOf(health, settings, 50_000), undefined)
  t.equal(silenceOf(health, settings, 50_001), 'silent')
  const fresh = seenLease(firstSight(aNode({ conditions: [] }), undefined, at(0)), beat(1), 0)
  t.equal(silentAtMs(fresh, settings), 60_000, 'the start-up grace until a status came')
})

test('a sign of life is a change, whatever times it carries', async (t) => {
  const health = firstSight(heartbeat('2026-01-01T00:00:10Z'), beat(10), at(0))
  t.equal(seenNode(health, heartbeat('2026-01-01T00:00:10Z'), 5).heardMs, 0, 'the same again is none')
  t.equal(seenNode(health, heartbeat('1970-01-01T00:00:00Z'), 5).heardMs, 5, 'a clock that woke up in 1970')
  t.equal(seenNode(health, aNode({ conditions: [] }), 5).heardMs, 5, 'Ready vanished')
  t.equal(seenLease(health, beat(10), 5).heardMs, 0)
  t.equal(seenLease(health, beat(20), 5).heardMs, 5)
  t.equal(seenLease(health, beat(0), 5).heardMs, 5, 'our own date was set back')
})

test('Ready changes when its status does', async (t) => {
  const health = firstSight(heartbeat('2026-01-01T00:00:10Z'), undefined, at(0))
  t.equal(seenNode(health, heartbeat('2026-01-01T00:00:20Z'), 5).readyChangedMs, 0)
  t.equal(seenNode(health, heartbeat('2026-01-01T00:00:20Z', 'False'), 5).readyChangedMs, 5)
})

test('a lost connection counts from when we learnt of it, until it is back or a sign of life outweighs it', async (t) => {
  const health: NodeHealth = { ...firstSight(aNode(), lost, at(0)), heardMs: 0 }
  const again = seenLease(health, lost, 3_000)
  t.equal(disconnectedAtMs(again, settings), 5_000)
  t.equal(silenceOf(again, settings, 5_000), undefined)
  t.equal(silenceOf(again, settings, 5_001), 'disconnected')
  t.equal(silenceOf(seenLease(again, beat(30), 4_000), settings, 9_000), undefined)
  const late = aLease({ renewTime: beat(40).spec?.renewTime ?? '', annotations: { 'bramble.dev/connection': 'lost' } })
  t.equal(silenceOf(seenLease(again, late, 4_000), settings, 9_000), undefined, 'the will of an old connection')
})
