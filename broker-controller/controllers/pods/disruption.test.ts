import { test } from 'tap'
import type { Pod } from '../../../api/pod.ts'
import { aBudget, aPod } from '../../../api/testing/builders.ts'
import { countBudget, withStatus } from './disruption.ts'

const now = '2026-01-01T00:10:00Z'
const nowMs = Date.parse(now)
const pods = (count: number, { ready = count }: { ready?: number } = {}): readonly Pod[] =>
  Array.from({ length: count }, (_, index) => {
    const conditions = [{ type: 'Ready', status: index < ready ? 'True' : 'False' } as const]
    return aPod({ name: `web-${index}`, labels: { app: 'web' }, nodeName: 'pi-1', status: { conditions } })
  })
const counted = (spec: Parameters<typeof aBudget>[0], of: readonly Pod[]) => countBudget(aBudget(spec), of, nowMs, now)

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
    [{}, 2, 1, 0, 1],
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
  const first = withStatus(budget, countBudget(budget, pods(2), nowMs, now).status)
  t.match(first?.status?.conditions, [
    { type: 'DisruptionAllowed', status: 'True', reason: 'SufficientPods', lastTransitionTime: now },
  ])
  if (first === undefined) return
  const later = nowMs + 60_000
  t.equal(withStatus(first, countBudget(first, pods(2), later, 'later').status), undefined)
  t.match(countBudget(first, pods(1), later, 'later').status.conditions, [
    { status: 'False', reason: 'InsufficientPods', lastTransitionTime: 'later' },
  ])
})
