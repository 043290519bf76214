import { test } from 'tap'
import type { Container, ContainerStatus, Pod, PodPhase } from '../../../api/pod.ts'
import { incomplete, isInitialized, phaseOf } from './pod-phase.ts'

const aPod = (restartPolicy: string, init: readonly Partial<Container>[] = [], containers = 2): Pod => ({
  ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web' } },
  spec: {
    restartPolicy,
    initContainers: init.map((one, index) => ({ name: `init-${index}`, image: 'i', ...one })),
    containers: Array.from({ length: containers }, (_, index) => ({ name: `c-${index}`, image: 'i' })),
  },
})
const base = { ready: false, restartCount: 0, image: 'i', imageID: '' }
const running: ContainerStatus = { ...base, name: 'c', ready: true, started: true, state: { running: {} } }
const ended = (exitCode: number): ContainerStatus => ({
  ...{ ...base, name: 'c', ready: exitCode === 0 },
  state: { terminated: { exitCode } },
})
const waiting: ContainerStatus = { ...base, name: 'c', state: { waiting: { reason: 'ContainerCreating' } } }
/** It failed, and waits to be started again. */
const crashed: ContainerStatus = { ...waiting, lastState: { terminated: { exitCode: 1 } } }

test('the phase of a pod without init containers', async (t) => {
  const cases: readonly [string, string, readonly ContainerStatus[], PodPhase][] = [
    ['Always', 'nothing has started', [waiting, waiting], 'Pending'],
    ['Always', 'one has not started yet', [running, waiting], 'Pending'],
    ['Always', 'all run', [running, running], 'Running'],
    ['Always', 'one waits after it failed', [running, crashed], 'Running'],
    ['Always', 'all have ended', [ended(0), ended(0)], 'Running'],
    ['OnFailure', 'all have succeeded', [ended(0), ended(0)], 'Succeeded'],
    ['OnFailure', 'one has failed', [ended(0), ended(1)], 'Running'],
    ['OnFailure', 'one still runs', [ended(0), running], 'Running'],
    ['Never', 'all have succeeded', [ended(0), ended(0)], 'Succeeded'],
    ['Never', 'one has failed', [ended(0), ended(1)], 'Failed'],
    ['Never', 'one has failed and one runs', [running, ended(1)], 'Running'],
    ['unknown', 'all have ended: the policy counts as Always', [ended(0), ended(0)], 'Running'],
  ]
  for (const [policy, what, statuses, phase] of cases) {
    t.equal(phaseOf(aPod(policy), statuses, []), phase, `${policy}: ${what}`)
  }
})

test('a pod is Pending until its init containers are done, and Failed where one fails for good', async (t) => {
  const two = [waiting, waiting]
  const plain = [{}, {}]
  const sidecar = [{ restartPolicy: 'Always' }]
  const cases: readonly [string, Pod, readonly ContainerStatus[], readonly ContainerStatus[], PodPhase][] = [
    ['none has run', aPod('Always', plain), two, [waiting, waiting], 'Pending'],
    ['the first is done', aPod('Always', plain), two, [ended(0), waiting], 'Pending'],
    ['one failed, and is started again', aPod('Always', plain), two, [crashed, waiting], 'Pending'],
    ['one failed for good', aPod('Never', plain), two, [ended(1), waiting], 'Failed'],
    ['one failed for good before', aPod('Never', plain), two, [crashed, waiting], 'Failed'],
    ['all are done', aPod('Always', plain), [running, running], [ended(0), ended(0)], 'Running'],
    ['a sidecar has not started', aPod('Always', sidecar), two, [waiting], 'Pending'],
    ['a sidecar runs, the others start', aPod('Always', sidecar), two, [running], 'Pending'],
    ['a sidecar runs with them', aPod('Always', sidecar), [running, running], [running], 'Running'],
    ['a sidecar that failed fails no pod', aPod('Never', sidecar), [running, running], [ended(1)], 'Running'],
  ]
  for (const [what, pod, statuses, inits, phase] of cases) t.equal(phaseOf(pod, statuses, inits), phase, what)
})

test('a container that was started shows that the init containers are done', async (t) => {
  const pod = aPod('Always', [{}])
  t.equal(isInitialized(pod, [waiting], [waiting]), false)
  t.equal(isInitialized(pod, [waiting], [ended(0)]), true)
  t.equal(isInitialized(pod, [running], [waiting]), true, 'their results may be lost')
  t.equal(isInitialized(pod, [ended(1)], [waiting]), true)
})

test('the init containers that a pod waits for', async (t) => {
  const pod = aPod('Always', [{}, { restartPolicy: 'Always' }, {}])
  const named = (status: ContainerStatus, name: string) => ({ ...status, name })
  const statuses = [named(ended(0), 'init-0'), named(waiting, 'init-1'), named(waiting, 'init-2')]
  t.same(incomplete(pod, statuses), ['init-1', 'init-2'])
  const started = [named(ended(0), 'init-0'), named({ ...running, ready: false }, 'init-1'), named(ended(1), 'init-2')]
  t.same(incomplete(pod, started), ['init-2'], 'a sidecar need not be ready')
})
