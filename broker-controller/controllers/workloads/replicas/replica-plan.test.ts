import { test } from 'tap'
import { aPod } from '../../../../api/testing/builders.ts'
import { type CountingFacts, countReplicas, planReplicas, type ReplicaFacts, replicaStatus } from './replica-plan.ts'

const now = '2026-01-01T00:01:00Z'
const nowMs = Date.parse(now)
const ready = (since: string) => ({
  phase: 'Running' as const,
  conditions: [{ type: 'Ready', status: 'True' as const, lastTransitionTime: since }],
})

test('missing pods are created, surplus ones deleted, and with the wanted number nothing is done', async (t) => {
  t.same(planReplicas(3, 3), { step: 'none' })
  t.same(planReplicas(3, 1), { step: 'create', count: 2, isPartial: false })
  t.same(planReplicas(0, 0), { step: 'none' })
  t.same(planReplicas(1, 3), { step: 'delete', count: 2, isPartial: false })
})

test('at most 500 pods are created or deleted at once, and the next visit goes on', async (t) => {
  t.same(planReplicas(2_000_000_000, 1), { step: 'create', count: 500, isPartial: true })
  t.same(planReplicas(501, 1), { step: 'create', count: 500, isPartial: false })
  t.same(planReplicas(0, 501), { step: 'delete', count: 500, isPartial: true })
})

const counting = (over: Partial<CountingFacts> = {}): CountingFacts => ({
  templateLabels: { app: 'web' },
  minReadySeconds: 0,
  nowMs,
  ...over,
})
const none = { replicas: 0, fullyLabeled: 0, ready: 0, available: 0 }
const facts = (over: Partial<ReplicaFacts> = {}): ReplicaFacts => ({
  counts: none,
  wanted: 3,
  generation: 2,
  failure: undefined,
  now,
  ...over,
})

test('the status counts the pods, those that are ready, and those that have been so for long enough', async (t) => {
  const labels = { app: 'web' }
  const counted = [
    aPod({ name: 'a', labels: { ...labels, more: 'x' }, status: ready('2026-01-01T00:00:00Z') }),
    aPod({ name: 'b', labels, status: ready('2026-01-01T00:00:55Z') }),
    aPod({ name: 'c', labels: { app: 'debug' } }),
    aPod({ name: 'd' }),
    aPod({ name: 'e' }),
  ]
  const counts = await countReplicas(counted, counting({ minReadySeconds: 10 }))
  t.same(replicaStatus(undefined, facts({ counts })), {
    replicas: 5,
    fullyLabeledReplicas: 2,
    readyReplicas: 2,
    availableReplicas: 1,
    observedGeneration: 2,
  })
})

test('a count of nothing is left out, apart from that of the pods', async (t) => {
  t.same(replicaStatus(undefined, facts({ generation: undefined })), { replicas: 0 })
  t.match(await countReplicas([aPod()], counting({ templateLabels: undefined })), { fullyLabeled: 1 })
})

test('a failure is a condition that names what failed first, and ends with it', async (t) => {
  const failed = replicaStatus(undefined, facts({ failure: 'exceeded quota' }))
  const condition = { type: 'ReplicaFailure', status: 'True', lastTransitionTime: now }
  t.same(failed.conditions, [{ ...condition, reason: 'FailedCreate', message: 'exceeded quota' }])
  const again = replicaStatus(failed, facts({ failure: 'another', now: '2026-01-01T00:02:00Z' }))
  t.same(again.conditions, failed.conditions)
  t.equal(replicaStatus(failed, facts()).conditions, undefined)
  t.match(replicaStatus(undefined, facts({ counts: { ...none, replicas: 4 }, failure: 'held' })).conditions, [
    { reason: 'FailedDelete' },
  ])
  t.match(replicaStatus(undefined, facts({ counts: { ...none, replicas: 3 }, failure: 'held' })).conditions, [
    { reason: 'FailedDelete' },
  ])
})

test('conditions of others stay beside a failure', async (t) => {
  const mine = { type: 'Mine', status: 'True' } as const
  const before = { replicas: 0, conditions: [mine] }
  t.same(replicaStatus(before, facts()).conditions, [mine])
  t.match(replicaStatus(before, facts({ failure: 'x' })).conditions, [mine, { type: 'ReplicaFailure' }])
})
