import { test } from 'tap'
import type { Node } from '../../../api/node.ts'
import { aNode, aPod, type PodOverrides } from '../../../api/testing/builders.ts'
import { finished as allSteps } from '../../../daemon/watchdog/steps.ts'
import { mostReadInStep } from '../../testing/longest-step.ts'
import { type CleanupFacts, type CleanupReason, endedPod, planCleanup } from './pod-cleanup.ts'

const now = '2026-01-02T03:04:05Z'
const outOfService = { key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' } as const
const nodes: readonly Node[] = [
  aNode({ name: 'well' }),
  aNode({ name: 'silent', ready: 'Unknown' }),
  aNode({ name: 'written-off', ready: 'Unknown', taints: [outOfService] }),
  aNode({ name: 'back-again', taints: [outOfService] }),
]
const facts = {
  node: (name: string) => nodes.find(({ metadata }) => metadata.name === name),
  missing: new Set(['gone']),
  terminatedPodGCThreshold: 100,
}
const planned = (given: CleanupFacts) => allSteps(planCleanup(given))
const born = (creationTimestamp: string) => ({ creationTimestamp })
const leaving = { deletionTimestamp: '2026-01-01T00:00:30Z', deletionGracePeriodSeconds: 30 }

/** With the name in its metadata: the builder's `metadata` replaces what it made of `name`. */
function pod(name: string, { metadata, ...over }: PodOverrides = {}) {
  const made = aPod({ name, ...over })
  return { ...made, metadata: { ...made.metadata, ...metadata } }
}

test('a pod is removed when neither its node nor another controller will', async (t) => {
  const cases: readonly { title: string; pod: PodOverrides; reason: CleanupReason | undefined }[] = [
    { title: 'waits for a node', pod: {}, reason: undefined },
    { title: 'deleted before it was placed', pod: { metadata: leaving }, reason: 'never-placed' },
    { title: 'runs', pod: { nodeName: 'well' }, reason: undefined },
    { title: 'its node ends it', pod: { nodeName: 'well', metadata: leaving }, reason: undefined },
    { title: 'its node may come back', pod: { nodeName: 'silent', metadata: leaving }, reason: undefined },
    {
      title: 'its node will not confirm',
      pod: { nodeName: 'written-off', metadata: leaving },
      reason: 'out-of-service',
    },
    { title: 'not deleted', pod: { nodeName: 'written-off' }, reason: undefined },
    { title: 'its node is Ready again', pod: { nodeName: 'back-again', metadata: leaving }, reason: undefined },
    { title: 'its node is missing', pod: { nodeName: 'gone' }, reason: 'orphan' },
    { title: 'deleted, its node is missing', pod: { nodeName: 'gone', metadata: leaving }, reason: 'orphan' },
    { title: 'ended, its node is missing', pod: { nodeName: 'gone', phase: 'Succeeded' }, reason: 'orphan' },
    { title: 'its node is not missing for long', pod: { nodeName: 'new', metadata: leaving }, reason: undefined },
  ]
  for (const { title, pod: over, reason } of cases) {
    const one = pod('one', over)
    const wanted = reason === undefined ? [] : [{ pod: one, reason }]
    t.same(planned({ ...facts, pods: [one] }), wanted, title)
  }
})

test('beyond the threshold finished pods go, the evicted first, then the oldest', async (t) => {
  const pods = [
    pod('new-job', { phase: 'Succeeded', metadata: born('2026-01-01T05:00:00Z') }),
    pod('old-job', { phase: 'Succeeded', metadata: born('2026-01-01T01:00:00Z') }),
    pod('runs', { phase: 'Running', nodeName: 'well', metadata: born('2025-01-01T00:00:00Z') }),
    pod('evicted', { phase: 'Failed', status: { reason: 'Evicted' }, metadata: born('2026-01-01T06:00:00Z') }),
    pod('failed', { phase: 'Failed', metadata: born('2026-01-01T03:00:00Z') }),
    pod('evicted-before', { phase: 'Failed', status: { reason: 'Evicted' }, metadata: born('2026-01-01T04:00:00Z') }),
  ]
  const order = ['evicted-before', 'evicted', 'old-job', 'failed', 'new-job']
  const removed = (terminatedPodGCThreshold: number) => planned({ ...facts, pods, terminatedPodGCThreshold })
  for (const [count] of order.entries()) {
    t.same(
      removed(order.length - count).map(({ pod, reason }) => `${pod.metadata.name} ${reason}`),
      order.slice(0, count).map((name) => `${name} too-many-finished`),
      `${count} too many`,
    )
  }
  t.equal(removed(6).length, 0, 'fewer than the threshold')
  for (const all of [0, -1]) t.equal(removed(all).length, 0, `a threshold of ${all} keeps all`)
})

test('a finished pod that goes anyway is not counted as one to keep', async (t) => {
  const finished = (name: string, nodeName: string) => pod(name, { phase: 'Succeeded', nodeName })
  const pods = [finished('lost', 'gone'), finished('kept', 'well')]
  const plan = planned({ ...facts, pods, terminatedPodGCThreshold: 1 })
  t.same(
    plan.map(({ pod, reason }) => [pod.metadata.name, reason]),
    [['lost', 'orphan']],
  )
  const both = planned({ ...facts, pods: [...pods, finished('older', 'well')], terminatedPodGCThreshold: 1 })
  t.same(
    both.map(({ reason }) => reason),
    ['orphan', 'too-many-finished'],
  )
})

test('a pod that has not ended becomes Failed; an orphan gets the condition of Kubernetes’ pod garbage collector', async (t) => {
  const status = { phase: 'Running', hostIP: '192.0.2.1' } as const
  const running = pod('a', { status })
  for (const reason of ['out-of-service', 'never-placed'] as const) {
    t.same(endedPod(running, reason, now)?.status, { ...status, phase: 'Failed' }, reason)
  }
  const message = 'PodGC: node no longer exists'
  const condition = { type: 'DisruptionTarget', status: 'True', reason: 'DeletionByPodGC', message } as const
  t.same(endedPod(running, 'orphan', now)?.status, {
    ...status,
    phase: 'Failed',
    conditions: [{ ...condition, lastTransitionTime: now }],
  })
  const marked = pod('a', { status: { ...status, conditions: [{ ...condition, lastTransitionTime: 'before' }] } })
  t.match(endedPod(marked, 'orphan', now)?.status, { phase: 'Failed', conditions: [{ lastTransitionTime: 'before' }] })
  for (const phase of ['Succeeded', 'Failed'] as const) t.equal(endedPod(pod('a', { phase }), 'orphan', now), undefined)
})

test('no step of a plan reads many pods', async (t) => {
  const pods = Array.from({ length: 4_000 }, (_, at) => pod(`p-${at}`, { phase: 'Succeeded', nodeName: 'well' }))
  const most = mostReadInStep(pods, (found) => planCleanup({ ...facts, pods: found }))
  t.ok(most <= 100, `${most} reads`)
})
