import { test } from 'tap'
import { type NodeCondition, nodeConditionTypes } from '../../../api/node.ts'
import { aNode } from '../../../api/testing/builders.ts'
import { silenceText, silentNode } from './node-conditions.ts'
import { conditionTaints } from './node-taints.ts'

const now = '2026-01-02T03:04:05Z'
const silence = { is: 'silent', text: 'Kubelet stopped posting node status.' } as const
const broken = { is: 'disconnected', text: 'The connection to the node was lost.' } as const

test('a silent node’s conditions become Unknown once; missing ones are added; others’ conditions stay', async (t) => {
  const node = aNode({
    conditions: [
      { type: 'NetworkUnavailable', status: 'False' },
      { type: 'Ready', status: 'True', lastHeartbeatTime: '2026-01-01T00:00:00Z' },
    ],
  })
  const silent = silentNode(node, silence, now)
  t.match(silent?.status?.conditions, [
    { type: 'NetworkUnavailable', status: 'False' },
    {
      type: 'Ready',
      status: 'Unknown',
      reason: 'NodeStatusUnknown',
      lastHeartbeatTime: '2026-01-01T00:00:00Z',
      lastTransitionTime: now,
    },
    {
      type: 'MemoryPressure',
      status: 'Unknown',
      reason: 'NodeStatusNeverUpdated',
      lastHeartbeatTime: '2026-01-01T00:00:00Z',
    },
    { type: 'DiskPressure', reason: 'NodeStatusNeverUpdated', message: 'Kubelet never posted node status.' },
    { type: 'PIDPressure', reason: 'NodeStatusNeverUpdated' },
  ])
  if (silent === undefined) return t.fail('the node must change')
  t.equal(silentNode(silent, silence, now), undefined)
  t.same(conditionTaints(silent), ['node.kubernetes.io/unreachable'], 'a silent node loses its pressure taints')
})

test('a broken connection that became a silence changes its message, and keeps when it began', async (t) => {
  const lost = silentNode(aNode(), broken, now)
  if (lost === undefined) return t.fail('the node must change')
  t.equal(lost.status?.conditions?.at(-1)?.message, 'The connection to the node was lost.')
  t.equal(silentNode(lost, broken, now), undefined)
  const silent = silentNode(lost, silence, '2026-01-02T04:00:00Z')
  t.match(silent?.status?.conditions?.at(-1), {
    message: 'Kubelet stopped posting node status.',
    lastTransitionTime: now,
  })
  t.equal(silent && silentNode(silent, silence, now), undefined)
})

test('a node is described by its silence, or by the goodbye that it sent before', async (t) => {
  const silent = { absence: undefined }
  t.equal(silenceText('silent', silent), 'Kubelet stopped posting node status.')
  t.equal(silenceText('late', silent), 'The heartbeat of the node is late.')
  t.equal(silenceText('disconnected', silent), 'The connection to the node was lost.')
  t.equal(silenceText('away', silent), 'The connection to the node was lost.')
  const expectedBack = { ms: 120_000, time: '2026-01-02T03:06:05Z' }
  const left = { absence: { reason: 'reboot', goodbye: undefined, expectedBack } }
  const texts = (['late', 'disconnected', 'away'] as const).map((one) => silenceText(one, left))
  t.equal(new Set(texts).size, 1)
  t.match(texts[0], /reboot.*2026-01-02T03:06:05Z/)
  t.equal(silenceText('silent', left), 'Kubelet stopped posting node status.', 'it has not come back in time')
})

test('a node that never reported gets all four conditions, as old as its object', async (t) => {
  const silent = silentNode(aNode({ conditions: [] }), silence, now)
  const fresh = (type: string) => ({
    ...{ type, status: 'Unknown', reason: 'NodeStatusNeverUpdated', message: 'Kubelet never posted node status.' },
    ...{ lastHeartbeatTime: '2026-01-01T00:00:00Z', lastTransitionTime: now },
  })
  t.same(silent?.status?.conditions, nodeConditionTypes.map(fresh))
  const unborn = { ...aNode({ conditions: [] }), metadata: { name: 'pi-01' } }
  t.equal(silentNode(unborn, silence, now)?.status?.conditions?.[0]?.lastHeartbeatTime, now)
  t.equal(silent && silentNode(silent, silence, '2026-01-03T00:00:00Z'), undefined)
})

test('a condition that was Unknown before keeps its time, and one of another kind its status', async (t) => {
  const earlier = '2026-01-01T12:00:00Z'
  const unknown: NodeCondition = { type: 'DiskPressure', status: 'Unknown', reason: 'NodeStatusNeverUpdated' }
  const late: NodeCondition = { type: 'PIDPressure', status: 'Unknown', reason: 'NodeStatusUnknown', message: 'late' }
  const conditions: readonly NodeCondition[] = [
    { type: 'Ready', status: 'False', reason: 'KubeletNotReady', lastTransitionTime: earlier },
    { type: 'MemoryPressure', status: 'True', lastTransitionTime: earlier },
    { ...unknown, lastTransitionTime: earlier },
    { ...late, lastTransitionTime: earlier },
    { type: 'bramble.dev/Card', status: 'False' },
  ]
  t.same(silentNode(aNode({ conditions }), silence, now)?.status?.conditions, [
    {
      ...{ type: 'Ready', status: 'Unknown', reason: 'NodeStatusUnknown', message: silence.text },
      lastTransitionTime: now,
    },
    {
      ...{ type: 'MemoryPressure', status: 'Unknown', reason: 'NodeStatusUnknown', message: silence.text },
      lastTransitionTime: now,
    },
    { ...unknown, lastTransitionTime: earlier },
    { ...late, message: silence.text, lastTransitionTime: earlier },
    { type: 'bramble.dev/Card', status: 'False' },
  ])
})
