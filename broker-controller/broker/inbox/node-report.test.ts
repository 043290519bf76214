import { test } from 'tap'
import type { ObjectMeta } from '../../../api/meta.ts'
import type { NodeStatus } from '../../../api/node.ts'
import { aPod } from '../../../api/testing/builders.ts'
import type { PodMessage } from '../../../api/topics.ts'
import {
  emptiedPod,
  isStanding,
  leaseAfter,
  nodeStatusAfter,
  podStatusAfter,
  renewedLease,
  subjectOf,
} from './node-report.ts'

const nowMs = Date.parse('2026-01-01T00:10:00.500Z')
const now = '2026-01-01T00:10:00Z'
const connection = (state: 'online' | 'lost' | 'goodbye', more = {}) =>
  ({ news: 'connection', message: { state, bootID: 'boot-1', agentVersion: '1', ...more } }) as const

test('a heartbeat renews the lease by the controller’s clock and keeps what stands there', async (t) => {
  const first = leaseAfter('pi-1', undefined, { news: 'heartbeat' }, { nowMs, address: '10.0.0.5' })
  t.match(first, {
    metadata: {
      name: 'pi-1',
      namespace: 'kube-node-lease',
      annotations: { 'bramble.dev/connection': 'online', 'bramble.dev/address': '10.0.0.5' },
    },
    spec: { holderIdentity: 'pi-1', leaseDurationSeconds: 40, renewTime: '2026-01-01T00:10:00.500000Z' },
  })
  const longer = { ...first, metadata: { ...first?.metadata, labels: { a: 'b' } }, spec: { leaseDurationSeconds: 90 } }
  const second = leaseAfter('pi-1', longer as typeof first, { news: 'heartbeat' }, { nowMs })
  t.match(second, { metadata: { labels: { a: 'b' } }, spec: { leaseDurationSeconds: 90 } })
})

test('what becomes of the connection is kept on the lease', async (t) => {
  const state = (lease: ReturnType<typeof leaseAfter>) => lease?.metadata.annotations
  const online = leaseAfter('pi-1', undefined, connection('online'), { nowMs })
  t.same(state(online), { 'bramble.dev/connection': 'online', 'bramble.dev/boot-id': 'boot-1' })
  const lost = leaseAfter('pi-1', online, connection('lost'), { nowMs: nowMs + 5000 })
  t.equal(state(lost)?.['bramble.dev/connection'], 'lost')
  t.equal(lost?.spec?.renewTime, online?.spec?.renewTime, 'a will is no sign of life')
  const goodbye = leaseAfter('pi-1', online, connection('goodbye', { reason: 'reboot', expectedBackSeconds: 90 }), {
    nowMs,
  })
  t.match(state(goodbye), { 'bramble.dev/connection-reason': 'reboot', 'bramble.dev/expected-back-seconds': '90' })
  t.same(state(leaseAfter('pi-1', goodbye, connection('online'), { nowMs })), state(online), 'back: the reasons go')
})

test('a node announces how long its lease is good for, within limits', async (t) => {
  const announced = (leaseDurationSeconds: number) =>
    leaseAfter('pi-1', undefined, connection('online', { leaseDurationSeconds }), { nowMs })
  t.equal(announced(240)?.spec?.leaseDurationSeconds, 240)
  t.equal(leaseAfter('pi-1', announced(240), { news: 'heartbeat' }, { nowMs })?.spec?.leaseDurationSeconds, 240)
  for (const odd of [-1, 0, 1e9]) t.equal(announced(odd)?.spec?.leaseDurationSeconds, 40)
})

test('a connection that ends without a word is lost, unless it took leave', async (t) => {
  const after = (state: 'online' | 'goodbye') => {
    const before = leaseAfter('pi-1', undefined, connection(state), { nowMs })
    return leaseAfter('pi-1', before, { news: 'disconnected' }, { nowMs })?.metadata.annotations
  }
  t.match(after('online'), { 'bramble.dev/connection': 'lost', 'bramble.dev/connection-reason': 'connection-closed' })
  t.equal(after('goodbye'), undefined)
  t.equal(leaseAfter('pi-1', undefined, { news: 'disconnected' }, { nowMs }), undefined)
})

test('who took leave is not lost for a will that the broker speaks after it, until it is back', async (t) => {
  const online = leaseAfter('pi-1', undefined, connection('online'), { nowMs })
  const goodbye = leaseAfter('pi-1', online, connection('goodbye', { reason: 'reboot' }), { nowMs })
  t.equal(leaseAfter('pi-1', goodbye, connection('lost'), { nowMs }), undefined)
  const back = leaseAfter('pi-1', goodbye, connection('online'), { nowMs })
  const lost = leaseAfter('pi-1', back, connection('lost'), { nowMs })
  t.match(lost?.metadata.annotations, { 'bramble.dev/connection': 'lost' })
})

test('conditions are stamped here: heard now, changed when their status did', async (t) => {
  const before: NodeStatus = {
    conditions: [
      { type: 'NetworkUnavailable', status: 'False', lastTransitionTime: '2026-01-01T00:00:00Z' },
      { type: 'MemoryPressure', status: 'False', lastTransitionTime: '2026-01-01T00:00:00Z' },
      { type: 'Ready', status: 'Unknown', lastTransitionTime: '2026-01-01T00:05:00Z' },
    ],
  }
  const report: NodeStatus = {
    capacity: { pods: '110' },
    conditions: [
      { type: 'MemoryPressure', status: 'False', lastTransitionTime: '1970-01-01T00:00:07Z', reason: 'r' },
      { type: 'Ready', status: 'True', lastHeartbeatTime: '1970-01-01T00:00:07Z' },
    ],
  }
  t.same(nodeStatusAfter(before, report, nowMs), {
    capacity: { pods: '110' },
    conditions: [
      before.conditions?.[0],
      {
        type: 'MemoryPressure',
        status: 'False',
        reason: 'r',
        lastHeartbeatTime: now,
        lastTransitionTime: '2026-01-01T00:00:00Z',
      },
      { type: 'Ready', status: 'True', lastHeartbeatTime: now, lastTransitionTime: now },
    ],
  })
})

test('a report of a node replaces the one before; conditions that others wrote stay, in bounded number', async (t) => {
  const made = (letter: string, count: number): NodeStatus => ({
    conditions: [
      ...Array.from({ length: count }, (_, i) => ({ type: `${letter}${i}`, status: 'True' }) as const),
      { type: 'Ready', status: 'True' },
    ],
  })
  const foreign = Array.from({ length: 100 }, (_, i) => ({ type: `Foreign${i}`, status: 'True' }) as const)
  const first = nodeStatusAfter({ conditions: foreign }, made('A', 50), nowMs)
  t.equal(first.conditions?.length, 32 + 51)
  const second = nodeStatusAfter(first, made('B', 50), nowMs + 1000)
  t.equal(second.conditions?.length, 32 + 51)
  t.notOk(second.conditions?.some(({ type }) => type.startsWith('A')))
  const third = nodeStatusAfter(second, { conditions: [{ type: 'Ready', status: 'True' }] }, nowMs + 2000)
  t.same(
    third.conditions?.map(({ type }) => type),
    [...foreign.slice(0, 32).map(({ type }) => type), 'Ready'],
  )
})

test('a health condition that a machine has no more is not shown any more', async (t) => {
  const status: NodeStatus = { conditions: [{ type: 'UnderVoltage', status: 'True' }] }
  const after = nodeStatusAfter(status, { conditions: [{ type: 'Ready', status: 'True' }] }, nowMs)
  t.same(
    after.conditions?.map(({ type }) => type),
    ['Ready'],
  )
})

test('of the conditions of a pod a node writes those of the kubelet, and no others', async (t) => {
  const condition = (type: string) => ({ type, status: 'True' }) as const
  const conditions = ['example.com/gate', 'Initialized', 'PodScheduled'].map(condition)
  const pod = aPod({ uid: 'u1', nodeName: 'pi-1', status: { conditions } })
  const report = { conditions: ['Ready', 'Made', 'example.com/gate', 'DisruptionTarget'].map(condition) }
  const answer = podStatusAfter('pi-1', 'u1', aMessage({ status: report }), pod)
  t.same(answer.take && answer.status.conditions?.map(({ type }) => type), [
    'example.com/gate',
    'PodScheduled',
    'Ready',
    'DisruptionTarget',
  ])
})

test('a node speaks of its own pods only, and of the one that is there now', async (t) => {
  const pod = aPod({ name: 'web', uid: 'u1', nodeName: 'pi-1' })
  const why = (node: string, uid: string, message: Partial<PodMessage>, of: typeof pod | undefined) => {
    const answer = podStatusAfter(node, uid, aMessage(message), of)
    return answer.take ? 'taken' : answer.because
  }
  t.equal(why('pi-1', 'u1', {}, pod), 'taken')
  t.equal(why('pi-2', 'u1', {}, pod), 'AnotherNode')
  t.equal(why('pi-1', 'u0', { uid: 'u0' }, pod), 'AnotherPod', 'an older pod of that name')
  t.equal(why('pi-1', 'u0', { uid: 'u1' }, pod), 'AnotherPod', 'topic and body disagree')
  t.equal(why('pi-1', 'u1', {}, undefined), 'NoSuchPod')
})

test('a report keeps what others wrote, and never revives a pod that has ended', async (t) => {
  const pod = aPod({
    uid: 'u1',
    nodeName: 'pi-1',
    phase: 'Failed',
    status: { qosClass: 'Burstable', reason: 'Evicted', conditions: [{ type: 'PodScheduled', status: 'True' }] },
  })
  const report = { phase: 'Running', podIP: '10.1.0.2', conditions: [{ type: 'Ready', status: 'True' }] } as const
  t.same(podStatusAfter('pi-1', 'u1', aMessage({ status: report }), pod), {
    take: true,
    status: {
      qosClass: 'Burstable',
      phase: 'Failed',
      reason: 'Evicted',
      podIP: '10.1.0.2',
      conditions: [
        { type: 'PodScheduled', status: 'True' },
        { type: 'Ready', status: 'True' },
      ],
    },
  })
})

test('a pod of which nothing is left goes when it is being deleted; finalizers are all it waits for then', async (t) => {
  const leaving = { deletionTimestamp: '2026-01-01T00:00:30Z', deletionGracePeriodSeconds: 30 }
  const gone = (metadata: ObjectMeta) => emptiedPod(aPod({ nodeName: 'pi-1', metadata }), nowMs)
  t.equal(gone({}), undefined)
  t.match(gone(leaving), { remove: true })
  const held = gone({ ...leaving, finalizers: ['example.com/hold'] })
  t.match(held, { remove: false, pod: { metadata: { deletionGracePeriodSeconds: 0 } } })
  if (held?.remove !== false) return
  t.equal(emptiedPod(held.pod, nowMs)?.remove, false)
  t.match(emptiedPod(held.pod, nowMs), { pod: held.pod }, 'said again it is the same')
})

test('an event is about the node that sends it, or one of its pods', async (t) => {
  const pods = [aPod({ name: 'web', uid: 'u1', nodeName: 'pi-1' })]
  const about = (involvedObject: object) => {
    const event = { apiVersion: 'v1', kind: 'Event', metadata: {}, involvedObject } as const
    return subjectOf('pi-1', event, pods) !== undefined
  }
  t.ok(about({ kind: 'Node', name: 'pi-1', uid: 'pi-1' }))
  t.notOk(about({ kind: 'Node', name: 'pi-2' }))
  t.ok(about({ kind: 'Pod', namespace: 'default', name: 'web', uid: 'u1', fieldPath: 'spec.containers{main}' }))
  t.notOk(about({ kind: 'Pod', namespace: 'default', name: 'other', uid: 'u1' }))
  t.notOk(about({ kind: 'Pod', namespace: 'default', name: 'web', uid: 'u2' }))
  t.notOk(about({ kind: 'Secret', namespace: 'default', name: 'web' }))
  pods.push(aPod({ name: 'own', nodeName: 'pi-1', annotations: { 'kubernetes.io/config.mirror': 'hash' } }))
  t.ok(
    about({ kind: 'Pod', namespace: 'default', name: 'own', uid: 'hash' }),
    'of a static pod by its UID on the machine',
  )
  const strayed = { kind: 'Node', name: 'pi-1', namespace: 'kube-system', fieldPath: 'spec' }
  t.same(
    subjectOf('pi-1', { apiVersion: 'v1', kind: 'Event', metadata: {}, involvedObject: strayed }, pods),
    { apiVersion: 'v1', kind: 'Node', name: 'pi-1', uid: 'pi-1' },
    'a node has no namespace, whatever is said',
  )
})

function aMessage(over: Partial<PodMessage>): PodMessage {
  return {
    namespace: 'default',
    name: 'web',
    uid: 'u1',
    observedResourceVersion: '1',
    status: { phase: 'Running' },
    ...over,
  }
}

test('a pod that its node stopped to shut down is taken as running again after the boot', async (t) => {
  const message = 'Pod was terminated in response to imminent node shutdown.'
  const conditions = [
    { type: 'DisruptionTarget', status: 'True', reason: 'TerminationByKubelet', message },
    { type: 'Theirs', status: 'True' },
  ] as const
  const stopped = { phase: 'Failed', reason: 'Terminated', message, conditions, qosClass: 'BestEffort' } as const
  const pod = aPod({ name: 'web', uid: 'u1', nodeName: 'pi-1', phase: 'Failed', status: stopped })
  const report = aMessage({ status: { phase: 'Running' } })
  t.same(podStatusAfter('pi-1', 'u1', report, pod), {
    take: true,
    status: { phase: 'Running', qosClass: 'BestEffort', conditions: [{ type: 'Theirs', status: 'True' }] },
  })
  const once = { ...pod, spec: { ...pod.spec, restartPolicy: 'Never' } } as const
  t.match(podStatusAfter('pi-1', 'u1', report, once), { status: { phase: 'Failed', reason: 'Terminated' } })
  const evicted = { ...pod, status: { phase: 'Failed', reason: 'Evicted' } } as const
  t.match(podStatusAfter('pi-1', 'u1', report, evicted), { status: { phase: 'Failed', reason: 'Evicted' } })
})

test('a status that is reported again stands, until its heartbeat times are old or something differs', async (t) => {
  const report: NodeStatus = {
    capacity: { cpu: '4' },
    conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady' }],
    images: [{ names: ['a'], sizeBytes: 1 }],
  }
  const before = nodeStatusAfter(undefined, report, nowMs)
  const again = (changed: NodeStatus, laterMs: number) =>
    isStanding(before, nodeStatusAfter(before, changed, nowMs + laterMs), nowMs + laterMs)
  t.equal(again(report, 1_000), true)
  t.equal(again(report, 239_000), true)
  t.equal(again(report, 241_000), false)
  t.equal(again(report, -10_000), false, 'our own date was set back')
  t.equal(again({ ...report, images: [{ names: ['b'], sizeBytes: 1 }] }, 1_000), false)
  t.equal(again({ ...report, conditions: [{ type: 'Ready', status: 'False', reason: 'KubeletReady' }] }, 1_000), false)
  t.equal(again({ ...report, conditions: [{ type: 'Ready', status: 'True', reason: 'Other' }] }, 1_000), false)
  t.equal(isStanding(undefined, before, nowMs), false)
})

test('only the lease of a node that is online is renewed without a decision', async (t) => {
  const online = leaseAfter('pi-1', undefined, connection('online'), { nowMs })
  if (online === undefined) return t.fail('no lease')
  t.same(renewedLease(online, nowMs + 10_000), {
    ...online,
    spec: { ...online.spec, renewTime: '2026-01-01T00:10:10.500000Z' },
  })
  const lost = leaseAfter('pi-1', online, connection('lost'), { nowMs })
  t.equal(lost && renewedLease(lost, nowMs), undefined)
})
