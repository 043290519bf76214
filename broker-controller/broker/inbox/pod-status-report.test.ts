import { test } from 'tap'
import type { ObjectMeta } from '../../../api/meta.ts'
import type { Pod, PodStatus } from '../../../api/pod.ts'
import { aPod } from '../../../api/testing/builders.ts'
import type { PodMessage } from '../../../api/topics.ts'
import { podStatusAfter, removedPod } from './pod-status-report.ts'

const nowMs = Date.parse('2026-01-01T00:10:00.500Z')

test('of the conditions of a pod a node writes those of the kubelet, and no others', async (t) => {
  const condition = (type: string) => ({ type, status: 'True' }) as const
  const conditions = ['example.com/gate', 'Initialized', 'PodScheduled'].map(condition)
  const pod = aPod({ uid: 'u1', nodeName: 'pi-1', status: { conditions } })
  const report = { conditions: ['Ready', 'Made', 'example.com/gate', 'DisruptionTarget'].map(condition) }
  const answer = podStatusAfter('pi-1', 'u1', aMessage({ status: report }), pod)
  t.same(answer.isAccepted && answer.status.conditions?.map(({ type }) => type), [
    'example.com/gate',
    'PodScheduled',
    'Ready',
    'DisruptionTarget',
  ])
})

test('the times at which a pod was bound and started stay, whatever its node reports', async (t) => {
  const at = (seconds: number) => `2026-01-01T00:00:0${seconds}Z`
  const scheduled = (seconds: number, status: 'True' | 'False' = 'True') => ({
    conditions: [{ type: 'PodScheduled', status, lastTransitionTime: at(seconds) }],
  })
  const after = (before: PodStatus, report: PodStatus) => {
    const pod = aPod({ uid: 'u1', nodeName: 'pi-1', status: before })
    const answer = podStatusAfter('pi-1', 'u1', aMessage({ status: report }), pod)
    return answer.isAccepted ? answer.status : undefined
  }
  t.match(after(scheduled(1), scheduled(3)), scheduled(1))
  t.match(after(scheduled(1, 'False'), scheduled(3)), scheduled(3))
  t.match(after({}, { ...scheduled(3), startTime: at(3) }), { ...scheduled(3), startTime: at(3) })
  t.match(after({ startTime: at(3) }, { startTime: at(5) }), { startTime: at(3) })
})

test('a node reports its own pods only, and only the present pod of a name', async (t) => {
  const pod = aPod({ name: 'web', uid: 'u1', nodeName: 'pi-1' })
  const why = (node: string, uid: string, message: Partial<PodMessage>, of: typeof pod | undefined) => {
    const answer = podStatusAfter(node, uid, aMessage(message), of)
    return answer.isAccepted ? 'accepted' : answer.because
  }
  t.equal(why('pi-1', 'u1', {}, pod), 'accepted')
  t.equal(why('pi-2', 'u1', {}, pod), 'AnotherNode')
  t.equal(why('pi-1', 'u0', { uid: 'u0' }, pod), 'AnotherPod', 'an older pod of that name')
  t.equal(why('pi-1', 'u0', { uid: 'u1' }, pod), 'AnotherPod', 'topic and body disagree')
  t.equal(why('pi-1', 'u1', { uid: 'u0' }, pod), 'AnotherPod')
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
    isAccepted: true,
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

test('a pod that failed keeps its reason and message, until its node reports other ones of that phase', async (t) => {
  const failed = (status: Pod['status']) =>
    aPod({ uid: 'u1', nodeName: 'pi-1', phase: 'Failed', status: { ...status, phase: 'Failed' } })
  const after = (pod: Pod, status: PodMessage['status']) => {
    const answer = podStatusAfter('pi-1', 'u1', aMessage({ status }), pod)
    return answer.isAccepted && answer.status
  }
  const evicted = failed({ reason: 'Evicted', message: 'The node was low on resource: memory.' })
  t.match(after(evicted, { phase: 'Running' }), { reason: 'Evicted', message: 'The node was low on resource: memory.' })
  t.match(after(evicted, { phase: 'Failed', reason: 'Error' }), { phase: 'Failed', reason: 'Error' })
  t.same(after(failed({}), { phase: 'Running' }), { phase: 'Failed', conditions: [] })
  const { status: _, ...unreported } = aPod({ uid: 'u1', nodeName: 'pi-1' })
  t.same(after(unreported, { phase: 'Running' }), { phase: 'Running', conditions: [] })
})

test('a condition that both write is there once, and a pod that did not stop keeps what disrupts it', async (t) => {
  const condition = (type: string, status: 'True' | 'False') => ({ type, status, reason: 'TerminationByKubelet' })
  const conditions = [condition('PodScheduled', 'False'), condition('DisruptionTarget', 'True')]
  const pod = aPod({ uid: 'u1', nodeName: 'pi-1', phase: 'Running', status: { phase: 'Running', conditions } })
  const report = aMessage({ status: { phase: 'Running', conditions: [condition('PodScheduled', 'True')] } })
  t.match(podStatusAfter('pi-1', 'u1', report, pod), {
    status: { conditions: [condition('DisruptionTarget', 'True'), condition('PodScheduled', 'True')] },
  })
})

test('a pod that its node removed is deleted if it is being deleted and has no finalizers', async (t) => {
  const leaving = { deletionTimestamp: '2026-01-01T00:00:30Z', deletionGracePeriodSeconds: 30 }
  const gone = (metadata: ObjectMeta) => removedPod(aPod({ nodeName: 'pi-1', metadata }), nowMs)
  t.equal(gone({}), undefined)
  t.match(gone(leaving), { remove: true })
  const held = gone({ ...leaving, finalizers: ['example.com/hold'] })
  t.match(held, { remove: false, pod: { metadata: { deletionGracePeriodSeconds: 0 } } })
  if (held?.remove !== false) return
  t.equal(removedPod(held.pod, nowMs)?.remove, false)
  t.match(removedPod(held.pod, nowMs), { pod: held.pod }, 'a second report changes nothing')
})

test('a pod that its node stopped to shut down is accepted as running again after the boot', async (t) => {
  const message = 'Pod was terminated in response to imminent node shutdown.'
  const conditions = [
    { type: 'DisruptionTarget', status: 'True', reason: 'TerminationByKubelet', message },
    { type: 'Theirs', status: 'True' },
  ] as const
  const stopped = { phase: 'Failed', reason: 'Terminated', message, conditions, qosClass: 'BestEffort' } as const
  const pod = aPod({ name: 'web', uid: 'u1', nodeName: 'pi-1', phase: 'Failed', status: stopped })
  const report = aMessage({ status: { phase: 'Running' } })
  t.same(podStatusAfter('pi-1', 'u1', report, pod), {
    isAccepted: true,
    status: { phase: 'Running', qosClass: 'BestEffort', conditions: [{ type: 'Theirs', status: 'True' }] },
  })
  const once = { ...pod, spec: { ...pod.spec, restartPolicy: 'Never' } } as const
  t.match(podStatusAfter('pi-1', 'u1', report, once), { status: { phase: 'Failed', reason: 'Terminated' } })
  const evicted = { ...pod, status: { phase: 'Failed', reason: 'Evicted' } } as const
  t.match(podStatusAfter('pi-1', 'u1', report, evicted), { status: { phase: 'Failed', reason: 'Evicted' } })
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
