import { test } from 'tap'
import { aPod, type PodOverrides } from '../../../api/testing/builders.ts'
import { desiredPods, hasSamePods, projectPod } from './desired-pods.ts'

test('of the pods of a node only those that changed are looked at', async (t) => {
  const [same, other] = [aPod({ name: 'a', uid: 'u1' }), aPod({ name: 'b', uid: 'u2' })]
  const first = desiredPods([same, other], new Map())
  const restarted = { ...other, status: { phase: 'Running' } } as const
  const second = desiredPods([same, restarted], first)
  t.equal(second.get('u1'), first.get('u1'))
  t.equal(second.get('u2')?.source, restarted)
  t.equal(second.get('u2')?.pod, first.get('u2')?.pod)
  t.ok(hasSamePods(second, first))
})

test('a node receives the terminal phase of a pod, and no other status', async (t) => {
  const running = aPod({ phase: 'Running', status: { podIP: '10.0.0.1' } })
  t.equal(projectPod(running).status, undefined)
  const failed = aPod({ phase: 'Failed', status: { reason: 'Evicted', message: 'because', podIP: '10.0.0.1' } })
  t.same(projectPod(failed).status, { phase: 'Failed', reason: 'Evicted', message: 'because' })
  const { metadata } = projectPod(aPod({ metadata: { managedFields: [], finalizers: ['a/b'], generation: 3 } }))
  t.same(Object.keys(metadata), ['name', 'namespace', 'uid', 'resourceVersion', 'creationTimestamp'])
})

test('a node receives the conditions of a pod’s readiness gates, and nothing else of its status', async (t) => {
  const conditions = [
    { type: 'example.com/a', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' },
    { type: 'Ready', status: 'False' },
  ] as const
  const gated = aPod({ spec: { readinessGates: [{ conditionType: 'example.com/a' }] }, status: { conditions } })
  t.same(projectPod(gated).status, { conditions: [{ type: 'example.com/a', status: 'True' }] })
  t.equal(projectPod(aPod({ status: { conditions } })).status, undefined)
})

test('a node receives the metadata by which it runs and ends a pod', async (t) => {
  const ownerReferences = [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: 'rs', controller: true }]
  const sent = {
    ...{ labels: { app: 'web' }, annotations: { 'example.com/note': 'a' }, ownerReferences },
    ...{ deletionTimestamp: '2026-01-01T00:00:30Z', deletionGracePeriodSeconds: 0 },
  }
  const { metadata } = projectPod(aPod({ metadata: sent }))
  t.match(metadata, sent)
})

test('a pod is published again when anything changes that its node reads', async (t) => {
  const gates = { readinessGates: [{ conditionType: 'example.com/a' }] }
  const gate = (status: 'True' | 'False', lastTransitionTime: string): PodOverrides => ({
    spec: gates,
    status: { conditions: [{ type: 'example.com/a', status, lastTransitionTime }] },
  })
  const version = { metadata: { resourceVersion: '2' } }
  const finalizers = { metadata: { finalizers: ['example.com/hold'] } }
  const cases: readonly (readonly [title: string, before: PodOverrides, after: PodOverrides, isSent: boolean])[] = [
    ['another version', {}, version, false],
    ['a status of the node', {}, { phase: 'Running', status: { podIP: '192.0.2.7' }, ...version }, false],
    ['a finalizer', {}, finalizers, false],
    ['a label', {}, { labels: { app: 'web' } }, true],
    ['a deletion', {}, { metadata: { deletionTimestamp: '2026-01-01T00:00:30Z' } }, true],
    ['an image', {}, { image: 'busybox:1.37' }, true],
    ['its end', { phase: 'Running' }, { phase: 'Succeeded' }, true],
    ['another reason of its end', { phase: 'Failed' }, { phase: 'Failed', status: { reason: 'Evicted' } }, true],
    ['a gate that is open', gate('False', ''), gate('True', ''), true],
    [
      'a gate that was written again',
      gate('True', '2026-01-01T00:00:00Z'),
      gate('True', '2026-01-02T00:00:00Z'),
      false,
    ],
  ]
  for (const [title, before, after, isSent] of cases) {
    const earlier = projectPod(aPod(before))
    t.equal(projectPod(aPod(after), earlier) !== earlier, isSent, title)
  }
})

test('the pods of a node are in the order of their names, whatever order the store has', async (t) => {
  const pods = [aPod({ name: 'b' }), aPod({ name: 'a' }), aPod({ name: 'z', namespace: 'batch' })]
  const uids = (some: typeof pods) => [...desiredPods(some, new Map()).keys()]
  t.same(uids(pods), ['uid-of-z', 'uid-of-a', 'uid-of-b'])
  t.same(uids(pods.toReversed()), uids(pods))
})

test('pods that come, go or change are other pods than before', async (t) => {
  const [a, b] = [aPod({ name: 'a' }), aPod({ name: 'b' })]
  const first = desiredPods([a, b], new Map())
  const isSame = (...pods: readonly (typeof a)[]) => hasSamePods(desiredPods(pods, first), first)
  t.same([isSame(a, b), isSame(b, a), isSame(a), isSame(a, b, aPod({ name: 'c' }))], [true, true, false, false])
  t.equal(isSame(a, aPod({ name: 'b', labels: { app: 'web' } })), false)
  t.equal(isSame(a, aPod({ name: 'b', uid: 'another' })), false, 'made again under its name')
  t.equal(hasSamePods(first, undefined), false)
})
