import { test } from 'tap'
import { shutdownEnding, shutdownRefusal } from '../../../api/node/node-shutdown.ts'
import type { Pod } from '../../../api/pod.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import type { PodEvent } from '../record/pod-events.ts'
import { newRecord, onAdmitted, onCleared, onEnded, onReported, type PodRecord } from '../record/pod-record.ts'
import { podRecords } from '../record/pod-records.ts'
import { podTermination } from './pod-termination.ts'

const pod = (uid: string, more: Parameters<typeof aPod>[0] = {}) => aPod({ name: uid, uid, ...more })
const failed = { phase: 'Failed' } as const
const running = onReported(onAdmitted(newRecord), { phase: 'Running', podIP: '10.244.1.5' }, '')

function termination(wanted: readonly Pod[], before: { readonly [uid: string]: PodRecord }) {
  const records = podRecords()
  const seen = { events: [] as PodEvent[], synced: [] as string[], saves: 0 }
  for (const [uid, record] of Object.entries(before)) {
    records.of(uid)
    records.update(uid, () => record)
  }
  const pods = podTermination({
    wanted: { all: new Map(wanted.map((one) => [one.metadata.uid ?? '', one])) },
    records,
    recordEvent: (_, event) => seen.events.push(event),
    save: () => seen.saves++,
    sync: (uid) => seen.synced.push(uid),
    clock: fakeClock(),
  })
  return { records, seen, pods }
}

test('active pods are those that were admitted and have not ended', async (t) => {
  const all = [pod('a'), pod('b'), pod('c'), pod('d', { status: failed })]
  const { pods } = termination(all, { a: running, b: newRecord, c: onEnded(running, failed), d: running, e: running })
  t.same(pods.active(), all.slice(0, 1))
})

test('a pod is held until it is cleared', async (t) => {
  const { records, pods } = termination([], { a: onEnded(running, failed), b: onCleared(running) })
  t.same(['a', 'b', 'c'].map(pods.holds), [true, false, false])
  const stop = new AbortController()
  await pods.stopped('b', stop.signal)
  await pods.stopped('c', stop.signal)
  let isStopped = false
  const waiting = pods.stopped('a', stop.signal).then(() => {
    isStopped = true
  })
  records.update('a', (record) => ({ ...record, graceSeconds: 1 }))
  await Promise.resolve()
  t.notOk(isStopped)
  records.update('a', onCleared)
  await waiting
  t.ok(isStopped)
})

test('a pod that is ended keeps what was reported, with the reason, and is synced', async (t) => {
  const { records, seen, pods } = termination([pod('a')], { a: running })
  const [reason, message, disruption] = ['Evicted', 'The node was low on resource: memory. ', 'why']
  pods.endPod('a', { reason, message, gracePeriodSeconds: 5, event: 'Warning', disruption })
  const lastTransitionTime = '2026-01-01T00:00:00Z'
  t.match(records.get('a'), {
    graceSeconds: 5,
    ended: {
      ...{ phase: 'Failed', reason, message, podIP: '10.244.1.5' },
      conditions: [{ type: 'DisruptionTarget', status: 'True', reason: 'TerminationByKubelet', lastTransitionTime }],
    },
  })
  t.same(seen, { events: [{ type: 'Warning', reason, message }], synced: ['a'], saves: 1 })
  pods.endPod('a', { reason: 'Other', message })
  pods.endPod('gone', { reason: 'Other', message })
  t.equal(records.get('a')?.ended?.reason, 'Evicted', 'it has ended')
  t.equal(seen.synced.length, 1)
})

test('an end without a type has no Event, and one without a disruption has no condition', async (t) => {
  const { records, seen, pods } = termination([pod('a')], { a: running })
  pods.endPod('a', { reason: 'Evicted', message: 'why' })
  t.same(seen.events, [])
  t.same(records.get('a')?.ended?.conditions, [])
})

test('the pods that a shutdown ended or rejected resume, and no others', async (t) => {
  const stopped = { ...failed, ...shutdownEnding }
  const { records, pods } = termination([pod('a'), pod('b'), pod('c'), pod('d', { restartPolicy: 'Never' })], {
    a: onEnded(running, stopped),
    b: onEnded(newRecord, { ...failed, ...shutdownRefusal }),
    c: onEnded(running, { ...failed, reason: 'Evicted' }),
    d: onEnded(running, stopped),
    e: { ...onEnded(running, stopped), pod: pod('e') },
    f: onEnded(running, stopped),
  })
  pods.resume()
  const over = [...records.entries].filter(([, { ended }]) => ended !== undefined).map(([uid]) => uid)
  t.same(over, ['c', 'd', 'f'], 'nothing is known of the last one')
})
