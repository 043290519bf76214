import { test } from 'tap'
import type { Node, NodeCondition, Taint } from '../../../api/node.ts'
import { aNode } from '../../../api/testing/builders.ts'
import { withStableLabels } from './node-labels.ts'
import {
  conditionTaints,
  isOutOfService,
  noExecuteStep,
  withConditionTaints,
  withNoExecuteTaint,
  withoutNoExecuteTaints,
} from './node-taints.ts'

const now = '2026-01-02T03:04:05Z'
const types = ['MemoryPressure', 'DiskPressure', 'PIDPressure', 'NetworkUnavailable', 'Ready']
const statuses = ['True', 'False', 'Unknown'] as const
const camera: Taint = { key: 'camera', effect: 'NoSchedule' }
const outOfService: Taint = { key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' }
const foreign: readonly Taint[] = [
  camera,
  { key: 'node.kubernetes.io/memory-pressure', effect: 'NoExecute' },
  outOfService,
]
const ours: readonly Taint[] = [
  { key: 'node.kubernetes.io/disk-pressure', effect: 'NoSchedule' },
  { key: 'node.kubernetes.io/unreachable', effect: 'NoSchedule' },
  { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' },
  { key: 'node.kubernetes.io/not-ready', effect: 'NoExecute' },
  { key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' },
]

/** Every combination of conditions with every third one of taints: a few thousand nodes. */
function* someNodes() {
  for (let c = 0; c < 4 ** types.length; c++) {
    const conditions = types.flatMap((type, i): NodeCondition[] => {
      const status = statuses[Math.floor(c / 4 ** i) % 4]
      return status === undefined ? [] : [{ type, status }]
    })
    for (let m = c % 3; m < 2 ** ours.length; m += 3) {
      const taints = [...foreign, ...ours.filter((_, i) => m & (1 << i))]
      yield aNode({ conditions, taints, unschedulable: c % 2 === 0 })
    }
  }
}

test('the taints follow the conditions, once and for all, and foreign ones are left alone', async (t) => {
  let count = 0
  for (const node of someNodes()) {
    count++
    const after = withConditionTaints(node, now) ?? node
    const taints = after.spec?.taints ?? []
    const keys = taints.filter((it) => it.effect === 'NoSchedule' && it.key !== 'camera').map(({ key }) => key)
    if (
      withConditionTaints(after, now) !== undefined ||
      keys.toSorted().join() !== conditionTaints(node).toSorted().join() ||
      !foreign.every((taint) => taints.includes(taint)) ||
      taints.filter((it) => it.effect === 'NoExecute').length !==
        node.spec?.taints?.filter((it) => it.effect === 'NoExecute').length
    ) {
      return t.fail('wrong taints', { before: node, after })
    }
  }
  t.ok(count > 10_000, `${count} nodes`)
})

test('the NoExecute taint is the one Ready asks for, alone, and settles at once', async (t) => {
  for (const node of someNodes()) {
    const after = withNoExecuteTaint(node, now) ?? node
    const keys = (after.spec?.taints ?? [])
      .filter(({ effect }) => effect === 'NoExecute')
      .map(({ key }) => key.split('/').at(-1))
    const ready = node.status?.conditions?.find(({ type }) => type === 'Ready')?.status
    const wanted = ready === 'False' ? ['not-ready'] : ready === 'Unknown' ? ['unreachable'] : []
    const mine = keys.filter((key) => key === 'not-ready' || key === 'unreachable')
    if (
      mine.join() !== wanted.join() ||
      withNoExecuteTaint(after, now) !== undefined ||
      noExecuteStep(after).step !== 'none'
    ) {
      return t.fail('wrong taints', { before: node, after })
    }
  }
})

test('conditions earn the taints Kubernetes gives them', async (t) => {
  const conditions = (['MemoryPressure', 'DiskPressure', 'PIDPressure', 'NetworkUnavailable'] as const).map(
    (type): NodeCondition => ({ type, status: 'True' }),
  )
  t.same(
    conditionTaints(aNode({ conditions: [...conditions, { type: 'Ready', status: 'False' }], unschedulable: true })),
    ['memory-pressure', 'disk-pressure', 'pid-pressure', 'network-unavailable', 'not-ready', 'unschedulable'].map(
      (name) => `node.kubernetes.io/${name}`,
    ),
  )
})

test('the beta labels follow the stable ones', async (t) => {
  const twin = 'beta.kubernetes.io/arch'
  t.equal(withStableLabels(aNode({ labels: { [twin]: 'amd64' } }))?.metadata.labels?.[twin], 'arm64')
  const right = withStableLabels(aNode())
  t.equal(right && withStableLabels(right), undefined)
  t.equal(
    withStableLabels({ ...aNode(), metadata: { name: 'a', uid: 'u', resourceVersion: '1', creationTimestamp: now } }),
    undefined,
  )
})

test('conditions of the machine keep new pods away where they are configured to, and only while they hold', async (t) => {
  const conditions = [
    { type: 'KernelDeadlock', status: 'True' },
    { type: 'UnderVoltage', status: 'True' },
    { type: 'FanStuck', status: 'True' },
    { type: 'WeakWifi', status: 'False' },
    { type: 'Ready', status: 'True' },
  ] as const
  const taints: readonly Taint[] = [
    { key: 'bramble.dev/weak-wifi', effect: 'NoSchedule' },
    { key: 'bramble.dev/mine', effect: 'NoSchedule' },
  ]
  const node = aNode({ conditions: [...conditions], taints: [...taints] })
  const keys = (health: readonly string[]) =>
    withConditionTaints(node, now, health)?.spec?.taints?.map(({ key, effect }) => `${key}:${effect}`)
  t.same(keys(['KernelDeadlock', 'FanStuck', 'WeakWifi']), [
    'bramble.dev/mine:NoSchedule',
    'bramble.dev/kernel-deadlock:NoSchedule',
    'bramble.dev/fan-stuck:NoSchedule',
  ])
  t.same(keys([]), ['bramble.dev/mine:NoSchedule'], 'what is not configured any more goes')
})

const notReady: Taint = { key: 'node.kubernetes.io/not-ready', effect: 'NoExecute' }
const unreachable: Taint = { key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' }
/** Kubernetes' other taint with this key: it keeps new pods away and evicts none. */
const notReadyNoSchedule: Taint = { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' }
const bare: Node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'pi-1' } }
const withReady = (status: 'True' | 'False' | 'Unknown', ...taints: readonly Taint[]) =>
  aNode({ conditions: [{ type: 'Ready', status }], taints: [...taints] })

test('the taint for evictions is taken off at once, swapped at once, and set only when the queue decides', async (t) => {
  const steps = [
    { node: withReady('True'), step: 'none' },
    { node: withReady('True', notReadyNoSchedule, outOfService), step: 'none' },
    { node: withReady('True', notReady), step: 'clear' },
    { node: withReady('True', unreachable), step: 'clear' },
    { node: withReady('True', notReady, unreachable), step: 'clear' },
    { node: withReady('False'), step: 'queue' },
    { node: withReady('False', notReadyNoSchedule), step: 'queue' },
    { node: withReady('False', notReady), step: 'none' },
    { node: withReady('False', unreachable), step: 'swap' },
    { node: withReady('Unknown'), step: 'queue' },
    { node: withReady('Unknown', unreachable), step: 'none' },
    { node: withReady('Unknown', notReady), step: 'swap' },
    { node: aNode({ conditions: [], taints: [notReady] }), step: 'none' },
  ]
  for (const { node, step } of steps) t.same(noExecuteStep(node), { step }, JSON.stringify([node.status, node.spec]))
})

test('taints for evictions are removed alone: not those of the same key that evict nothing, nor an operator’s', async (t) => {
  const node = withReady('Unknown', camera, notReadyNoSchedule, outOfService, notReady, unreachable)
  t.same(withoutNoExecuteTaints(node)?.spec?.taints, [camera, notReadyNoSchedule, outOfService])
  t.same(withoutNoExecuteTaints(withReady('True', notReady))?.spec, {}, 'the last one takes the list with it')
  t.equal(withoutNoExecuteTaints(withReady('True', camera, notReadyNoSchedule)), undefined)
  t.equal(withoutNoExecuteTaints(bare), undefined)
  t.same(withNoExecuteTaint(node, now)?.spec?.taints, [camera, notReadyNoSchedule, outOfService, unreachable])
})

test('a node that never reported is not ready, whatever its object lacks', async (t) => {
  t.same(conditionTaints(bare), ['node.kubernetes.io/not-ready'])
  const tainted = withConditionTaints(bare, now)
  t.same(tainted?.spec?.taints, [{ ...notReadyNoSchedule, timeAdded: now }])
  t.equal(tainted && withConditionTaints(tainted, now), undefined)
  t.same(noExecuteStep({ ...bare, status: { conditions: [{ type: 'Ready', status: 'Unknown' }] } }), { step: 'queue' })
  t.same(
    withNoExecuteTaint({ ...bare, status: { conditions: [{ type: 'Ready', status: 'False' }] } }, now)?.spec?.taints,
    [{ ...notReady, timeAdded: now }],
  )
})

test('one taint is exchanged for another in one change', async (t) => {
  const node = aNode({
    conditions: [
      { type: 'Ready', status: 'True' },
      { type: 'PIDPressure', status: 'True' },
    ],
    taints: [{ key: 'node.kubernetes.io/disk-pressure', effect: 'NoSchedule' }],
  })
  const pressure: Taint = { key: 'node.kubernetes.io/pid-pressure', effect: 'NoSchedule', timeAdded: now }
  t.same(withConditionTaints(node, now)?.spec?.taints, [pressure])
})

test('a node is out of service by the taint of that key, with any effect', async (t) => {
  t.equal(isOutOfService(bare), false)
  t.equal(isOutOfService(aNode({ taints: [{ key: 'camera', effect: 'NoExecute' }] })), false)
  const key = 'node.kubernetes.io/out-of-service'
  for (const effect of ['NoExecute', 'NoSchedule'] as const) {
    t.equal(
      isOutOfService(
        aNode({
          taints: [
            { key: 'camera', effect },
            { key, effect },
          ],
        }),
      ),
      true,
    )
  }
})
