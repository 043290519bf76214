import { test } from 'tap'
import { aLease, aNode } from '../../../api/testing/builders.ts'
import type { Suspicion } from './link-suspicion.ts'
import { firstSight, seenLease } from './node-health.ts'
import { judgeNode, nodeJudge, settledNode } from './node-judgement.ts'
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
  const readiness = ['True', 'False', 'Unknown'] as const
  const nodes = readiness.flatMap((ready) => taintSets.map((taints) => aNode({ ready, taints })))
  for (const node of nodes) {
    const sight = firstSight(node, undefined, at(0), settings)
    const leases = [lost, goodbye].map((lease) => seenLease(sight, lease, at(0), settings))
    for (const health of [sight, ...leases]) {
      for (const suspected of [undefined, suspicion]) {
        for (const ms of [0, 4_999, 5_001, 10_000, 50_001, 55_000, 120_001, 300_001])
          yield { node, judgement: judgeNode({ node, health, zone: '' }, suspected, settings, ms), ms }
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

const judged = (node: ReturnType<typeof aNode>, lease: ReturnType<typeof aLease> | undefined, ms: number) => {
  const sight = firstSight(node, undefined, at(0), settings)
  const health = lease === undefined ? sight : seenLease(sight, lease, at(0), settings)
  return judgeNode({ node, health, zone: '' }, undefined, settings, ms)
}

test('a flapping node is trusted again once it has been Ready for the settle time, and not before', async (t) => {
  const taints = [{ key: 'bramble.dev/flapping', effect: 'NoSchedule' }] as const
  const isFlapping = (ready: 'True' | 'False', ms: number) => judged(aNode({ ready, taints }), undefined, ms).isFlapping
  t.same([isFlapping('True', 299_999), isFlapping('True', 300_000)], [true, false])
  t.ok(isFlapping('False', 10_000_000), 'a node that is not Ready does not settle')
  t.notOk(judged(aNode(), undefined, 0).isFlapping)
  t.notOk(judged(aNode({ ready: 'False' }), undefined, 0).isFlapping, 'one that is not Ready and never flapped')
})

test('a node that is not Ready is judged from the first whole period after the change', async (t) => {
  const node = aNode({ ready: 'False' })
  t.same([judged(node, undefined, 4_999).isProven, judged(node, undefined, 5_000).isProven], [false, true])
})

test('a judgement names the silence, the absence and the link, and nothing of a node that is well', async (t) => {
  t.match(judged(aNode(), undefined, 50_000), { silence: undefined, hold: undefined, absence: undefined })
  t.same(judged(aNode(), undefined, 50_001).silence, {
    is: 'silent',
    text: 'Kubelet stopped posting node status.',
  })
  t.match(judged(aNode({ conditions: [] }), undefined, 60_001), { silence: { is: 'silent' }, isProven: true })
  const away = judged(aNode(), goodbye, 120_000)
  t.equal(away.silence?.is, 'away')
  t.match(away.absence, { reason: 'no reason given', expectedBack: { ms: 120_000 } })
  t.equal(judged(aNode(), goodbye, 120_001).absence, undefined, 'it is overdue')
  const health = firstSight(aNode(), undefined, at(0), settings)
  t.equal(judgeNode({ node: aNode(), health, zone: '' }, suspicion, settings, 0).suspectedLink, 'attic')
})

test('a node is settled by labels, taints and notes together', async (t) => {
  const well = { ...judged(aNode(), undefined, 0), isFlapping: true, suspectedLink: 'attic' }
  const { absence } = judged(aNode(), goodbye, 1)
  const conditions = [
    { type: 'KernelDeadlock', status: 'True' },
    { type: 'Ready', status: 'True' },
  ] as const
  const taints = [{ key: 'node.kubernetes.io/not-ready', effect: 'NoExecute' }] as const
  const node = aNode({ conditions: [...conditions], taints })
  const settled = settledNode(node, { ...well, absence }, now, { conditionTaints: ['KernelDeadlock'] })
  t.equal(settled?.metadata.labels?.['beta.kubernetes.io/arch'], 'arm64')
  t.same(
    settled?.spec?.taints?.map(({ key, effect }) => `${key}:${effect}`),
    ['bramble.dev/kernel-deadlock:NoSchedule', 'bramble.dev/flapping:NoSchedule'],
  )
  t.match(settled?.metadata.annotations, {
    'bramble.dev/goodbye-reason': 'no reason given',
    'bramble.dev/expected-back': '2026-01-01T01:02:00Z',
    'bramble.dev/suspected-link': 'attic',
  })
})

test('a well node that has all it needs is not written', async (t) => {
  const judgement = judged(aNode(), undefined, 0)
  const settled = settledNode(aNode(), judgement, now)
  t.equal(settled?.metadata.labels?.['beta.kubernetes.io/os'], 'linux')
  t.equal(settled && settledNode(settled, judgement, now), undefined)
})

test('no NoExecute taint is added here, however long the node is ill: the queue decides when', async (t) => {
  for (const ready of ['False', 'Unknown'] as const) {
    const judgement = judged(aNode({ ready }), undefined, 10_000_000)
    t.ok(judgement.isProven)
    const taints = settledNode(aNode({ ready }), judgement, now)?.spec?.taints ?? []
    t.same(
      taints.map(({ effect }) => effect),
      ['NoSchedule'],
      ready,
    )
  }
})

test('while its pods are held an ill node carries neither NoExecute taint', async (t) => {
  const taints = [
    { key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' },
    { key: 'repair', effect: 'NoExecute' },
  ] as const
  const node = aNode({ ready: 'Unknown', taints })
  const judgement = judged(node, goodbye, 60_000)
  t.ok(judgement.hold)
  t.notOk(judgement.isProven)
  t.same(
    settledNode(node, judgement, now)?.spec?.taints?.map(({ key, effect }) => `${key}:${effect}`),
    ['repair:NoExecute', 'node.kubernetes.io/unreachable:NoSchedule'],
  )
})

test('a node is looked up and judged by the clock, with what its link is suspected of', async (t) => {
  const node = aNode({ ready: 'Unknown' })
  const entry = { node, health: firstSight(node, undefined, at(0), settings), zone: '' }
  const roster = {
    get: (name: string) => (name === 'pi-01' ? entry : undefined),
    suspicionOf: (_: string, nowMs: number) => (nowMs < 900_000 ? suspicion : undefined),
  }
  const judgementAt = (monotonicMs: number, name = 'pi-01') =>
    nodeJudge(roster, { monotonicMs: () => monotonicMs }, settings)(name)
  t.same(judgementAt(60_000), judgeNode(entry, suspicion, settings, 60_000))
  t.same(judgementAt(900_000), judgeNode(entry, undefined, settings, 900_000))
  t.equal(judgementAt(60_000, 'pi-02'), undefined)
})

test('without settings no condition of the machine taints the node', async (t) => {
  const conditions = [
    { type: 'KernelDeadlock', status: 'True' },
    { type: 'Ready', status: 'True' },
  ] as const
  const node = aNode({ conditions: [...conditions] })
  t.same(settledNode(node, judged(node, undefined, 0), now)?.spec?.taints ?? [], [])
})
