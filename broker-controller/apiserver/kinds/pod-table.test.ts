import { test } from 'tap'
import type { Container, ContainerStatus, Pod, PodPhase } from '../../../api/pod.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { podTable } from './pod-table.ts'

const nowMs = Date.parse('2026-01-01T00:10:00Z')
const row = (object: Pod) => {
  const cells = podTable.cells(object, nowMs)
  return Object.fromEntries(podTable.columns.map(({ name }, index) => [name, cells[index]]))
}

const running = (over: Partial<ContainerStatus> = {}): ContainerStatus => ({
  name: 'main',
  ready: true,
  restartCount: 0,
  image: 'i',
  imageID: 'i',
  state: { running: {} },
  ...over,
})
const podWith = (containerStatuses: readonly ContainerStatus[], status: Pod['status'] = {}) =>
  aPod({ phase: 'Running', status: { containerStatuses, ...status } })
const ready = { conditions: [{ type: 'Ready', status: 'True' }] } as const

test('the status of a pod sums up its containers in one word', async (t) => {
  const word = (pod: Pod) => row(pod)['Status']
  t.equal(word(aPod()), 'Pending')
  t.equal(word(podWith([running()])), 'Running')
  t.equal(word(aPod({ phase: 'Failed', status: { reason: 'Evicted' } })), 'Evicted')
  const waiting = running({ ready: false, state: { waiting: { reason: 'CrashLoopBackOff' } } })
  t.equal(word(podWith([waiting])), 'CrashLoopBackOff')
  t.equal(word(podWith([waiting, running({ state: { waiting: { reason: 'ErrImagePull' } } })])), 'CrashLoopBackOff')
  const done = running({ ready: false, state: { terminated: { exitCode: 0, reason: 'Completed' } } })
  t.equal(word(podWith([done])), 'Completed')
  t.equal(word(podWith([done, running()], ready)), 'Running', 'another one is still there')
  t.equal(word(podWith([done, running()])), 'NotReady')
  t.equal(word(podWith([running({ state: { terminated: { exitCode: 3 } } })])), 'ExitCode:3')
  t.equal(word(podWith([running({ state: { terminated: { exitCode: 137, signal: 9 } } })])), 'Signal:9')
  const deleted = { deletionTimestamp: '2026-01-01T00:09:00Z' }
  t.equal(word(aPod({ metadata: deleted, phase: 'Running' })), 'Terminating')
  t.equal(word(aPod({ metadata: deleted, phase: 'Running', status: { reason: 'NodeLost' } })), 'Unknown')
  t.equal(word(aPod({ metadata: deleted, phase: 'Succeeded' })), 'Succeeded')
  const gated = { type: 'PodScheduled', status: 'False', reason: 'SchedulingGated' } as const
  t.equal(word(aPod({ status: { conditions: [gated] } })), 'SchedulingGated')
})

test('a pod that initializes shows its progress', async (t) => {
  const initContainers = [{ name: 'one' }, { name: 'two' }]
  const word = (...initContainerStatuses: ContainerStatus[]) =>
    row(aPod({ spec: { initContainers }, status: { initContainerStatuses } }))['Status']
  const over = running({ name: 'one', state: { terminated: { exitCode: 0 } } })
  t.equal(word(running({ name: 'one' })), 'Init:0/2')
  t.equal(word(over, running({ name: 'two', state: { waiting: { reason: 'PodInitializing' } } })), 'Init:1/2')
  t.equal(word(over, running({ name: 'two', state: { waiting: { reason: 'ErrImagePull' } } })), 'Init:ErrImagePull')
  t.equal(word(over, running({ name: 'two', state: { terminated: { exitCode: 2 } } })), 'Init:ExitCode:2')
})

test('the row of a pod shows ready containers, restarts and addresses', async (t) => {
  const crashed = { terminated: { exitCode: 1, finishedAt: '2026-01-01T00:05:00Z' } }
  const pod = aPod({
    nodeName: 'pi-01',
    phase: 'Running',
    containers: [{ name: 'main' }, { name: 'side' }],
    status: {
      podIP: '10.1.0.5',
      containerStatuses: [running({ restartCount: 2, lastState: crashed }), running({ name: 'side', ready: false })],
    },
  })
  t.same(row(pod), {
    Name: 'a-pod',
    Ready: '1/2',
    Status: 'Running',
    Restarts: '2 (5m ago)',
    Age: '10m',
    IP: '10.1.0.5',
    Node: 'pi-01',
    'Nominated Node': '<none>',
    'Readiness Gates': '<none>',
  })
})

test('a pod that has ended may be hidden', async (t) => {
  const conditions = (phase: PodPhase) => podTable.rowConditions?.(aPod({ phase }))
  const completed = { type: 'Completed', status: 'True' }
  t.same(conditions('Succeeded'), [
    { ...completed, reason: 'Succeeded', message: 'The pod has completed successfully.' },
  ])
  t.same(conditions('Failed'), [{ ...completed, reason: 'Failed', message: 'The pod failed.' }])
  t.equal(conditions('Running'), undefined)
})

const ended = (exitCode: number, more: object = {}): ContainerStatus['state'] => ({ terminated: { exitCode, ...more } })
const waiting = (reason: string): ContainerStatus['state'] => ({ waiting: { reason } })
const sidecar: Container = { name: 'proxy', restartPolicy: 'Always' }
const withInit = (
  initContainers: readonly Container[],
  initContainerStatuses: readonly ContainerStatus[],
  status: Pod['status'] = {},
) => aPod({ spec: { initContainers }, phase: 'Running', status: { initContainerStatuses, ...status } })

test('a sidecar counts as a container, and initializes until it has started', async (t) => {
  const seen = (state: Partial<ContainerStatus>, status?: Pod['status']) => {
    const { Ready, Status } = row(withInit([sidecar], [running({ name: 'proxy', ...state })], status))
    return `${Ready} ${Status}`
  }
  const done = { conditions: [{ type: 'Initialized', status: 'True' }] } as const
  t.equal(seen({ ready: false, started: false }), '0/2 Init:0/1')
  t.equal(seen({ ready: false, state: waiting('PodInitializing') }), '0/2 Init:0/1')
  t.equal(seen({ ready: false, started: true }), '0/2 Running')
  t.equal(seen({ started: true }), '1/2 Running')
  t.equal(seen({ started: true }, { ...done, containerStatuses: [running()] }), '2/2 Running')
  t.equal(seen({ ready: false, state: ended(0) }, { ...done, containerStatuses: [running()] }), '1/2 Running')
})

test('an init container that failed shows why', async (t) => {
  const word = (state: ContainerStatus['state']) =>
    row(withInit([{ name: 'one' }], [running({ name: 'one', ready: false, state })]))['Status']
  t.equal(word(ended(1, { reason: 'Error' })), 'Init:Error')
  t.equal(word(ended(137, { signal: 9 })), 'Init:Signal:9')
  t.equal(word(waiting('CrashLoopBackOff')), 'Init:CrashLoopBackOff')
  t.equal(word(waiting('')), 'Init:0/1')
})

test('restarts are those of init containers while they run, and then those of sidecars and containers', async (t) => {
  const at = (finishedAt: string) => ({ terminated: { exitCode: 1, finishedAt } })
  const [early, late] = [at('2026-01-01T00:04:00Z'), at('2026-01-01T00:08:00Z')]
  const init = [{ name: 'one' }, sidecar]
  const one = running({ name: 'one', restartCount: 2, lastState: late, state: ended(1, { reason: 'Error' }) })
  t.equal(row(withInit(init, [one]))['Restarts'], '2 (2m ago)')
  const over = [
    { ...one, state: ended(0) },
    running({ name: 'proxy', started: true, restartCount: 3, lastState: early }),
  ]
  const containerStatuses = [running({ restartCount: 4 })]
  t.equal(row(withInit(init, over, { containerStatuses }))['Restarts'], '7 (6m ago)')
  t.equal(
    row(podWith([running({ restartCount: 1, lastState: early }), running({ lastState: late })]))['Restarts'],
    '1 (2m ago)',
  )
  t.equal(row(podWith([running({ restartCount: 1 })]))['Restarts'], '1')
  t.equal(row(podWith([running({ lastState: late })]))['Restarts'], '0')
})

test('a sidecar that fails later shows in the row of a pod that runs, as far as it is seen', async (t) => {
  const conditions = [
    { type: 'Initialized', status: 'True' },
    { type: 'Ready', status: 'False' },
  ] as const
  const init = [sidecar, { ...sidecar, name: 'logs' }]
  const failed = running({
    name: 'proxy',
    ready: false,
    started: false,
    restartCount: 3,
    state: waiting('CrashLoopBackOff'),
  })
  const logs = running({ name: 'logs', started: true, restartCount: 5 })
  const seen = (containerStatuses: readonly ContainerStatus[]) => {
    const { Ready, Status, Restarts } = row(withInit(init, [failed, logs], { conditions, containerStatuses }))
    return [Ready, Status, Restarts]
  }
  t.same(seen([running({ restartCount: 1 })]), ['1/3', 'Init:CrashLoopBackOff', '4'])
  t.same(seen([running({ ready: false, state: ended(1, { reason: 'Error' }) })]), ['0/3', 'Error', '3'])
  t.same(row(withInit(init, [failed, logs]))['Restarts'], '3', 'of those that follow, nothing is counted')
})

test('readiness gates are those whose condition is True', async (t) => {
  const gates = (...conditions: NonNullable<NonNullable<Pod['status']>['conditions']>) =>
    row(aPod({ spec: { readinessGates: [{ conditionType: 'a' }, { conditionType: 'b' }] }, status: { conditions } }))[
      'Readiness Gates'
    ]
  t.equal(gates(), '0/2')
  t.equal(gates({ type: 'a', status: 'True' }, { type: 'b', status: 'False' }, { type: 'c', status: 'True' }), '1/2')
})

test('the row of a pod names its address, its node and the node that it waits for', async (t) => {
  const podIPs = [{ ip: '2001:db8::5' }, { ip: '192.0.2.5' }]
  t.match(row(aPod({ nodeName: 'pi-01', status: { podIPs, nominatedNodeName: 'pi-02' } })), {
    IP: '2001:db8::5',
    Node: 'pi-01',
    'Nominated Node': 'pi-02',
  })
  t.match(row(aPod()), { IP: '<none>', Node: '<none>', 'Nominated Node': '<none>' })
})
