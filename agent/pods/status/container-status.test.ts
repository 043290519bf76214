import { test } from 'tap'
import type { ContainerStatus } from '../../../api/pod.ts'
import type { RuntimeContainer } from '../../runtime/runtime.ts'
import { aContainer } from '../../testing/builders.ts'
import { sortContainers } from '../record/pod-containers.ts'
import { type ContainerFacts, containerStatus, ephemeralStatus, initStatus } from './container-status.ts'

const main = { name: 'main', image: 'app:1' }
const noFacts: ContainerFacts = { waiting: new Map(), vitals: new Map(), messages: new Map(), last: undefined }

function statusOf(
  found: readonly RuntimeContainer[],
  facts: Partial<ContainerFacts> = {},
  creating = 'PodInitializing',
) {
  return containerStatus(main, creating, sortContainers(found), { ...noFacts, ...facts })
}

function run(attempt: number, over: Partial<RuntimeContainer> = {}): RuntimeContainer {
  const startedAt = '2026-01-01T00:00:01.9Z'
  return aContainer({ id: `run${attempt}`, identity: { attempt }, imageID: 'sha256:1', startedAt, ...over })
}
const exit = (exitCode: number) => ({ state: 'exited', exitCode, finishedAt: '2026-01-01T00:01:00.5Z' }) as const
const wait = (reason: string, message = '') => ({ waiting: new Map([['main', { reason, message }]]) })
const reported = (status: Partial<ContainerStatus>) => ({
  last: { containerStatuses: [{ ...statusOf([]), restartCount: 2, ...status }] },
})
const runningState = { running: { startedAt: '2026-01-01T00:00:01Z' } }
const ended = (attempt: number, exitCode: number, reason: string) => ({
  terminated: {
    ...{ exitCode, reason, startedAt: '2026-01-01T00:00:01Z', finishedAt: '2026-01-01T00:01:00Z' },
    containerID: `docker://run${attempt}`,
  },
})

test('a running container has the image of the engine, and whole seconds', async (t) => {
  for (const state of ['running', 'paused', 'restarting'] as const)
    t.same(
      statusOf([run(3, { state, image: 'app@sha256:1' })]),
      {
        ...{ name: 'main', state: runningState, ready: true, started: true, restartCount: 3 },
        ...{ image: 'app@sha256:1', imageID: 'sha256:1', containerID: 'docker://run3' },
      },
      state,
    )
  t.same(statusOf([run(0, { startedAt: undefined })]).state, { running: {} })
})

test('probes decide whether it has started and is ready, while it runs', async (t) => {
  const verdict = (found: RuntimeContainer, vital: { started: boolean; ready: boolean }) => {
    const { started, ready } = statusOf([found], { vitals: new Map([['run0', vital]]) })
    return { started, ready }
  }
  t.same(verdict(run(0), { started: false, ready: false }), { started: false, ready: false })
  t.same(verdict(run(0), { started: true, ready: false }), { started: true, ready: false })
  t.same(verdict(run(0, exit(0)), { started: true, ready: true }), { started: false, ready: false })
})

test('an end has its exit code, its reason and its times', async (t) => {
  const stateOf = (over: Partial<RuntimeContainer>) => statusOf([run(0, over)]).state
  t.same(stateOf(exit(0)), ended(0, 0, 'Completed'))
  t.same(stateOf(exit(2)), ended(0, 2, 'Error'))
  t.same(stateOf({ ...exit(137), state: 'dead' }), ended(0, 137, 'Error'))
  t.same(stateOf({ ...exit(137), oomKilled: true }), ended(0, 137, 'OOMKilled'))
  t.same(stateOf({ state: 'created', error: 'no such file', exitCode: 127, startedAt: undefined }), {
    terminated: {
      ...{ exitCode: 128, reason: 'StartError', message: 'no such file' },
      ...{ finishedAt: '2026-01-01T00:00:00Z', containerID: 'docker://run0' },
    },
  })
})

test('its message is the error and the termination message, or that of the last report', async (t) => {
  const message = (error: string, own: string | undefined, last: Partial<ContainerStatus> = {}) => {
    const messages = new Map(own === undefined ? [] : [['run0', own]])
    return statusOf([run(0, { ...exit(1), error })], { messages, ...reported(last) }).state?.terminated?.message
  }
  const [before, other] = ['docker://run0', 'docker://other'].map((containerID) => ({
    terminated: { exitCode: 1, message: 'reported', containerID },
  }))
  t.equal(message('', undefined), undefined)
  t.equal(message('', 'bye'), 'bye')
  t.equal(message('broken', undefined), 'broken')
  t.equal(message('broken', 'bye'), 'broken: bye')
  if (before === undefined || other === undefined) throw new Error('two reports')
  t.equal(message('', undefined, { state: before }), 'reported')
  t.equal(message('', undefined, { state: { waiting: {} }, lastState: before }), 'reported')
  t.equal(message('', '', { state: before }), 'reported')
  t.equal(message('', 'bye', { state: before }), 'bye')
  t.equal(message('', undefined, { state: other, lastState: other }), undefined, 'that of another container')
})

test('the last state is the end of the run before, from the last report if the engine does not have it', async (t) => {
  const lastState = (found: readonly RuntimeContainer[], facts: Partial<ContainerFacts> = {}) =>
    statusOf(found, facts).lastState
  const [first, second] = [ended(0, 1, 'Error'), ended(1, 3, 'Error')]
  t.equal(lastState([run(0)]), undefined)
  t.same(lastState([run(1), run(0, exit(1))]), first)
  t.same(lastState([run(2), run(1, exit(3)), run(0, exit(1))]), second, 'the newest of them')
  t.same(lastState([run(1, exit(0)), run(0, exit(1))]), first, 'also of one that has ended')
  t.equal(lastState([run(1)]), undefined, 'without a report')
  t.same(lastState([run(1)], reported({ state: first, containerID: 'docker://run0' })), first)
  const same = { state: runningState, lastState: first, containerID: 'docker://run1' }
  t.same(lastState([run(1)], reported(same)), first, 'the report is of this container')
  const ownEnd = { state: second, lastState: first, containerID: 'docker://run1' }
  t.same(lastState([run(1, exit(3))], reported(ownEnd)), first, 'its own end is not that of the run before')
  const waited = { state: { waiting: { reason: 'CrashLoopBackOff' } }, lastState: first }
  t.same(lastState([run(1)], reported(waited)), first)
  t.equal(lastState([run(0)], reported({ state: first })), undefined, 'a first run has none before it')
})

test('a container that waits to run again has its end as the last state', async (t) => {
  const found = [run(1, exit(3)), run(0, exit(1))]
  const waits = statusOf(found, wait('CrashLoopBackOff', 'back-off 20s'))
  t.match(waits, {
    ...{ state: { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 20s' } }, restartCount: 1, ready: false },
    ...{ lastState: ended(1, 3, 'Error'), containerID: 'docker://run1' },
  })
  t.same(statusOf(found, wait('ErrImagePull')).state, { waiting: { reason: 'ErrImagePull' } })
  t.same(statusOf(found, wait('ContainerCreating')).state, ended(1, 3, 'Error'), 'it starts again at once')
  t.same(statusOf([run(0)], wait('ErrImagePull')).state, runningState, 'a running one does not wait')
  const halfMade = run(1, { state: 'created', startedAt: undefined })
  t.match(statusOf([halfMade, run(0, exit(1))]), { state: ended(0, 1, 'Error'), restartCount: 0 })
})

test('a container that does not exist waits, for what the pod waits for or for its own reason', async (t) => {
  const never = {
    ...{ name: 'main', state: { waiting: { reason: 'PodInitializing' } }, ready: false, started: false },
    ...{ restartCount: 0, image: 'app:1', imageID: '' },
  }
  t.same(statusOf([]), never)
  t.same(statusOf([run(0, { state: 'created' })]), never)
  t.same(statusOf([], wait('ContainerCreating', 'no network')).state, {
    waiting: { reason: 'PodInitializing', message: 'no network' },
  })
  t.same(statusOf([], {}, 'ContainerCreating').state, { waiting: { reason: 'ContainerCreating' } })
  t.same(statusOf([], wait('ErrImagePull', 'not found')).state, {
    waiting: { reason: 'ErrImagePull', message: 'not found' },
  })
})

test('a container that the engine lost keeps what was reported of it', async (t) => {
  const over = { state: ended(0, 1, 'Error'), ready: true, containerID: 'docker://run0', imageID: 'sha256:1' }
  t.match(statusOf([], reported(over)), { ...over, ready: false, restartCount: 2 })
  t.match(statusOf([], { ...wait('CrashLoopBackOff'), ...reported(over) }), {
    ...{ state: { waiting: { reason: 'CrashLoopBackOff' } }, lastState: over.state, restartCount: 2, ready: false },
  })
  const waited = { state: { waiting: {} }, lastState: over.state }
  t.match(statusOf([], reported(waited)), { state: { waiting: { reason: 'PodInitializing' } }, lastState: over.state })
  t.same(statusOf([], reported({ state: { waiting: {} } })).lastState, undefined)
})

test('one that was lost while it ran has ended for an unknown reason', async (t) => {
  const unknown = {
    exitCode: 137,
    reason: 'ContainerStatusUnknown',
    message: 'The container could not be located when the pod was deleted.  The container used to be Running',
  }
  const lost = statusOf([], reported({ state: runningState, containerID: 'docker://run2' }))
  t.match(lost, { state: { waiting: { reason: 'PodInitializing' } }, restartCount: 2, ready: false, started: false })
  t.same(lost.lastState, { terminated: { ...unknown, ...runningState.running, containerID: 'docker://run2' } })
  t.same(statusOf([], reported({ state: { running: {} } })).lastState, { terminated: unknown })
  const first = ended(1, 3, 'Error')
  t.same(statusOf([], reported({ state: runningState, lastState: first })).lastState, first, 'as the kubelet')
})

test('the last report is found among those of init and ephemeral containers too', async (t) => {
  const [status] = reported({ state: ended(0, 1, 'Error') }).last.containerStatuses
  if (status === undefined) throw new Error('one status')
  const others = [{ ...statusOf([]), name: 'other' }]
  for (const list of ['initContainerStatuses', 'ephemeralContainerStatuses'] as const) {
    const last = { containerStatuses: others, [list]: [...others, status] }
    t.match(statusOf([], { last }), { state: ended(0, 1, 'Error'), restartCount: 2 }, list)
  }
})

test('an init container is ready when it succeeded, a sidecar while it runs', async (t) => {
  const sidecar = { ...main, restartPolicy: 'Always' }
  const ready = (container: typeof main, over: Partial<RuntimeContainer>) =>
    initStatus(container, statusOf([run(0, over)])).ready
  t.same([ready(main, exit(0)), ready(main, exit(1)), ready(main, {})], [true, false, false])
  t.same([ready(sidecar, exit(0)), ready(sidecar, {})], [false, true])
})

test('an ephemeral container is not ready, and has no last state; one that was lost has ended', async (t) => {
  const running = ephemeralStatus(statusOf([run(0)], {}, 'ContainerCreating'))
  t.match(running, { ready: false, state: runningState })
  t.notOk('started' in running || 'lastState' in running)
  const lost = ephemeralStatus(statusOf([], reported({ state: runningState }), 'ContainerCreating'))
  t.match(lost.state, { terminated: { exitCode: 137, reason: 'ContainerStatusUnknown' } })
  t.notOk('lastState' in lost)
  const pulls = { ...wait('ErrImagePull'), ...reported({ state: { waiting: {} } }) }
  t.same(ephemeralStatus(statusOf([], pulls, 'ContainerCreating')).state, { waiting: { reason: 'ErrImagePull' } })
})
