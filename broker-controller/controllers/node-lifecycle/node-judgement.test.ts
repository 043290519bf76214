import { test } from 'tap'
import { aLease, aNode } from '../../../api/testing/builders.ts'
import type { Suspicion } from './link-suspicion.ts'
import { firstSight, seenLease } from './node-health.ts'
import { judgeNode, settledNode } from './node-judgement.ts'
import { defaultNodeLifecycleSettings as settings } from './node-lifecycle-settings.ts'
import { withNoExecuteTaint } from './node-taints.ts'

const now = '2026-01-01T01:00:00Z'
const at = (monotonicMs: number) => ({ monotonicMs, wallMs: Date.parse(now) + monotonicMs })
const goodbye = aLease({
  annotations: { 'bramble.dev/connection': 'goodbye', 'bramble.dev/expected-back-seconds': '120' },
})
const lost = aLease({ annotations: { 'bramble.dev/connection': 'lost' } })
const suspicion: Suspicion = { link: 'attic', members: new Map([['pi-01', 0]]), total: 1, untilMs: 900_000 }
const taintSets = [
  [],
  [{ key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' }],
  [{ key: 'node.kubernetes.io/not-ready', effect: 'NoExecute' }],
  [
    { key: 'bramble.dev/flapping', effect: 'NoSchedule' },
    { key: 'repair', effect: 'NoExecute' },
  ],
] as const

/** Every combination of what may be known of a node, at moments from its first second to long after its grace. */
function* situations() {
  for (const ready of ['True', 'False', 'Unknown'] as const) {
    for (const taints of taintSets) {
      for (const lease of [undefined, lost, goodbye]) {
        for (const suspected of [undefined, suspicion]) {
          for (const ms of [0, 4_999, 5_001, 10_000, 50_001, 55_000, 120_001, 300_001]) {
            const node = aNode({ ready, taints })
            const sight = firstSight(node, undefined, at(0), settings)
            const health = lease === undefined ? sight : seenLease(sight, lease, at(0), settings)
            yield { node, judgement: judgeNode({ node, health, zone: '' }, suspected, settings, ms), ms }
          }
        }
      }
    }
  }
}
const ours = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable']

test('whatever is known: settled once it is settled, well or held it bears no NoExecute taint of ours, others stay', async (t) => {
  let count = 0
  for (const { node, judgement } of situations()) {
    count++
    const settled = settledNode(node, judgement, now) ?? node
    const taints = settled.spec?.taints ?? []
    const executed = taints.filter(({ key, effect }) => effect === 'NoExecute' && ours.includes(key))
    const isWell = node.status?.conditions?.at(-1)?.status === 'True'
    const kept = (node.spec?.taints ?? []).every((taint) => taint.key !== 'repair' || taints.includes(taint))
    if (settledNode(settled, judgement, now) !== undefined) return t.same(settled, node, 'it does not settle')
    if ((isWell || judgement.hold !== undefined) && executed.length > 0)
      return t.same(judgement, node, 'a taint too many')
    if (!kept) return t.same(settled, node, 'a taint that is not ours was taken')
  }
  t.ok(count > 500, `${count} situations`)
})

test('no illness counts before it is proven: not in its first period, not by the connection alone, not while held', async (t) => {
  for (const { node, judgement, ms } of situations()) {
    const ready = node.status?.conditions?.at(-1)?.status
    const early = ms < settings.nodeMonitorPeriodMs
    const alone = ready === 'Unknown' && ms <= settings.nodeMonitorGracePeriodMs
    if (judgement.isProven && (early || alone || judgement.hold !== undefined))
      return t.same(judgement, node, `at ${ms}`)
  }
  const node = aNode({ ready: 'Unknown' })
  const health = firstSight(node, undefined, at(0), settings)
  t.ok(judgeNode({ node, health, zone: '' }, undefined, settings, 55_000).isProven)
  t.ok(withNoExecuteTaint(node, now))
})

test('the taint of the other failure is exchanged only once the failure is proven', async (t) => {
  const taints = [{ key: 'node.kubernetes.io/not-ready', effect: 'NoExecute' }] as const
  const node = aNode({ ready: 'Unknown', taints })
  const health = firstSight(node, undefined, at(0), settings)
  const keysAt = (ms: number) => {
    const settled = settledNode(node, judgeNode({ node, health, zone: '' }, undefined, settings, ms), now) ?? node
    return settled.spec?.taints?.flatMap(({ key, effect }) => (effect === 'NoExecute' ? [key] : []))
  }
  t.same(keysAt(10_000), ['node.kubernetes.io/not-ready'], 'the silence is shorter than the grace period')
  t.same(keysAt(300_000), ['node.kubernetes.io/unreachable'])
})
