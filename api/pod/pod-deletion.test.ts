import { test } from 'tap'
import type { ObjectMeta } from '../meta.ts'
import type { Pod } from '../pod.ts'
import { graceSecondsOf, planPodDeletion } from './pod-deletion.ts'

const nowMs = Date.parse('2026-01-02T03:04:05Z')

function running({ metadata = {}, grace = 30 }: { metadata?: ObjectMeta; grace?: number } = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', ...metadata },
    spec: { containers: [{ name: 'c' }], nodeName: 'pi-1', terminationGracePeriodSeconds: grace },
    status: { phase: 'Running' },
  }
}

test('a running pod is marked, and has its own grace', async (t) => {
  const plan = planPodDeletion(running({ grace: 45 }), { nowMs })
  t.match(plan, {
    remove: false,
    pod: { metadata: { deletionTimestamp: '2026-01-02T03:04:50Z', deletionGracePeriodSeconds: 45 } },
  })
})

test('the grace that was asked for wins over the pod’s own; a negative one is a second', async (t) => {
  t.match(planPodDeletion(running(), { nowMs, gracePeriodSeconds: 5 }), {
    pod: { metadata: { deletionTimestamp: '2026-01-02T03:04:10Z', deletionGracePeriodSeconds: 5 } },
  })
  t.match(planPodDeletion(running(), { nowMs, gracePeriodSeconds: -7 }), {
    pod: { metadata: { deletionGracePeriodSeconds: 1 } },
  })
})

test('a negative grace of the pod itself is a second', (t) => {
  t.equal(graceSecondsOf({ spec: { containers: [], terminationGracePeriodSeconds: -1 } }), 1)
  t.equal(graceSecondsOf({ spec: { containers: [], terminationGracePeriodSeconds: 0 } }), 0)
  t.equal(graceSecondsOf({ spec: { containers: [] } }), 30)
  t.end()
})

test('a grace beyond all dates ends on a date, and can be shortened', async (t) => {
  const metadata = { name: 'web', deletionTimestamp: '9999-12-31T23:59:59Z' }
  for (const grace of [1e12, Number.MAX_SAFE_INTEGER, 1e300]) {
    t.match(planPodDeletion(running({ grace }), { nowMs }), {
      pod: { metadata: { deletionTimestamp: '2342-11-22T20:50:45Z', deletionGracePeriodSeconds: 1e10 } },
    })
    const leaving = running({ metadata: { ...metadata, deletionGracePeriodSeconds: grace } })
    t.match(planPodDeletion(leaving, { nowMs, gracePeriodSeconds: 5 }), {
      pod: { metadata: { deletionGracePeriodSeconds: 5 } },
    })
  }
})

test('a pod that no node runs goes at once, whatever grace was asked for', async (t) => {
  const { nodeName: _, ...spec } = running().spec
  const unscheduled = { ...running(), spec }
  t.same(planPodDeletion(unscheduled, { nowMs, gracePeriodSeconds: 60 }), { remove: true })
  const finished: Pod = { ...running(), status: { phase: 'Failed' } }
  t.same(planPodDeletion(finished, { nowMs }), { remove: true })
  t.same(planPodDeletion(running(), { nowMs, gracePeriodSeconds: 0 }), { remove: true }, 'forced')
  t.same(planPodDeletion(running({ grace: 0 }), { nowMs }), { remove: true }, 'its own grace period is zero')
})

test('a pod being deleted can be hurried, never given more time', async (t) => {
  const metadata = { deletionTimestamp: '2026-01-02T03:04:30Z', deletionGracePeriodSeconds: 30 }
  const leaving = running({ metadata })
  for (const gracePeriodSeconds of [undefined, 30, 90]) {
    const plan = planPodDeletion(leaving, { nowMs, gracePeriodSeconds })
    t.equal(plan.remove === false && plan.pod, leaving, 'nothing to write')
  }
  t.match(
    planPodDeletion(leaving, { nowMs, gracePeriodSeconds: 10 }),
    { pod: { metadata: { deletionTimestamp: '2026-01-02T03:04:10Z', deletionGracePeriodSeconds: 10 } } },
    'counted from when it was first asked for',
  )
  t.same(planPodDeletion(leaving, { nowMs, gracePeriodSeconds: 0 }), { remove: true })
})

test('finalizers hold the object, not its containers', async (t) => {
  const held = running({ metadata: { finalizers: ['example.com/keep'] } })
  const plan = planPodDeletion(held, { nowMs, gracePeriodSeconds: 0 })
  t.match(plan, {
    remove: false,
    pod: { metadata: { deletionTimestamp: '2026-01-02T03:04:05Z', deletionGracePeriodSeconds: 0 } },
  })
  if (plan.remove) return t.fail('the object must stay')
  const again = planPodDeletion(plan.pod, { nowMs: nowMs + 5000, gracePeriodSeconds: 0 })
  t.equal(again.remove === false && again.pod, plan.pod, 'asking again changes nothing')
})
