import { test } from 'tap'
import type { ContainerStatus, PodSpec, PodStatus } from '../../../../api/pod.ts'
import { aPod } from '../../../../api/testing/builders.ts'
import {
  completionIndexOf,
  finishedAtMs,
  hasLimitPerIndex,
  ignoredIndexFailuresOf,
  indexFailuresOf,
  isFailedPod,
  isTerminatingPod,
  isTracked,
  validIndexOf,
} from './job-pods.ts'

const indexed = (text: string) => aPod({ annotations: { 'batch.kubernetes.io/job-completion-index': text } })
const template = { spec: { containers: [] } }
const job = { spec: { template, completions: 5 } }

test('an index is a whole number that the Job has', async (t) => {
  t.equal(completionIndexOf(indexed('7')), 7)
  t.equal(completionIndexOf(indexed('12')), 12)
  t.equal(completionIndexOf(indexed('+7')), 7, 'as Go reads numbers')
  for (const text of ['-1', 'x', '', '1.5', '7x', 'x7', '12345678901234567'])
    t.equal(completionIndexOf(indexed(text)), undefined)
  t.equal(completionIndexOf(aPod()), undefined)
  t.equal(validIndexOf(indexed('4'), job), 4)
  t.equal(validIndexOf(indexed('5'), job), undefined)
  t.equal(validIndexOf(indexed('x'), job), undefined)
  t.equal(validIndexOf(indexed('0'), { spec: { template } }), undefined)
})

test('counts that somebody wrote wrong are 0', async (t) => {
  const failures = (text: string) =>
    indexFailuresOf(aPod({ annotations: { 'batch.kubernetes.io/job-index-failure-count': text } }))
  t.same([failures('3'), failures('12'), failures('2147483647')], [3, 12, 2 ** 31 - 1])
  t.equal(failures('+3'), 3)
  t.equal(indexFailuresOf(aPod()), 0)
  const ignored = { 'batch.kubernetes.io/job-index-ignored-failure-count': '4' }
  t.equal(ignoredIndexFailuresOf(aPod({ annotations: ignored })), 4)
  for (const text of ['-3', '2147483648', 'many', '3x', 'x3']) t.equal(failures(text), 0)
})

test('a pod is counted by its Job while it has the finalizer', async (t) => {
  const held = (...finalizers: readonly string[]) => isTracked(aPod({ metadata: { finalizers } }))
  t.same([held('batch.kubernetes.io/job-tracking'), held('a', 'batch.kubernetes.io/job-tracking')], [true, true])
  t.same([held('a'), held(), isTracked(aPod())], [false, false, false])
})

test('a pod is leaving while it is being deleted and has not ended', async (t) => {
  const metadata = { deletionTimestamp: '2026-01-01T00:00:00Z' }
  t.equal(isTerminatingPod(aPod({ phase: 'Running', metadata })), true)
  t.equal(isTerminatingPod(aPod({ phase: 'Running' })), false)
  t.equal(isTerminatingPod(aPod({ phase: 'Failed', metadata })), false)
})

test('only an indexed Job limits the failures of each index', async (t) => {
  const limited = (completionMode: string, backoffLimitPerIndex?: number) =>
    hasLimitPerIndex({
      spec: { template, completionMode, ...(backoffLimitPerIndex !== undefined && { backoffLimitPerIndex }) },
    })
  t.same([limited('Indexed', 0), limited('Indexed'), limited('NonIndexed', 1)], [true, false, false])
})

test('a pod that is being deleted has failed, unless only those that ended are replaced', async (t) => {
  const leaving = aPod({ phase: 'Running', metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } })
  t.equal(isFailedPod(leaving, job), true)
  t.equal(isFailedPod(leaving, { spec: { ...job.spec, podReplacementPolicy: 'Failed' } }), false)
  t.equal(isFailedPod(leaving, { spec: { ...job.spec, podFailurePolicy: {} } }), false)
  t.equal(isFailedPod(aPod({ phase: 'Failed' }), { spec: { ...job.spec, podReplacementPolicy: 'Failed' } }), true)
  const done = aPod({ phase: 'Succeeded', metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } })
  t.equal(isFailedPod(done, job), false)
  t.equal(isFailedPod(aPod({ phase: 'Running' }), job), false)
  const { status: _, ...unseen } = aPod()
  t.equal(isFailedPod(unseen, job), false)
  t.equal(isFailedPod({ ...unseen, metadata: leaving.metadata }, job), true)
})

test('a pod ended with its last container, or else when its conditions and its metadata state', async (t) => {
  const time = (second: number) => `2026-01-01T00:00:0${second}Z`
  const ended = (name: string, second?: number): ContainerStatus => ({
    name,
    ready: false,
    restartCount: 0,
    image: '',
    imageID: '',
    ...(second !== undefined && { state: { terminated: { exitCode: 1, finishedAt: time(second) } } }),
  })
  const second = (status: PodStatus, spec: Partial<PodSpec> = {}, more = {}) =>
    (finishedAtMs(aPod({ status, spec, metadata: { creationTimestamp: time(0), ...more } })) - Date.parse(time(0))) /
    1000
  t.equal(second({ containerStatuses: [ended('a', 3), ended('b', 5)] }), 5)
  const sidecar = { name: 's', image: 's:1', restartPolicy: 'Always' }
  const withInit = { containerStatuses: [ended('a', 3)], initContainerStatuses: [ended('s', 7), ended('i', 9)] }
  t.equal(second(withInit, { initContainers: [sidecar, { name: 'i', image: 'i:1' }] }), 7)
  const unready = [{ type: 'Ready', status: 'False', lastTransitionTime: time(4) } as const]
  t.equal(second({ containerStatuses: [ended('a', 3), ended('b')], conditions: unready }), 4)
  t.equal(second({}, {}, { deletionTimestamp: time(9), deletionGracePeriodSeconds: 3 }), 6)
  t.equal(second({}), 0)
  t.equal(second({ containerStatuses: [{ ...ended('a'), state: { running: {} } }], conditions: unready }), 4)
  const gone = { deletionTimestamp: time(9) }
  t.equal(second({ conditions: [{ type: 'Ready', status: 'False' }] }, {}, gone), 9, 'since when is not known')
  const ready = [{ type: 'Ready', status: 'True', lastTransitionTime: time(4) } as const]
  t.equal(second({ conditions: ready }, {}, gone), 9)
  t.equal(second({ containerStatuses: [ended('b'), ended('a', 3)], conditions: unready }), 4)
  t.equal(second({ containerStatuses: [ended('a', 3)], initContainerStatuses: [ended('i', 9)] }), 3)
  const { status: _, ...unseen } = aPod({ metadata: { creationTimestamp: time(2) } })
  t.equal(finishedAtMs(unseen), Date.parse(time(2)))
})
