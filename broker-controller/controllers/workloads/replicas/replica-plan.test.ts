import { test } from 'tap'
import { aPod } from '../../../../api/testing/builders.ts'
import { planReplicas, type ReplicaFacts, replicaStatus } from './replica-plan.ts'

const now = '2026-01-01T00:01:00Z'
const nowMs = Date.parse(now)
const ready = (since: string) => ({
  phase: 'Running' as const,
  conditions: [{ type: 'Ready', status: 'True' as const, lastTransitionTime: since }],
})
const pods = (count: number) => Array.from({ length: count }, (_, index) => aPod({ name: `web-${index}` }))

test('missing pods are created, and with the wanted number nothing is done', async (t) => {
  t.same(planReplicas(3, pods(3), undefined, nowMs), { step: 'none' })
  t.same(planReplicas(3, pods(1), undefined, nowMs), { step: 'create', count: 2 })
  t.same(planReplicas(0, [], undefined, nowMs), { step: 'none' })
})

test('at most 500 pods are created or deleted at once', async (t) => {
  t.same(planReplicas(2000, pods(1), undefined, nowMs), { step: 'create', count: 500 })
  t.same(planReplicas(501, pods(1), undefined, nowMs), { step: 'create', count: 500 })
  t.match(planReplicas(0, pods(501), undefined, nowMs), { step: 'delete', pods: { length: 500 } })
})

test('of too many pods those are deleted that serve least', async (t) => {
  const serving = aPod({ name: 'serving', nodeName: 'pi-1', status: ready('2026-01-01T00:00:00Z') })
  const starting = aPod({ name: 'starting', nodeName: 'pi-1' })
  t.match(planReplicas(1, [serving, starting], undefined, nowMs), {
    step: 'delete',
    pods: [{ metadata: starting.metadata }],
  })
})

test('a node with many pods of the same Deployment loses one first, also where they are of another ReplicaSet', async (t) => {
  const on = (name: string, nodeName: string) => aPod({ name, nodeName, status: ready('2026-01-01T00:00:00Z') })
  const own = [on('a', 'pi-1'), on('b', 'pi-2')]
  const deletedWith = (related: readonly ReturnType<typeof on>[]) => {
    const plan = planReplicas(1, own, [...own, ...related], nowMs)
    return plan.step === 'delete' ? plan.pods.map(({ metadata }) => metadata.name) : []
  }
  t.same(deletedWith([on('other', 'pi-1')]), ['a'])
  t.same(deletedWith([on('other', 'pi-2')]), ['b'])
})

const facts = (over: Partial<ReplicaFacts> = {}): ReplicaFacts => ({
  pods: [],
  wanted: 3,
  templateLabels: { app: 'web' },
  minReadySeconds: 0,
  generation: 2,
  failure: undefined,
  nowMs,
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
  t.same(replicaStatus(undefined, facts({ pods: counted, minReadySeconds: 10 })), {
    replicas: 5,
    fullyLabeledReplicas: 2,
    readyReplicas: 2,
    availableReplicas: 1,
    observedGeneration: 2,
  })
})

test('a count of nothing is left out, apart from that of the pods', async (t) => {
  t.same(replicaStatus(undefined, facts({ generation: undefined })), { replicas: 0 })
  t.match(replicaStatus(undefined, facts({ pods: [aPod()], templateLabels: undefined })), { fullyLabeledReplicas: 1 })
})

test('a failure is a condition that names what failed first, and ends with it', async (t) => {
  const failed = replicaStatus(undefined, facts({ failure: 'exceeded quota' }))
  const condition = { type: 'ReplicaFailure', status: 'True', lastTransitionTime: now }
  t.same(failed.conditions, [{ ...condition, reason: 'FailedCreate', message: 'exceeded quota' }])
  const again = replicaStatus(failed, facts({ failure: 'another', now: '2026-01-01T00:02:00Z' }))
  t.same(again.conditions, failed.conditions)
  t.equal(replicaStatus(failed, facts()).conditions, undefined)
  t.match(replicaStatus(undefined, facts({ pods: pods(4), failure: 'held' })).conditions, [{ reason: 'FailedDelete' }])
  t.match(replicaStatus(undefined, facts({ pods: pods(3), failure: 'held' })).conditions, [{ reason: 'FailedDelete' }])
})

test('conditions of others stay beside a failure', async (t) => {
  const mine = { type: 'Mine', status: 'True' } as const
  const before = { replicas: 0, conditions: [mine] }
  t.same(replicaStatus(before, facts()).conditions, [mine])
  t.match(replicaStatus(before, facts({ failure: 'x' })).conditions, [mine, { type: 'ReplicaFailure' }])
})
