import { test } from 'tap'
import type { Container, PodStatus } from '../../../api/pod.ts'
import { aPod } from '../../../api/testing/builders.ts'
import type { RuntimeContainer } from '../../runtime/runtime.ts'
import { aContainer } from '../../testing/builders.ts'
import { podStatus, type StatusFacts } from './pod-status.ts'

const nowWallMs = Date.parse('2026-01-02T00:00:00Z')

function pod(restartPolicy: 'Always' | 'OnFailure' | 'Never' = 'Always', ...names: readonly string[]) {
  const containers = (names.length === 0 ? ['main'] : names).map((name): Container => ({ name, image: 'app:1' }))
  return aPod({ name: 'web', restartPolicy, containers })
}

function facts(containers: readonly RuntimeContainer[], over: Partial<StatusFacts> = {}): StatusFacts {
  return {
    containers,
    waiting: new Map(),
    vitals: new Map(),
    messages: new Map(),
    last: undefined,
    hostIP: '192.0.2.1',
    nowWallMs,
    ...over,
  }
}

function found(containerName: string, over: Partial<RuntimeContainer> & { attempt?: number } = {}): RuntimeContainer {
  const { attempt = 0, ...rest } = over
  return aContainer({
    id: `${containerName}${attempt}`,
    identity: { containerName, attempt },
    imageID: 'docker://sha256:1',
    createdAt: '2026-01-01T00:00:00.123456789Z',
    startedAt: '2026-01-01T00:00:01.5Z',
    ip: containerName === '' ? '10.1.0.5' : undefined,
    ...rest,
  })
}

const sandbox = found('')
const ended = (exitCode: number) => ({ state: 'exited', exitCode, finishedAt: '2026-01-01T00:01:00Z' }) as const

test('termination messages are shown in the state and the last state; a pod’s containers share the limit', async (t) => {
  const first = { ...found('main', ended(1)), id: 'a' }
  const second = found('main', { ...ended(2), attempt: 1, id: 'b' })
  const messages = new Map([
    ['a', 'first'],
    ['b', 'x'.repeat(4096)],
  ])
  const one = podStatus(pod('Never'), facts([sandbox, second, first], { messages }))
  t.match(one.containerStatuses, [
    { state: { terminated: { message: 'x'.repeat(4096) } }, lastState: { terminated: { message: 'first' } } },
  ])
  const names = ['main', 'n', 'o', 'p']
  const four = podStatus(pod('Never', ...names), facts([sandbox, second], { messages }))
  t.equal(four.containerStatuses?.[0]?.state?.terminated?.message?.length, 3072)
  const later = podStatus(pod('Never', ...names), facts([sandbox, second], { last: four }))
  t.same(later.containerStatuses?.[0]?.state, four.containerStatuses?.[0]?.state, 'reported before, and gone since')
})

test('init containers share the limit of termination messages with the others', async (t) => {
  const base = pod('Never', 'main', 'other')
  const initContainers = ['first', 'second'].map((name): Container => ({ name, image: 'app:1' }))
  const staged = { ...base, spec: { ...base.spec, initContainers } }
  const messages = new Map(['first0', 'main0'].map((id) => [id, 'x'.repeat(4096)]))
  const containers = [sandbox, ...['first', 'second', 'main', 'other'].map((name) => found(name, ended(0)))]
  const status = podStatus(staged, facts(containers, { messages }))
  t.equal(status.initContainerStatuses?.[0]?.state?.terminated?.message?.length, 3072)
  t.equal(status.containerStatuses?.[0]?.state?.terminated?.message?.length, 3072)
})

test('a pod with a container that waits to run again goes on, whatever the restart policy', async (t) => {
  const containers = [sandbox, found('a', ended(0)), found('b', ended(0))]
  const waiting = new Map([['b', { reason: 'CrashLoopBackOff', message: 'back-off 10s' }]])
  t.equal(podStatus(pod('Never', 'a', 'b'), facts(containers, { waiting })).phase, 'Running')
  t.equal(podStatus(pod('Never', 'a', 'b'), facts(containers)).phase, 'Succeeded')
})

test('a pod has an address while its sandbox runs, and one that has ended keeps its last', async (t) => {
  const stopped = found('', { state: 'exited' })
  const host = aPod({ name: 'web', spec: { hostNetwork: true } })
  t.equal(podStatus(pod(), facts([stopped, found('main', ended(1))])).podIP, undefined)
  t.equal(podStatus(host, facts([])).podIP, undefined)
  const over = [stopped, found('main', ended(0))]
  t.equal(podStatus(pod('Never'), facts(over)).podIP, undefined, 'to an agent that starts again it is unknown')
  const last: PodStatus = { phase: 'Running', podIP: '10.1.0.5' }
  t.match(podStatus(pod('Never'), facts(over, { last })), { podIP: '10.1.0.5', podIPs: [{ ip: '10.1.0.5' }] })
})

test('without an address of the host none is shown', async (t) => {
  const status = podStatus(pod(), facts([sandbox, found('main')], { hostIP: undefined }))
  t.notOk('hostIP' in status)
  t.notOk('hostIPs' in status)
})

test('a pod started with the first of its containers, in whatever order they are found', async (t) => {
  const late = found('main', { createdAt: '2026-01-01T00:05:00Z' })
  t.equal(podStatus(pod(), facts([late, sandbox])).startTime, '2026-01-01T00:00:00Z')
})

test('why a container could not be started stands before what it left', async (t) => {
  const broken = found('main', { state: 'created', error: 'no such file', startedAt: undefined })
  const { containerStatuses } = podStatus(pod('Never'), facts([sandbox, broken], { messages: new Map() }))
  t.match(containerStatuses?.[0]?.state?.terminated, { reason: 'StartError', exitCode: 128, message: 'no such file' })
})

test('a pod that was only bound waits for its containers', async (t) => {
  t.same(podStatus(pod('Always', 'a', 'b'), facts([])), {
    phase: 'Pending',
    conditions: [
      { type: 'PodReadyToStartContainers', status: 'False', lastTransitionTime: '2026-01-02T00:00:00Z' },
      { type: 'Initialized', status: 'True', lastTransitionTime: '2026-01-02T00:00:00Z' },
      ...['Ready', 'ContainersReady'].map((type) => ({
        type,
        status: 'False',
        reason: 'ContainersNotReady',
        message: 'containers with unready status: [a b]',
        lastTransitionTime: '2026-01-02T00:00:00Z',
      })),
      { type: 'PodScheduled', status: 'True', lastTransitionTime: '2026-01-02T00:00:00Z' },
    ],
    hostIP: '192.0.2.1',
    hostIPs: [{ ip: '192.0.2.1' }],
    startTime: '2026-01-02T00:00:00Z',
    containerStatuses: ['a', 'b'].map((name) => ({
      name,
      state: { waiting: { reason: 'ContainerCreating' } },
      ready: false,
      restartCount: 0,
      image: 'app:1',
      imageID: '',
      started: false,
    })),
    qosClass: 'BestEffort',
  })
})

test('a machine with addresses of both IP families shows both, and so does a pod on its network', async (t) => {
  const both = [{ ip: '192.0.2.1' }, { ip: '2001:db8::1' }]
  const running = facts([sandbox, found('main')], { otherHostIP: '2001:db8::1' })
  t.match(podStatus(pod(), running), {
    hostIP: '192.0.2.1',
    hostIPs: both,
    podIP: '10.1.0.5',
    podIPs: [{ ip: '10.1.0.5' }],
  })
  const onHost = { ...pod('Never'), spec: { ...pod('Never').spec, hostNetwork: true } }
  const last = podStatus(onHost, running)
  t.match(last, { hostIPs: both, podIP: '192.0.2.1', podIPs: both })
  const over = [found('', { state: 'exited' }), found('main', ended(0))]
  t.match(podStatus(onHost, facts(over, { last })), { podIP: '192.0.2.1', podIPs: both }, 'after its end, too')
})

test('a pod with addresses of both IP families shows that of IPv4 first, and keeps both after its end', async (t) => {
  const both = [{ ip: '10.1.0.5' }, { ip: 'fd00:10:244:1::5' }]
  const running = facts([found('', { ipv6: 'fd00:10:244:1::5' }), found('main')])
  const last = podStatus(pod('Never'), running)
  t.match(last, { podIP: '10.1.0.5', podIPs: both, hostIPs: [{ ip: '192.0.2.1' }] })
  t.equal(last.podIPs?.length, 2)
  t.equal(last.hostIPs?.length, 1, 'a machine may have one family only')
  const over = [found('', { state: 'exited' }), found('main', ended(0))]
  t.match(podStatus(pod('Never'), facts(over, { last })), { podIP: '10.1.0.5', podIPs: both })
  const restarting = podStatus(pod(), facts(over, { last }))
  t.notOk('podIP' in restarting || 'podIPs' in restarting, 'a pod that runs again gets other addresses')
})

test('a pod whose sandbox has one family only shows one address, also on a machine that has both', async (t) => {
  const shown = podStatus(pod(), facts([sandbox, found('main')], { otherHostIP: '2001:db8::1' }))
  t.same(shown.podIPs, [{ ip: '10.1.0.5' }])
  const again = podStatus(pod(), facts([sandbox, found('main')], { last: { ...shown, podIPs: [{ ip: 'fd00::5' }] } }))
  t.same(again.podIPs, [{ ip: '10.1.0.5' }], 'addresses of an earlier sandbox are not those of a running one')
})

test('on the network of the machine a pod has none of the addresses that its sandbox is found with', async (t) => {
  const onHost = aPod({ name: 'web', spec: { hostNetwork: true } })
  const odd = found('', { ip: '10.1.0.5', ipv6: 'fd00::5' })
  t.same(podStatus(onHost, facts([odd, found('main')], { otherHostIP: '2001:db8::1' })).podIPs, [
    { ip: '192.0.2.1' },
    { ip: '2001:db8::1' },
  ])
  t.same(podStatus(onHost, facts([odd, found('main')])).podIPs, [{ ip: '192.0.2.1' }])
})

test('a running pod shows its addresses and its start time', async (t) => {
  t.match(podStatus(pod(), facts([sandbox, found('main', { attempt: 2 })])), {
    phase: 'Running',
    podIP: '10.1.0.5',
    podIPs: [{ ip: '10.1.0.5' }],
    startTime: '2026-01-01T00:00:00Z',
    containerStatuses: [
      {
        state: { running: { startedAt: '2026-01-01T00:00:01Z' } },
        ready: true,
        started: true,
        restartCount: 2,
        containerID: 'docker://main2',
        imageID: 'docker://sha256:1',
      },
    ],
  })
})

test('phases follow the containers and the restart policy', async (t) => {
  const phase = (policy: 'Always' | 'OnFailure' | 'Never', ...codes: readonly (number | 'runs')[]) => {
    const names = codes.map((_, i) => `c${i}`)
    const containers = codes.map((code, i) => found(`c${i}`, code === 'runs' ? {} : ended(code)))
    return podStatus(pod(policy, ...names), facts([sandbox, ...containers])).phase
  }
  t.equal(phase('Always', 'runs', 1), 'Running')
  t.equal(phase('Always', 0), 'Running')
  t.equal(phase('OnFailure', 0, 0), 'Succeeded')
  t.equal(phase('OnFailure', 0, 1), 'Running')
  t.equal(phase('Never', 0, 0), 'Succeeded')
  t.equal(phase('Never', 0, 1), 'Failed')
  t.equal(phase('Never', 'runs', 1), 'Running')
  const last: PodStatus = { phase: 'Failed' }
  t.equal(podStatus(pod(), facts([sandbox, found('main')], { last })).phase, 'Failed', 'a final phase is never left')
})

test('an ended container shows how it ended', async (t) => {
  const state = (over: Partial<RuntimeContainer>) =>
    podStatus(pod('Never'), facts([sandbox, found('main', over)])).containerStatuses?.[0]?.state?.terminated
  t.match(state(ended(0)), {
    exitCode: 0,
    reason: 'Completed',
    finishedAt: '2026-01-01T00:01:00Z',
    containerID: 'docker://main0',
  })
  t.match(state(ended(2)), { exitCode: 2, reason: 'Error' })
  t.match(state({ ...ended(137), oomKilled: true }), { exitCode: 137, reason: 'OOMKilled' })
  t.match(state({ state: 'created', error: 'no such file', exitCode: 127 }), {
    exitCode: 128,
    reason: 'StartError',
    message: 'no such file',
  })
})

test('a container between two runs shows why it waits, and how it ended', async (t) => {
  const waiting = new Map([['main', { reason: 'CrashLoopBackOff', message: 'back-off 10s' }]])
  const [status] = podStatus(pod(), facts([sandbox, found('main', ended(3))], { waiting })).containerStatuses ?? []
  t.match(status, {
    state: { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 10s' } },
    lastState: { terminated: { exitCode: 3 } },
    ready: false,
  })
  const both = [sandbox, found('main', ended(3)), found('main', { attempt: 1 })]
  t.match(podStatus(pod(), facts(both)).containerStatuses, [
    { state: { running: {} }, lastState: { terminated: { exitCode: 3 } }, restartCount: 1 },
  ])
})

test('a condition keeps its time until it changes', async (t) => {
  const since = (status: PodStatus) => status.conditions?.find(({ type }) => type === 'Ready')?.lastTransitionTime
  const before = podStatus(pod(), facts([sandbox, found('main')]))
  t.equal(since(before), '2026-01-01T00:00:01Z', 'to an agent that starts again, since the container started')
  const later = facts([sandbox, found('main')], { last: before, nowWallMs: nowWallMs + 60_000 })
  t.same(podStatus(pod(), later), before)
  t.equal(since(podStatus(pod(), { ...later, containers: [sandbox, found('main', ended(1))] })), '2026-01-02T00:01:00Z')
})

test('a container that vanished while it ran is reported as unknown', async (t) => {
  const last = podStatus(pod(), facts([sandbox, found('main', { attempt: 1 })]))
  t.match(podStatus(pod(), facts([sandbox], { last })).containerStatuses, [
    { lastState: { terminated: { exitCode: 137, reason: 'ContainerStatusUnknown' } }, restartCount: 1 },
  ])
})

test('on the host’s network a pod has the host’s address', async (t) => {
  const host = aPod({ name: 'web', spec: { hostNetwork: true } })
  t.match(podStatus(host, facts([found('', { ip: undefined })])), { podIP: '192.0.2.1' })
})

test('a pod is pending until its init containers are done; then they count as ready', async (t) => {
  const initContainers: readonly Container[] = [
    { name: 'first', image: 'app:1' },
    { name: 'side', image: 'app:1', restartPolicy: 'Always' },
  ]
  const staged = { ...pod(), spec: { ...pod().spec, initContainers } }
  const initialized = (status: PodStatus) => status.conditions?.find(({ type }) => type === 'Initialized')
  const working = podStatus(staged, facts([sandbox, found('first')]))
  t.match(working, {
    phase: 'Pending',
    initContainerStatuses: [
      { name: 'first', ready: false, state: { running: {} } },
      { name: 'side', ready: false, started: false, state: { waiting: { reason: 'PodInitializing' } } },
    ],
    containerStatuses: [{ state: { waiting: { reason: 'PodInitializing' } } }],
  })
  t.match(initialized(working), {
    status: 'False',
    reason: 'ContainersNotInitialized',
    message: 'containers with incomplete status: [first side]',
  })
  const done = podStatus(staged, facts([sandbox, found('first', ended(0)), found('side'), found('main')]))
  t.match(done, { phase: 'Running', initContainerStatuses: [{ ready: true }, { ready: true, started: true }] })
  t.match(initialized(done), { status: 'True' })
  const vitals = new Map([['side0', { started: true, ready: false }]])
  const halfReady = podStatus(staged, facts([sandbox, found('side'), found('main')], { vitals }))
  t.match(
    halfReady.conditions?.find(({ type }) => type === 'Ready'),
    { status: 'False', message: 'containers with unready status: [side]' },
    'a sidecar counts',
  )
  t.equal(podStatus(staged, facts([sandbox, found('first', ended(1))])).phase, 'Pending')
  const never = { ...staged, spec: { ...staged.spec, restartPolicy: 'Never' } }
  t.equal(podStatus(never, facts([sandbox, found('first', ended(1))])).phase, 'Failed')
})

test('a pod waits for its readiness gates, in Kubernetes’ words', async (t) => {
  const gates = [{ conditionType: 'example.com/a' }, { conditionType: 'example.com/b' }]
  const readyWith = (conditions: PodStatus['conditions'] = [], containers = [sandbox, found('main')]) => {
    const web = pod()
    const gated = { ...web, spec: { ...web.spec, readinessGates: gates }, status: { conditions } }
    const { conditions: found = [] } = podStatus(gated, facts(containers))
    return found.filter(({ type }) => type.endsWith('Ready'))
  }
  t.match(readyWith([{ type: 'example.com/b', status: 'Unknown' }]), [
    {
      type: 'Ready',
      status: 'False',
      reason: 'ReadinessGatesNotReady',
      message:
        'corresponding condition of pod readiness gate "example.com/a" does not exist., ' +
        'the status of pod readiness gate "example.com/b" is not "True", but Unknown',
    },
    { type: 'ContainersReady', status: 'True' },
  ])
  const open = gates.map(({ conditionType: type }) => ({ type, status: 'True' }) as const)
  t.match(readyWith(open), [{ status: 'True', lastTransitionTime: '2026-01-02T00:00:00Z' }, { status: 'True' }])
  t.match(readyWith(open, [sandbox]), [{ reason: 'ContainersNotReady' }, { reason: 'ContainersNotReady' }])
})

test('a container that was added later is shown, and counts for nothing', async (t) => {
  const web = pod()
  const debugged = { ...web, spec: { ...web.spec, ephemeralContainers: [{ name: 'look', image: 'app:1' }] } }
  const waits = podStatus(debugged, facts([sandbox, found('main')]))
  t.match(waits, { phase: 'Running', ephemeralContainerStatuses: [{ state: { waiting: {} }, ready: false }] })
  const over = podStatus(debugged, facts([sandbox, found('main'), found('look', ended(3))]))
  t.match(over, { phase: 'Running', ephemeralContainerStatuses: [{ state: { terminated: { exitCode: 3 } } }] })
  t.ok(over.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True'))
  const lost = podStatus(debugged, facts([sandbox, found('main')], { last: over }))
  t.match(lost.ephemeralContainerStatuses, [{ state: { terminated: { exitCode: 3 } } }])
  const running = podStatus(debugged, facts([sandbox, found('main'), found('look')]))
  const gone = podStatus(debugged, facts([sandbox, found('main')], { last: running }))
  t.match(gone.ephemeralContainerStatuses, [{ state: { terminated: { reason: 'ContainerStatusUnknown' } } }])
})

test('a pod on the engine’s own network has no address where the fleet has a network, and one on that of its node has', async (t) => {
  const containers = [sandbox, found('main')]
  t.equal(podStatus(pod(), facts(containers)).podIP, '10.1.0.5')
  const off = podStatus(pod(), facts(containers, { isOffNetwork: true }))
  t.notOk('podIP' in off || 'podIPs' in off)
  t.match(off, { phase: 'Running', hostIP: '192.0.2.1' })
  const { spec, ...onNetwork } = pod()
  const onHost = { ...onNetwork, spec: { ...spec, hostNetwork: true } }
  t.equal(podStatus(onHost, facts(containers, { isOffNetwork: true })).podIP, '192.0.2.1')
})

test('statuses are in the order of names, those of init containers in the order of their start', async (t) => {
  const named = (...names: readonly string[]) => names.map((name): Container => ({ name, image: 'app:1' }))
  const base = pod('Always', 'web', 'app')
  const spec = { ...base.spec, initContainers: named('second', 'first'), ephemeralContainers: named('look', 'debug') }
  const status = podStatus({ ...base, spec }, facts([sandbox]))
  const namesOf = (statuses: PodStatus['containerStatuses'] = []) => statuses.map(({ name }) => name)
  t.same(namesOf(status.containerStatuses), ['app', 'web'])
  t.same(namesOf(status.initContainerStatuses), ['second', 'first'])
  t.same(namesOf(status.ephemeralContainerStatuses), ['debug', 'look'])
  const unready = status.conditions?.find(({ type }) => type === 'ContainersReady')?.message
  t.equal(
    unready,
    'containers with unready status: [web app]',
    'conditions name them in the order of the specification',
  )
})

test('an ephemeral container of a pod with init containers waits as the others, and shares their messages', async (t) => {
  const base = pod('Always', 'main', 'b')
  const [other] = base.spec.containers
  const spec = {
    ...base.spec,
    initContainers: [{ name: 'first', image: 'app:1' }],
    ephemeralContainers: [{ ...other, name: 'look' }],
  }
  const waits = podStatus({ ...base, spec }, facts([sandbox]))
  t.match(waits.ephemeralContainerStatuses, [{ state: { waiting: { reason: 'PodInitializing' } } }])
  const messages = new Map(['main0', 'look0'].map((id) => [id, 'x'.repeat(4096)]))
  const over = podStatus(
    { ...base, spec },
    facts([sandbox, found('main', ended(1)), found('look', ended(1))], { messages }),
  )
  t.equal(over.containerStatuses?.[1]?.state?.terminated?.message?.length, 3072)
  t.equal(over.ephemeralContainerStatuses?.[0]?.state?.terminated?.message?.length, 3072)
})
