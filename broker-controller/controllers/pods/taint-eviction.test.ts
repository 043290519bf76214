import { test } from 'tap'
import type { Taint } from '../../../api/node.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { disruptedPod, evictionStep } from './taint-eviction.ts'

const unreachable: Taint = { key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' }
const mine: Taint = { key: 'repair', value: 'yes', effect: 'NoExecute' }
const away = (tolerationSeconds?: number) => ({
  key: unreachable.key,
  operator: 'Exists',
  effect: 'NoExecute',
  ...(tolerationSeconds !== undefined && { tolerationSeconds }),
})
const planned = { startMs: 1_000, dueMs: 301_000 }

test('without NoExecute taints no pod is evicted, and what was planned is called off', async (t) => {
  t.same(evictionStep([{ key: 'a', effect: 'NoSchedule' }], [], undefined, 0), { step: 'none' })
  t.same(evictionStep([], [], planned, 0), { step: 'cancel' })
})

test('a taint that nothing tolerates evicts now, also when a later time was planned', async (t) => {
  t.same(evictionStep([mine], [away(300)], undefined, 0), { step: 'evict' })
  t.same(evictionStep([unreachable, mine], [away(300)], planned, 5_000), { step: 'evict' })
})

test('the shortest toleration counts, 0 and less is now, none is for ever', async (t) => {
  const repair = { key: 'repair', operator: 'Exists', tolerationSeconds: 30 }
  const plan = { step: 'plan', planned: { startMs: 7_000, dueMs: 37_000 } }
  t.same(evictionStep([unreachable, mine], [away(300), repair], undefined, 7_000), plan)
  t.same(evictionStep([unreachable], [away(0)], undefined, 0), { step: 'evict' })
  t.same(evictionStep([unreachable], [away(-5)], undefined, 0), { step: 'evict' })
  t.same(evictionStep([unreachable], [away()], undefined, 0), { step: 'none' })
  t.same(evictionStep([unreachable], [away()], planned, 0), { step: 'cancel' })
})

test('a count that runs is neither hastened nor started over', async (t) => {
  t.same(evictionStep([unreachable], [away(1)], planned, 5_000), { step: 'none' })
})

test('of two tolerations that match, the first alone counts', async (t) => {
  t.match(evictionStep([unreachable], [away(10), away()], undefined, 0), { planned: { dueMs: 10_000 } })
  t.same(evictionStep([unreachable], [away(), away(10)], undefined, 0), { step: 'none' })
})

test('an evicted pod shows why', async (t) => {
  const now = '2026-01-02T03:04:05Z'
  t.same(disruptedPod(aPod({ nodeName: 'pi-1' }), now).status?.conditions, [
    {
      type: 'DisruptionTarget',
      status: 'True',
      reason: 'DeletionByTaintManager',
      message: 'Taint manager: deleting due to NoExecute taint',
      lastTransitionTime: now,
    },
  ])
})
