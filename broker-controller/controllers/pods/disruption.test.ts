import { test } from 'tap'
import type { PodDisruptionBudget } from '../../../api/pod-disruption-budget.ts'
import { aBudget, aPod } from '../../../api/testing/builders.ts'
import type { StoredPod } from '../../store/store.ts'
import { budgetPods } from './budget-pods.ts'
import { countBudget, countsByScale, countsDifferently, withStatus } from './disruption.ts'

const now = '2026-01-01T00:10:00Z'
const nowMs = Date.parse(now)
const pods = (count: number, { ready = count }: { ready?: number } = {}): readonly StoredPod[] =>
  Array.from({ length: count }, (_, index) => {
    const conditions = [{ type: 'Ready', status: index < ready ? 'True' : 'False' } as const]
    return aPod({ name: `web-${index}`, labels: { app: 'web' }, nodeName: 'pi-1', status: { conditions } })
  })
const countOf = (
  budget: PodDisruptionBudget,
  of: readonly StoredPod[],
  ...rest: [nowMs: number, now: string, wanted?: number]
) => {
  const all = budgetPods()
  for (const pod of of) all.set(pod)
  return countBudget(budget, all, ...rest)
}
const counted = (spec: Parameters<typeof aBudget>[0], of: readonly StoredPod[]) =>
  countOf(aBudget(spec), of, nowMs, now)

test('what may be disrupted is what is well beyond what must be', async (t) => {
  const cases: readonly [share: object, all: number, ready: number, desired: number, allowed: number][] = [
    [{ minAvailable: 2 }, 3, 3, 2, 1],
    [{ minAvailable: 2 }, 3, 2, 2, 0],
    [{ minAvailable: 2 }, 3, 0, 2, 0],
    [{ minAvailable: '50%' }, 7, 7, 4, 3],
    [{ minAvailable: '100%' }, 3, 3, 3, 0],
    [{ maxUnavailable: 1 }, 3, 3, 2, 1],
    [{ maxUnavailable: 5 }, 3, 3, 0, 3],
    [{ maxUnavailable: '30%' }, 3, 3, 2, 1],
    [{ maxUnavailable: '0%' }, 3, 3, 3, 0],
    [{ maxUnavailable: 1 }, 0, 0, 0, 0],
    [{ minAvailable: 0 }, 0, 0, 0, 0],
  ]
  for (const [spec, all, ready, desiredHealthy, disruptionsAllowed] of cases) {
    t.match(
      counted({ spec }, pods(all, { ready })).status,
      { currentHealthy: ready, expectedPods: all, desiredHealthy, disruptionsAllowed, observedGeneration: 1 },
      JSON.stringify({ spec, all, ready }),
    )
  }
})

test('a pod that is leaving, or was allowed to a moment ago, is not counted as well', async (t) => {
  const [first, second, ...others] = pods(4)
  if (first === undefined || second === undefined) return
  const leaving = { ...first, metadata: { ...first.metadata, deletionTimestamp: now } }
  const granted = '2026-01-01T00:09:00Z'
  const status = { disruptedPods: { 'web-0': granted, 'web-1': granted, 'web-9': granted } }
  const count = counted({ spec: { minAvailable: 1 }, status }, [leaving, second, ...others])
  t.match(count.status, { currentHealthy: 2, expectedPods: 4, disruptionsAllowed: 1 })
  t.same(count.status.disruptedPods, { 'web-1': granted }, 'of the others it is known that they leave, or have left')
  t.equal(count.lookAgainMs, Date.parse('2026-01-01T00:11:00Z'))
})

test('a pod that was allowed to leave and did not counts again after two minutes', async (t) => {
  const status = { disruptedPods: { 'web-0': '2026-01-01T00:08:00Z' } }
  const count = counted({ spec: { minAvailable: 1 }, status }, pods(2))
  t.match(count, { notDeleted: ['web-0'], lookAgainMs: undefined, status: { currentHealthy: 2 } })
  t.equal(count.status.disruptedPods, undefined)
})

test('the condition keeps since when, and a status counted again is the same', async (t) => {
  const budget = aBudget({ spec: { minAvailable: 1 } })
  const first = withStatus(budget, countOf(budget, pods(2), nowMs, now).status)
  t.match(first?.status?.conditions, [
    { type: 'DisruptionAllowed', status: 'True', reason: 'SufficientPods', lastTransitionTime: now },
  ])
  if (first === undefined) return
  const later = nowMs + 60_000
  t.equal(withStatus(first, countOf(first, pods(2), later, 'later').status), undefined)
  t.match(countOf(first, pods(1), later, 'later').status.conditions, [
    { status: 'False', reason: 'InsufficientPods', lastTransitionTime: 'later' },
  ])
})

test('a granted eviction is awaited for exactly two minutes, and the earliest end is looked at next', async (t) => {
  const at = (ms: number) => new Date(nowMs - 120_000 + ms).toISOString()
  const status = { disruptedPods: { 'web-0': at(0), 'web-1': at(7_000), 'web-2': at(5_000) } }
  const count = counted({ spec: { minAvailable: 1 }, status }, pods(4))
  t.same(count.notDeleted, ['web-0'])
  t.equal(count.lookAgainMs, nowMs + 5_000)
  t.equal(count.status.currentHealthy, 2)
  t.same(count.status.disruptedPods, { 'web-1': at(7_000), 'web-2': at(5_000) })
})

test('a pod is counted differently when it becomes well or ill, begins to leave, or is another of its name', async (t) => {
  const [well, ill] = pods(2, { ready: 1 })
  if (well === undefined || ill === undefined) return t.fail('no pods')
  const leaving = { ...ill, metadata: { ...ill.metadata, deletionTimestamp: now } }
  const another = { ...ill, metadata: { ...ill.metadata, uid: 'another' } }
  const labelled = { ...ill, metadata: { ...ill.metadata, labels: { app: 'web', tier: 'front' } } }
  t.notOk(countsDifferently(ill, ill))
  t.notOk(countsDifferently(labelled, ill))
  t.ok(countsDifferently({ ...well, metadata: ill.metadata }, ill))
  t.ok(countsDifferently(leaving, ill))
  t.ok(countsDifferently(another, ill))
})

test('a pod named as a property of every object has no eviction that was granted', async (t) => {
  const [pod] = pods(1)
  if (pod === undefined) return t.fail('no pod')
  const odd = { ...pod, metadata: { ...pod.metadata, name: 'constructor' } }
  t.match(counted({ spec: { minAvailable: 0 } }, [odd]), { notDeleted: [], status: { currentHealthy: 1 } })
})

test('conditions that are not ours stay, and without a generation none is claimed as observed', async (t) => {
  const foreign = {
    type: 'Audited',
    status: 'True',
    reason: 'ByHand',
    message: '',
    lastTransitionTime: 'then',
  } as const
  const ours = { ...foreign, type: 'DisruptionAllowed' }
  const budget = aBudget({ spec: { minAvailable: 1 }, status: { conditions: [foreign, ours] } })
  const { conditions } = countOf(budget, pods(2), nowMs, now).status
  t.same(
    conditions?.map(({ type, lastTransitionTime }) => [type, lastTransitionTime]),
    [
      ['Audited', 'then'],
      ['DisruptionAllowed', 'then'],
    ],
  )
  t.equal(conditions?.at(-1)?.observedGeneration, 1)
  const { generation: _, ...metadata } = budget.metadata
  const { status } = countOf({ ...budget, metadata }, pods(2), nowMs, now)
  t.notOk('observedGeneration' in status)
  t.notOk('observedGeneration' in (status.conditions?.at(-1) ?? {}))
})

test('a budget that states neither number expects no pods and allows no disruption', async (t) => {
  const { spec: _, status: __, ...bare } = aBudget()
  const none = { currentHealthy: 2, desiredHealthy: 0, expectedPods: 0, disruptionsAllowed: 0 }
  t.match(countOf(bare, pods(2), nowMs, now).status, none)
  t.match(counted({ spec: {} }, pods(2)).status, none)
  t.match(countOf(bare, [], nowMs, now).status.conditions, [{ status: 'False', reason: 'InsufficientPods' }])
  t.match(counted({ spec: { minAvailable: 5 } }, pods(2)).status, { disruptionsAllowed: 0 }, 'never less than none')
})

test('a budget that is a part of the pods counts those that their controllers want, a number counts those there are', async (t) => {
  const count = (spec: object, wanted = 5) => countOf(aBudget({ spec }), pods(2), nowMs, now, wanted).status
  t.match(count({ maxUnavailable: 1 }), { expectedPods: 5, desiredHealthy: 4, disruptionsAllowed: 0 })
  t.match(count({ minAvailable: '20%' }), { expectedPods: 5, desiredHealthy: 1, disruptionsAllowed: 1 })
  t.match(count({ minAvailable: 1 }), { expectedPods: 2, desiredHealthy: 1, disruptionsAllowed: 1 })
  t.match(count({ maxUnavailable: 1 }, 0), { expectedPods: 0, disruptionsAllowed: 0 }, 'none is wanted any more')
  t.same(
    [{ maxUnavailable: 0 }, { maxUnavailable: '10%' }, { minAvailable: '10%' }, { minAvailable: 1 }, {}].map((spec) =>
      countsByScale(aBudget({ spec })),
    ),
    [true, true, true, false, false],
  )
  const { spec: _, ...bare } = aBudget()
  t.equal(countsByScale(bare), false)
})
