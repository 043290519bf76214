import { test } from 'tap'
import type { ContainerStatus, Pod, PodCondition, PodPhase } from '../../../api/pod.ts'
import { aPod } from '../../../api/testing/builders.ts'
import type { RuntimeContainer } from '../../runtime/runtime.ts'
import { aContainer } from '../../testing/builders.ts'
import { conditionsOf } from './pod-conditions.ts'

const startTime = '2026-01-01T00:00:00Z'
const now = '2026-01-02T00:00:00Z'
const [up, later] = ['2026-01-01T00:00:05Z', '2026-01-01T00:00:09Z']
const base = { ready: false, started: false, restartCount: 0, image: 'app:1', imageID: '' }
const running = (name: string, startedAt = up): ContainerStatus => ({
  ...{ ...base, name, ready: true, started: true, state: { running: { startedAt } } },
})
const waiting = (name: string): ContainerStatus => ({ ...base, name, state: { waiting: {} } })
const ended = (name: string, exitCode: number): ContainerStatus => ({
  ...{ ...base, name, ready: exitCode === 0, state: { terminated: { exitCode } } },
})

type Given = {
  readonly pod?: Pod
  readonly phase?: PodPhase
  readonly sandbox?: RuntimeContainer
  readonly containers?: readonly ContainerStatus[]
  readonly inits?: readonly ContainerStatus[]
  readonly last?: readonly PodCondition[]
}

function conditions({ pod = aPod(), phase = 'Running', containers = [], inits = [], sandbox, last }: Given) {
  const found = conditionsOf({
    ...{ pod, phase, sandbox, startTime, last, nowWallMs: Date.parse(now) },
    ...{ containerStatuses: containers, initStatuses: inits },
  })
  return Object.fromEntries(found.map(({ type, ...rest }) => [type, rest]))
}

const initContainers = [{ name: 'first' }, { name: 'side', restartPolicy: 'Always' }, { name: 'last' }]
const staged = aPod({ spec: { initContainers } })
const unready = (names: string) => ({
  ...{ status: 'False', reason: 'ContainersNotReady', message: `containers with unready status: [${names}]` },
})

test('all conditions of a pod stand in the order of the kubelet', async (t) => {
  const all = conditionsOf({
    ...{ pod: aPod(), phase: 'Running', startTime, last: undefined, nowWallMs: Date.parse(now) },
    ...{ sandbox: aContainer({ startedAt: `${up.slice(0, -1)}.7Z` }), initStatuses: [] },
    containerStatuses: [running('a', later), running('b')],
  })
  t.same(all, [
    { type: 'PodReadyToStartContainers', status: 'True', lastTransitionTime: up },
    { type: 'Initialized', status: 'True', lastTransitionTime: startTime },
    { type: 'Ready', status: 'True', lastTransitionTime: later },
    { type: 'ContainersReady', status: 'True', lastTransitionTime: later },
    { type: 'PodScheduled', status: 'True', lastTransitionTime: startTime },
  ])
})

test('a pod can start containers while its sandbox runs', async (t) => {
  const state = (sandbox?: RuntimeContainer) =>
    conditions(sandbox === undefined ? {} : { sandbox })['PodReadyToStartContainers']
  t.same(state(), { status: 'False', lastTransitionTime: startTime })
  t.match(state(aContainer({ state: 'exited' })), { status: 'False' })
  t.match(state(aContainer({ state: 'created' })), { status: 'False' })
  t.match(state(aContainer({})), { status: 'True' })
})

test('a pod is initialized when its init containers are done and its sidecars have started', async (t) => {
  const initialized = (inits: readonly ContainerStatus[], more: Given = {}) =>
    conditions({ pod: staged, phase: 'Pending', inits, ...more })['Initialized']
  const incomplete = (names: string) => ({
    ...{ status: 'False', reason: 'ContainersNotInitialized' },
    message: `containers with incomplete status: [${names}]`,
  })
  t.match(initialized([waiting('first'), waiting('side'), waiting('last')]), incomplete('first side last'))
  t.match(initialized([ended('first', 0), running('side'), ended('last', 1)]), incomplete('last'))
  const unreadySidecar = { ...running('side'), ready: false }
  const done = { status: 'True', lastTransitionTime: startTime }
  t.same(initialized([ended('first', 0), unreadySidecar, ended('last', 0)]), done)
  t.match(initialized([ended('first', 0), waiting('side'), ended('last', 0)]), incomplete('side'))
  const lost = [waiting('first'), waiting('side'), waiting('last')]
  t.same(initialized(lost, { containers: [running('main')] }), done, 'a regular container was started')
  t.match(initialized(lost, { phase: 'Succeeded' }), { status: 'True', reason: 'PodCompleted' })
  t.match(initialized([ended('first', 1), waiting('side'), waiting('last')], { phase: 'Failed' }), {
    ...incomplete('first side last'),
  })
})

test('a pod is ready when its containers and sidecars are', async (t) => {
  const both = (given: Given) => {
    const { Ready, ContainersReady } = conditions({ pod: staged, ...given })
    t.same(Ready, ContainersReady)
    return ContainersReady
  }
  const inits = [ended('first', 0), running('side'), ended('last', 0)]
  t.match(both({ inits, containers: [running('a'), running('b')] }), { status: 'True' })
  t.match(both({ inits, containers: [waiting('a'), running('b'), ended('c', 1)] }), unready('a c'))
  const slow = [ended('first', 0), { ...running('side'), ready: false }, ended('last', 0)]
  t.match(both({ inits: slow, containers: [waiting('a')] }), unready('side a'), 'sidecars first')
  t.match(both({ inits: [waiting('first'), running('side')], containers: [running('a')] }), { status: 'True' })
  for (const [phase, reason] of [
    ['Succeeded', 'PodCompleted'],
    ['Failed', 'PodFailed'],
  ] as const)
    t.same(both({ phase, inits, containers: [ended('a', 0)] }), {
      ...{ status: 'False', reason, lastTransitionTime: startTime },
    })
})

test('readiness gates keep a pod with ready containers from being ready', async (t) => {
  const gate = 'example.com/checked'
  const ready = (status?: PodCondition['status'], containers = [running('a')]) => {
    const given = status === undefined ? [] : [{ type: gate, status }]
    const pod = aPod({ spec: { readinessGates: [{ conditionType: gate }] }, status: { conditions: given } })
    const { Ready, ContainersReady } = conditions({ pod, containers })
    return [Ready, ContainersReady]
  }
  const closed = (message: string) => ({ status: 'False', reason: 'ReadinessGatesNotReady', message })
  t.match(ready(), [
    closed(`corresponding condition of pod readiness gate "${gate}" does not exist.`),
    { status: 'True', lastTransitionTime: up },
  ])
  for (const status of ['False', 'Unknown'] as const)
    t.match(ready(status), [closed(`the status of pod readiness gate "${gate}" is not "True", but ${status}`), {}])
  t.same(ready('True')[0], { status: 'True', lastTransitionTime: now }, 'its time was not reported')
  t.match(ready('True', [waiting('a')]), [unready('a'), unready('a')])
})

test('a condition keeps its time while its status is the same, whatever its reason', async (t) => {
  const [before, other] = ['2026-01-01T12:00:00Z', '2026-01-01T13:00:00Z']
  const last = (status: 'True' | 'False', lastTransitionTime?: string): readonly PodCondition[] => [
    { type: 'ContainersReady', status: 'True', lastTransitionTime: other },
    { type: 'Ready', status, reason: 'PodFailed', ...(lastTransitionTime !== undefined && { lastTransitionTime }) },
  ]
  const ready = (given: Given) => conditions(given)['Ready']
  t.match(ready({ containers: [running('a')], last: last('True', before) }), { lastTransitionTime: before })
  t.match(ready({ containers: [waiting('a')], last: last('False', before) }), {
    ...{ ...unready('a'), lastTransitionTime: before },
  })
  t.match(ready({ containers: [running('a')], last: last('False', before) }), { lastTransitionTime: now })
  t.match(ready({ containers: [waiting('a')], last: last('True', before) }), { lastTransitionTime: now })
  t.notOk('lastTransitionTime' in (ready({ containers: [running('a')], last: last('True') }) ?? {}))
})
