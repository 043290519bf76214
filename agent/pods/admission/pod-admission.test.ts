import { test } from 'tap'
import type { Pod, PodStatus } from '../../../api/pod.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import type { Ending } from '../../eviction/evictable-pods.ts'
import { newRecord, onAdmitted, onEnded, type PodRecord } from '../record/pod-record.ts'
import { podRecords } from '../record/pod-records.ts'
import { type Host, podAdmission } from './pod-admission.ts'

const host: Host = {
  allocatable: () => ({ cpu: '1', memory: '1Gi', pods: '10' }),
  pressures: () => [],
  isShuttingDown: () => false,
  kernelLimits: () => undefined,
}
const pod = (name: string, cpu: string, more: Parameters<typeof aPod>[0] = {}) =>
  aPod({ name, uid: name, requests: { cpu }, ...more })

/** `pods`: the oldest first. */
function admission(pods: readonly Pod[], { node = host, before = {} as { readonly [uid: string]: PodRecord } } = {}) {
  const records = podRecords()
  const seen = { reports: [] as string[], events: [] as string[], ended: [] as [string, Ending][], saves: 0 }
  for (const [uid, record] of Object.entries(before)) {
    records.of(uid)
    records.update(uid, () => record)
  }
  const all = new Map(pods.map((one) => [one.metadata.uid ?? '', one]))
  podAdmission({
    wanted: { all, oldestFirst: (uids) => [...uids] },
    records,
    statuses: { report: (uid, _, { phase, message }: PodStatus) => seen.reports.push(`${uid} ${phase}: ${message}`) },
    termination: { endPod: (uid, ending) => seen.ended.push([uid, ending]) },
    node,
    recordEvent: (_, { type, reason, message }) => seen.events.push(`${type} ${reason}: ${message}`),
    save: () => seen.saves++,
    clock: fakeClock(),
  }).admitNew()
  const stateOf = (uid: string) => {
    const { admitted, ended } = records.of(uid)
    return ended === undefined ? (admitted ? 'admitted' : 'new') : (ended.reason ?? 'ended')
  }
  return { ...seen, states: pods.map(({ metadata }) => stateOf(metadata.uid ?? '')) }
}

test('pods are admitted while there is room, and a rejected one has an Event and a status', async (t) => {
  const { states, reports, events, saves } = admission([pod('a', '700m'), pod('b', '700m'), pod('c', '300m')])
  t.same(states, ['admitted', 'OutOfcpu', 'admitted'])
  const why = "Node didn't have enough resource: cpu, requested: 700, used: 700, capacity: 1000"
  t.same(events, [`Warning OutOfcpu: ${why}`])
  t.same(reports, [`b Failed: Pod was rejected: ${why}`])
  t.equal(saves, 1)
})

test('a pod that was admitted, has ended or is deleted is not decided again', async (t) => {
  const full = { ...host, isShuttingDown: () => true }
  const leaving = pod('d', '1', { metadata: { uid: 'd', deletionTimestamp: '2026-01-01T00:00:00Z' } })
  const over = pod('c', '1', { status: { phase: 'Succeeded' } })
  const before = { a: onAdmitted(newRecord), b: onEnded(newRecord, { phase: 'Failed', reason: 'Evicted' }) }
  const decided = admission([pod('a', '1'), pod('b', '1'), over, leaving, pod('e', '1')], { node: full, before })
  t.same(decided.states, ['admitted', 'Evicted', 'new', 'new', 'NodeShutdown'])
})

test('pods that have ended use nothing; those that are not desired use what they had until they are gone', async (t) => {
  const gone = { ...onAdmitted(newRecord), pod: pod('gone', '700m') }
  t.same(admission([pod('a', '700m')], { before: { gone } }).states, ['OutOfcpu'])
  t.same(admission([pod('a', '700m')], { before: { gone: onEnded(gone, { phase: 'Failed' }) } }).states, ['admitted'])
  t.same(admission([pod('a', '700m')], { before: { gone: { ...gone, admitted: false } } }).states, ['admitted'])
})

test('a critical pod ends others to have room', async (t) => {
  const critical = pod('critical', '700m', { priority: 2_000_000_000 })
  const { states, ended } = admission([pod('a', '700m'), critical])
  t.same(states, ['admitted', 'admitted'])
  t.same(ended, [
    [
      'a',
      {
        ...{ reason: 'Preempting', message: 'Preempted in order to admit critical pod', event: 'Warning' },
        disruption: 'Pod was preempted by Kubelet to accommodate a critical pod.',
      },
    ],
  ])
})
