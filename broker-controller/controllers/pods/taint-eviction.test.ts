import { test } from 'tap'
import type { Taint } from '../../../api/node.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { disruptedPod, evictingTaints, evictionStep, stayingPod, stayText } from './taint-eviction.ts'

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

const byDefault = { ...away(300), operator: 'Exists' }
const owner = (controller?: boolean) => ({
  apiVersion: 'apps/v1',
  kind: 'ReplicaSet',
  name: 'web',
  uid: 'u',
  ...(controller !== undefined && { controller }),
})

test('a NoSchedule taint beside a NoExecute one asks for no toleration', async (t) => {
  const camera: Taint = { key: 'camera', effect: 'NoSchedule' }
  t.match(evictionStep([camera, unreachable], [away(300)], undefined, 0), { step: 'plan' })
  const brief = { key: 'camera', operator: 'Exists', tolerationSeconds: 5 }
  t.match(evictionStep([camera, unreachable], [away(300), brief], undefined, 0), { planned: { dueMs: 300_000 } })
})

test('a pod without a controller is not evicted for a taint that only its default toleration meets', async (t) => {
  const alone = aPod({ tolerations: [byDefault] })
  t.same(evictingTaints(alone, [unreachable, mine]), [mine])
  t.same(evictingTaints(aPod({ tolerations: [away(60)] }), [unreachable]), [unreachable], 'its author stated a time')
  const owned = (...ownerReferences: readonly ReturnType<typeof owner>[]) =>
    evictingTaints({ ...alone, metadata: { ...alone.metadata, ownerReferences } }, [unreachable])
  t.same(owned(owner(true)), [unreachable])
  t.same(owned(owner(), owner(true)), [unreachable], 'one of its owners is its controller')
  t.same(owned(owner()), [])
  t.same(owned(owner(false)), [])
})

test('the message of a pod that stays names its node and state, and there is none for a pod that has finished', async (t) => {
  const notReady: Taint = { key: 'node.kubernetes.io/not-ready', effect: 'NoExecute' }
  const tolerations = [byDefault, { ...byDefault, key: notReady.key }]
  const pod = aPod({ nodeName: 'pi-01', phase: 'Running', tolerations })
  t.match(
    stayText(pod, [mine, unreachable]),
    /^Node pi-01 is unreachable\. The pod stays on it .* Delete it to give it up\.$/,
  )
  t.match(stayText(pod, [notReady]), /^Node pi-01 is not ready\. The pod stays/)
  t.equal(stayText(pod, [mine]), undefined)
  t.equal(stayText(aPod({ nodeName: 'pi-01' }), [unreachable]), undefined, 'nothing tolerates it')
  for (const phase of ['Succeeded', 'Failed'] as const) {
    t.equal(stayText(aPod({ nodeName: 'pi-01', phase, tolerations }), [unreachable]), undefined, phase)
  }
})

test('the message of a pod that stays replaces an earlier one of its kind, and never one of its node', async (t) => {
  const pod = aPod({ nodeName: 'pi-01', phase: 'Running', tolerations: [byDefault] })
  const message = stayText(pod, [unreachable]) ?? ''
  const staying = stayingPod(pod, message)
  t.match(staying?.status, { phase: 'Running', message })
  t.equal(staying && stayingPod(staying, message), undefined)
  const other = message.replace('unreachable', 'not ready')
  t.equal(staying && stayingPod(staying, other)?.status?.message, other)
  t.equal(stayingPod(aPod({ status: { message: 'Usage of memory exceeds the limit' } }), message), undefined)
  t.equal(stayingPod(aPod({ status: { message: '' } }), message)?.status?.message, message)
})

test('a pod that shows already why it was evicted stays as it is', async (t) => {
  const pod = disruptedPod(aPod(), '2026-01-02T03:04:05Z')
  t.equal(disruptedPod(pod, '2026-01-02T04:00:00Z'), pod)
})
