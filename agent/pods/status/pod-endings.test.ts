import { test } from 'tap'
import type { ContainerStatus, PodCondition, PodStatus } from '../../../api/pod.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { begunAgain, endedStatus, refusedStatus, withDisruption } from './pod-endings.ts'

const now = Date.parse('2026-01-02T00:00:00Z')
const base = { ready: false, restartCount: 0, image: 'app:1', imageID: '' }
const running = (name = 'main'): ContainerStatus => ({ ...base, name, state: { running: {} } })
const ended = (name = 'main'): ContainerStatus => ({ ...base, name, state: { terminated: { exitCode: 137 } } })
const waiting = (name = 'main', more: object = {}): ContainerStatus => ({
  ...{ ...base, name, state: { waiting: { reason: 'PodInitializing' } }, ...more },
})
const ready: PodCondition = { type: 'Ready', status: 'False', reason: 'PodFailed' }
const disruption: PodCondition = {
  ...{ type: 'DisruptionTarget', status: 'True', reason: 'TerminationByKubelet', message: 'why' },
  lastTransitionTime: '2026-01-02T00:00:00Z',
}
const evicted: PodStatus = { phase: 'Failed', reason: 'Evicted', message: 'The node was low on memory' }

test('a rejected pod has failed, without containers', async (t) => {
  t.same(refusedStatus(aPod(), { reason: 'OutOfcpu', message: 'no' }, now), {
    phase: 'Failed',
    reason: 'OutOfcpu',
    message: 'Pod was rejected: no',
    startTime: '2026-01-02T00:00:00Z',
    qosClass: 'BestEffort',
  })
  t.match(refusedStatus(aPod({ requests: { cpu: '1' } }), { reason: 'NodeShutdown', message: '' }, now), {
    qosClass: 'Burstable',
  })
})

test('an ending is final once nothing runs, and nothing of it shows before', async (t) => {
  const phase = (found: PodStatus, ending = evicted) => endedStatus(found, ending).phase
  const before: PodStatus = { phase: 'Failed', containerStatuses: [running(), ended('other')] }
  t.same(endedStatus(before, { ...evicted, conditions: [disruption] }), { ...before, phase: 'Running' })
  t.same(endedStatus({ ...before, containerStatuses: [ended()] }, evicted), {
    ...{ ...evicted, conditions: [], containerStatuses: [ended()] },
  })
  const inits = (...initContainerStatuses: readonly ContainerStatus[]) => ({ initContainerStatuses })
  t.equal(phase({ containerStatuses: [ended()], ephemeralContainerStatuses: [running('look')] }), 'Running')
  t.equal(phase({ containerStatuses: [ended()], ...inits(running('side')) }), 'Running', 'a sidecar')
  const again = waiting('main', { lastState: { terminated: { exitCode: 1 } } })
  t.equal(phase({ containerStatuses: [again], ...inits(running('side')) }), 'Running')
  t.equal(phase({ containerStatuses: [waiting()], ...inits(running('first')) }), 'Pending', 'it never began')
  t.equal(phase({ containerStatuses: [waiting()], ...inits(ended('first')) }), 'Failed')
  t.equal(phase({ containerStatuses: [ended()] }, { phase: 'Succeeded' }), 'Succeeded')
  t.equal(phase({}, {}), 'Failed')
})

test('the reason of an ending replaces that of the containers, and its disruption is added', async (t) => {
  const found: PodStatus = { phase: 'Failed', reason: 'Other', message: 'other', conditions: [ready] }
  t.same(endedStatus(found, { ...evicted, conditions: [{ ...ready, status: 'True' }, disruption] }), {
    ...{ ...evicted, conditions: [ready, disruption] },
  })
  t.same(endedStatus(found, { phase: 'Failed' }), found)
})

test('a disruption has the words of the kubelet, and is there once', async (t) => {
  const old: PodCondition = { ...disruption, message: 'old', lastTransitionTime: '2026-01-01T00:00:00Z' }
  t.same(withDisruption([ready], 'why', now), [ready, disruption])
  t.same(withDisruption([old, ready], 'why', now), [ready, disruption])
  t.same(withDisruption([old, ready], undefined, now), [old, ready], 'an ending that is not one')
})

test('containers that begin again have no results', async (t) => {
  const status: PodStatus = {
    ...{ phase: 'Running', containerStatuses: [ended('a'), ended('b')] },
    initContainerStatuses: [ended('first'), ended('last')],
  }
  t.same(begunAgain(status, ['a', 'last']), {
    ...{ phase: 'Running', containerStatuses: [ended('b')], initContainerStatuses: [ended('first')] },
  })
  t.same(begunAgain({}, ['a']), { containerStatuses: [], initContainerStatuses: [] })
})
