import { test } from 'tap'
import type { ContainerStatus, PodSpec, PodStatus } from '../../../../api/pod.ts'
import { aPod } from '../../../../api/testing/builders.ts'
import { completionIndexOf, finishedAtMs, indexFailuresOf, isFailedPod, validIndexOf } from './job-pods.ts'

const indexed = (text: string) => aPod({ annotations: { 'batch.kubernetes.io/job-completion-index': text } })
const template = { spec: { containers: [] } }
const job = { spec: { template, completions: 5 } }

test('an index is a whole number that the Job has', async (t) => {
  t.equal(completionIndexOf(indexed('7')), 7)
  for (const text of ['-1', 'x', '', '1.5']) t.equal(completionIndexOf(indexed(text)), undefined)
  t.equal(completionIndexOf(aPod()), undefined)
  t.equal(validIndexOf(indexed('4'), job), 4)
  t.equal(validIndexOf(indexed('5'), job), undefined)
})

test('counts that somebody wrote wrong are 0', async (t) => {
  const failures = (text: string) =>
    indexFailuresOf(aPod({ annotations: { 'batch.kubernetes.io/job-index-failure-count': text } }))
  t.equal(failures('3'), 3)
  for (const text of ['-3', '2147483648', 'many']) t.equal(failures(text), 0)
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
})
