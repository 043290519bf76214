import { test } from 'tap'
import type { Lease } from '../../../api/lease.ts'
import type { Node } from '../../../api/node.ts'
import { aLease, aNode } from '../../../api/testing/builders.ts'
import { type Absence, absenceFrom, absenceKept, absenceText, isExpectedLater, withAbsence } from './planned-absence.ts'

const settings = { plannedAbsenceLimitMs: 600_000 }
const now = { monotonicMs: 5_000, wallMs: Date.parse('2026-01-02T03:00:00Z') }
const inFiveMinutes = { ms: 305_000, time: '2026-01-02T03:05:00Z' }
const inTenMinutes = { ms: 605_000, time: '2026-01-02T03:10:00Z' }
const bareNode: Node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'pi-1' } }
const bareLease: Lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: 'pi-1' } }

const goodbye = (reason?: string, seconds?: string) =>
  aLease({
    annotations: {
      ...(reason !== undefined && { 'bramble.dev/connection-reason': reason }),
      ...(seconds !== undefined && { 'bramble.dev/expected-back-seconds': seconds }),
    },
  })

test('a goodbye holds evictions for the time it announces, at most the limit', async (t) => {
  const cases = [
    { seconds: '300', expectedBack: inFiveMinutes },
    { seconds: '600', expectedBack: inTenMinutes },
    { seconds: '86400', expectedBack: inTenMinutes },
    { seconds: '1e300', expectedBack: inTenMinutes },
    { seconds: '0', expectedBack: undefined },
    { seconds: '-300', expectedBack: undefined },
    { seconds: 'soon', expectedBack: undefined },
    { seconds: undefined, expectedBack: undefined },
  ]
  for (const { seconds, expectedBack } of cases) {
    const absence = absenceFrom(goodbye('reboot', seconds), undefined, now, settings)
    t.match(absence, { reason: 'reboot', expectedBack }, `${seconds} seconds`)
    t.equal(absence.expectedBack?.time, expectedBack?.time, `${seconds} seconds`)
  }
  const held = absenceFrom(goodbye('reboot', '300'), undefined, now, { plannedAbsenceLimitMs: 0 })
  t.equal(held.expectedBack, undefined, 'the limit 0 holds none')
})

test('a goodbye without a reason is still a goodbye', async (t) => {
  for (const lease of [goodbye(undefined, '300'), goodbye()]) {
    t.equal(absenceFrom(lease, undefined, now, settings).reason, 'no reason given')
  }
  t.match(absenceFrom(bareLease, undefined, now, settings), { reason: 'no reason given', expectedBack: undefined })
})

test('a goodbye counts from when it was received first; another one counts from its own time', async (t) => {
  const first = absenceFrom(goodbye('reboot', '300'), undefined, now, settings)
  const later = { monotonicMs: 65_000, wallMs: now.wallMs + 60_000 }
  t.same(absenceFrom(goodbye('reboot', '300'), first, later, settings).expectedBack, inFiveMinutes, 'the same again')
  t.equal(absenceFrom(goodbye('reboot', '300'), first, later, settings).reason, 'reboot')
  t.match(absenceFrom(goodbye('upgrade', '60'), first, later, settings), {
    reason: 'upgrade',
    expectedBack: { ms: 125_000, time: '2026-01-02T03:02:00Z' },
  })
  t.equal(absenceFrom(goodbye('reboot'), first, later, settings).expectedBack, undefined, 'without a time')
})

test('after a restart of the controller the goodbye on the Node continues, and the lease does not begin it again', async (t) => {
  const kept = absenceKept(withAbsenceUntil('2026-01-02T03:05:00Z'), now, settings)
  t.same(kept, { reason: 'reboot', goodbye: undefined, expectedBack: inFiveMinutes })
  const later = { monotonicMs: 65_000, wallMs: now.wallMs + 60_000 }
  const joined = absenceFrom(goodbye('reboot', '300'), kept, later, settings)
  t.same(joined.expectedBack, inFiveMinutes)
  t.same(absenceFrom(goodbye('reboot', '300'), joined, later, settings), joined)
  t.equal(absenceFrom(goodbye('upgrade', '60'), joined, later, settings).reason, 'upgrade')
})

test('a goodbye on the Node is held to the limit, and ends with its time', async (t) => {
  const cases = [
    { time: '2026-01-02T03:05:00Z', ms: 305_000 },
    { time: '2026-01-03T03:00:00Z', ms: 605_000 },
    { time: '2026-01-02T03:00:00Z', ms: undefined },
    { time: '2026-01-02T02:00:00Z', ms: undefined },
    { time: 'tomorrow', ms: undefined },
  ]
  for (const { time, ms } of cases) {
    const absence = absenceKept(withAbsenceUntil(time), now, settings)
    t.equal(absence?.expectedBack?.ms, ms, time)
    t.equal(absence?.reason, 'reboot', time)
  }
  t.equal(absenceKept(aNode(), now, settings), undefined)
  t.equal(absenceKept(bareNode, now, settings), undefined)
  const unnamed = aNode({ annotations: { 'bramble.dev/expected-back': '2026-01-02T03:05:00Z' } })
  t.equal(absenceKept(unnamed, now, settings)?.reason, 'no reason given')
})

test('a node is expected later until its time, the last millisecond included', async (t) => {
  const absence: Absence = { reason: 'reboot', goodbye: 'reboot 300', expectedBack: inFiveMinutes }
  t.equal(isExpectedLater(absence, 305_000), true)
  t.equal(isExpectedLater(absence, 305_001), false)
  t.equal(isExpectedLater({ ...absence, expectedBack: undefined }, 0), false)
  t.equal(isExpectedLater(undefined, 0), false)
})

test('the condition of an absent node names the reason and the time', async (t) => {
  const absence: Absence = { reason: 'reboot', goodbye: 'reboot 300', expectedBack: inFiveMinutes }
  t.equal(absenceText(absence), 'The node disconnected cleanly (reboot) and is expected back by 2026-01-02T03:05:00Z.')
  t.equal(absenceText({ ...absence, expectedBack: undefined }), 'The node disconnected cleanly (reboot).')
})

test('the goodbye on a Node is written once, replaced and removed without touching other annotations', async (t) => {
  const absence: Absence = { reason: 'reboot', goodbye: 'reboot 300', expectedBack: inFiveMinutes }
  const written = withAbsence(aNode({ annotations: { rack: '4' } }), absence)
  t.same(written?.metadata.annotations, {
    rack: '4',
    'bramble.dev/expected-back': '2026-01-02T03:05:00Z',
    'bramble.dev/goodbye-reason': 'reboot',
  })
  if (written === undefined) return
  t.equal(withAbsence(written, absence), undefined)
  t.match(withAbsence(written, { ...absence, reason: 'upgrade' })?.metadata.annotations, {
    'bramble.dev/goodbye-reason': 'upgrade',
  })
  t.match(withAbsence(written, { ...absence, expectedBack: inTenMinutes })?.metadata.annotations, {
    'bramble.dev/expected-back': '2026-01-02T03:10:00Z',
  })
  t.same(withAbsence(written, undefined)?.metadata.annotations, { rack: '4' })
  t.equal(withAbsence(bareNode, undefined), undefined)
  t.equal(withAbsence(bareNode, { ...absence, expectedBack: undefined }), undefined, 'without a time nothing is held')
  t.match(withAbsence(bareNode, absence)?.metadata.annotations, { 'bramble.dev/goodbye-reason': 'reboot' })
})

function withAbsenceUntil(time: string): Node {
  return aNode({ annotations: { 'bramble.dev/expected-back': time, 'bramble.dev/goodbye-reason': 'reboot' } })
}
