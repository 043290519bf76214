import { type Test, test } from 'tap'
import { shutdownEnding } from '../../api/node-shutdown.ts'
import { aPod } from '../../api/testing/builders.ts'
import { rfc3339 } from '../../daemon/clock.ts'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { fakeRuntime } from '../testing/fake-runtime.ts'
import { fakeVolumes } from '../testing/fake-volumes.ts'
import { memoryCheckpoint, startPods } from '../testing/pod-world.ts'
import { platformProblem } from './platforms.ts'

const image = 'busybox:1.36'
const listening = ['sh', '-c', 'trap "exit 0" TERM; sleep 1000']

function aNode(t: Test, more: Partial<Parameters<typeof startPods>[0]> = {}) {
  const clock = fakeClock()
  const runtime = fakeRuntime(clock)
  runtime.images.add(image)
  const log = quietLog(t)
  const checkpoint = memoryCheckpoint()
  const volumes = fakeVolumes()
  volumes.messages = new Map()
  const start = () => {
    const world = startPods({ runtime, clock, log, checkpoint, volumes, ...more })
    t.teardown(() => world.stop())
    return world
  }
  const running = () => runtime.containers.filter(({ state }) => state === 'running')
  return { clock, runtime, log, checkpoint, messages: volumes.messages, start, running, world: start() }
}

function running(name: string, command: readonly string[] = listening, more: Parameters<typeof aPod>[0] = {}) {
  const container = { name: 'main', image, imagePullPolicy: 'IfNotPresent', command }
  return aPod({ name, containers: [container], ...more })
}

test('a wanted pod runs, and says so', async (t) => {
  const { clock, world } = aNode(t)
  world.want(running('web'))
  await clock.advance(1_000)
  t.match(world.status('web'), {
    phase: 'Running',
    podIP: /^10\.1\.0\./,
    hostIP: '192.0.2.11',
    qosClass: 'BestEffort',
    containerStatuses: [{ name: 'main', ready: true, restartCount: 0, state: { running: {} } }],
    conditions: [
      { type: 'PodReadyToStartContainers', status: 'True' },
      { type: 'Initialized', status: 'True' },
      { type: 'Ready', status: 'True' },
      { type: 'ContainersReady', status: 'True' },
      { type: 'PodScheduled', status: 'True' },
    ],
  })
  t.same(world.told(), [
    'Pulled: Container image "busybox:1.36" already present on machine',
    'Created: Created container: main',
    'Started: Started container main',
  ])
  t.match(world.events[0], {
    involvedObject: { name: 'web', fieldPath: 'spec.containers{main}' },
    source: { host: 'pi-01' },
  })
})

test('a container that asks for the node’s address waits for the first look at the machine, and for nothing else', async (t) => {
  let isNodeKnown = false
  const { clock, runtime, world } = aNode(t, { isNodeKnown: () => isNodeKnown })
  const asking = (fieldPath: string) => ({
    containers: [{ name: 'main', image, env: [{ name: 'IP', valueFrom: { fieldRef: { fieldPath } } }] }],
  })
  world.want(running('asks', listening, asking('status.hostIP')), running('other', listening, asking('metadata.name')))
  await clock.advance(2_000)
  t.equal(world.status('asks')?.phase, 'Pending')
  t.equal(world.status('other')?.phase, 'Running')
  isNodeKnown = true
  await clock.advance(1_000)
  t.equal(world.status('asks')?.phase, 'Running')
  t.notMatch(world.told(), /Failed/)
  const made = runtime.containers.find(({ identity }) => identity.podName === 'asks' && identity.kind === 'container')
  t.same(runtime.optionsOf(made?.id ?? '')?.env.find(({ name }) => name === 'IP')?.value, '192.0.2.11')
})

test('a pod that is wanted in words nobody knows is told of, and left as it is', async (t) => {
  const { clock, runtime, log, checkpoint, world, start, running: runs } = aNode(t)
  const misread = ['old', 'fresh'].map((name) => ({
    kind: 'Pod' as const,
    namespace: 'default',
    name,
    uid: `uid-of-${name}`,
    why: 'spec.x: Unsupported value',
  }))
  world.want(running('old'), running('other'))
  await clock.advance(1_000)
  const before = runs().map(({ id }) => id)
  world.say({ pods: [running('more')], misread })
  await clock.advance(90_000)
  t.same(world.gone, ['uid-of-other'])
  t.equal(world.status('old')?.phase, 'Running')
  t.equal(world.status('more')?.phase, 'Running', 'the others are taken')
  t.equal(world.status('fresh'), undefined, 'what was never known cannot be run')
  const told = world.told().filter((one) => one.startsWith('NotUnderstood'))
  t.equal(told.length, 2)
  t.match(told, [/spec\.x: Unsupported value/])
  t.equal(log.messages('warn').length, 2)
  t.ok(runs().filter(({ id }) => before.includes(id)).length >= 2, 'nothing of the old one was made anew')
  const main = runs().find(({ identity }) => identity.podName === 'old' && identity.kind === 'container')
  runtime.exit(main?.id ?? '', 1)
  await clock.advance(30_000)
  t.equal(world.status('old')?.containerStatuses?.[0]?.restartCount, 1, 'it is started again as it was')

  // Where only its containers are left of it nothing is removed either.
  await world.stop()
  await checkpoint.save({ desired: { epoch: 'one', version: 9, pods: [], misread }, endings: {} })
  const next = start()
  await clock.advance(90_000)
  t.match(
    runs().map(({ identity }) => identity.podName),
    ['old', 'old'],
  )
  t.equal(next.manager.needOf('uid-of-old'), 'needed')
  next.say({ epoch: 'two' })
  await clock.advance(60_000)
  t.same(runs(), [], 'until it is wanted no more')
})

test('a slow pull, and a slow stop, stand in no other pod’s way', async (t) => {
  const { clock, runtime, world } = aNode(t)
  runtime.registry.add('slow:1')
  const release = runtime.holdPulls()
  world.want(
    running('slow', listening, { containers: [{ name: 'main', image: 'slow:1' }] }),
    running('deaf', ['sleep', '1000']),
  )
  await clock.advance(1_000)
  t.match(world.status('slow'), {
    phase: 'Pending',
    containerStatuses: [{ state: { waiting: { reason: 'ContainerCreating' } } }],
  })
  t.equal(world.status('deaf')?.phase, 'Running')
  world.want(running('slow', listening, { containers: [{ name: 'main', image: 'slow:1' }] }), running('quick'))
  await clock.advance(1_000)
  t.equal(world.status('quick')?.phase, 'Running')
  t.same(world.gone, [], 'the deaf one still has its time')
  release()
  await clock.advance(30_000)
  t.equal(world.status('slow')?.phase, 'Running')
  t.same(world.gone, ['uid-of-deaf'])
  t.ok(world.told().includes('Pulling: Pulling image "slow:1"'))
  t.match(
    world.told(),
    /Pulled: Successfully pulled image "slow:1" in 2s \(2s including waiting\)\. Image size: 1000 bytes\./,
  )
})

test('an image that cannot be had is tried again, further and further apart', async (t) => {
  const { clock, runtime, world } = aNode(t)
  world.want(running('web', listening, { containers: [{ name: 'main', image: 'absent:1' }] }))
  const reason = () => world.status('web')?.containerStatuses?.[0]?.state?.waiting?.reason
  await clock.advance(1_000)
  t.equal(reason(), 'ErrImagePull')
  await clock.advance(5_000)
  t.equal(reason(), 'ImagePullBackOff')
  await clock.advance(60_000)
  const pulls = () => runtime.calls.filter(({ method }) => method === 'pullImage').length
  t.equal(pulls(), 3, 'at 0, 10 and 30 s')
  const failed = 'Failed: Failed to pull image "absent:1": manifest for absent:1 not found'
  t.equal(world.told().filter((one) => one === failed).length, 3, 'each pull that failed is told once')
  t.ok(world.told().includes('BackOff: Back-off pulling image "absent:1"'))
  runtime.registry.add('absent:1')
  await clock.advance(10_000)
  t.equal(world.status('web')?.phase, 'Running')
})

test('an image for another kind of machine is said plainly, and the pod runs once the right one is there', async (t) => {
  const machine = { os: 'linux', architecture: 'amd64', variant: '' }
  const { clock, runtime, world } = aNode(t, {
    platformProblem: async (name, platform) => platformProblem(name, platform, machine, []),
  })
  runtime.registry.add('app:1')
  runtime.imagePlatforms.set('app:1', 'linux/arm64')
  world.want(running('web', listening, { containers: [{ name: 'main', image: 'app:1' }] }))
  await clock.advance(1_000)
  const message = /image "app:1" is for linux\/arm64, this machine is linux\/amd64: use an image built for/
  t.match(world.status('web')?.containerStatuses?.[0]?.state?.waiting, { reason: 'ImagePlatformMismatch', message })
  await clock.advance(200_000)
  const failed = world.told().filter((one) => one.startsWith('Failed: Failed to use image: image "app:1" is for'))
  t.equal(failed.length, 1)
  runtime.imagePlatforms.delete('app:1')
  await clock.advance(200_000)
  t.equal(world.status('web')?.phase, 'Running')
})

test('a container that crashes waits as Kubernetes makes it wait', async (t) => {
  const { clock, runtime, running: up, world } = aNode(t)
  world.want(running('web'))
  await clock.advance(1_000)
  const crash = async () => {
    const container = up().find(({ identity }) => identity.kind === 'container')
    runtime.exit(container?.id ?? '', 1)
    await clock.advance(100)
  }
  const restarts = () => world.status('web')?.containerStatuses?.[0]?.restartCount
  await crash()
  t.equal(restarts(), 1, 'the first time at once')
  await crash()
  t.match(world.status('web')?.containerStatuses?.[0], {
    restartCount: 1,
    state: {
      waiting: {
        reason: 'CrashLoopBackOff',
        message: 'back-off 10s restarting failed container=main pod=web_default(uid-of-web)',
      },
    },
    lastState: { terminated: { exitCode: 1 } },
  })
  await clock.advance(9_800)
  t.equal(restarts(), 1)
  await clock.advance(200)
  t.equal(restarts(), 2)
  t.equal(
    runtime.containers.filter(({ identity }) => identity.kind === 'container').length,
    2,
    'the one before is kept',
  )
})

test('after a power cut a node with nobody to ask runs what it ran', async (t) => {
  const { clock, runtime, checkpoint, start, running: up, world } = aNode(t)
  const job = running('job', ['sh', '-c', 'exit 0'], { restartPolicy: 'OnFailure' })
  world.want(
    running('web', listening, { containers: [{ name: 'main', image, imagePullPolicy: 'Always', command: listening }] }),
    job,
  )
  runtime.registry.add(image)
  await clock.advance(1_000)
  t.equal(world.status('web')?.phase, 'Running')
  await world.stop()
  runtime.powerCut()
  runtime.registry.clear()
  t.equal(checkpoint.content?.desired.pods.length, 2)
  clock.setWall(0) // no clock chip: it is 1970 again
  const next = start()
  await clock.advance(1_000)
  t.match(next.status('web'), { phase: 'Running', containerStatuses: [{ restartCount: 1 }] })
  t.equal(next.status('job')?.phase, 'Succeeded', 'what is done stays done')
  t.same(
    up().map(({ identity }) => identity.podName),
    ['web', 'web'],
  )
})

test('a deadline runs by no date: a pod that begins in 1970 has its time, before and after the agent is told the date', async (t) => {
  let dateMs: number | undefined
  const { clock, start, world } = aNode(t, { date: { nowMs: () => dateMs, uptimeMs: () => 3600_000 } })
  const bornMs = clock.wallMs()
  clock.setWall(1_000)
  const spec = { activeDeadlineSeconds: 600 }
  const late = running('late')
  world.want({
    ...late,
    spec: { ...late.spec, ...spec },
    metadata: { ...late.metadata, creationTimestamp: rfc3339(bornMs) },
  })
  await clock.advance(1_000)
  dateMs = bornMs + 60_000
  await clock.advance(300_000)
  t.equal(world.status('late')?.phase, 'Running')
  await world.stop()
  const next = start()
  await clock.advance(1_000)
  t.equal(next.status('late')?.phase, 'Running', 'by the date it is a minute old')
  await clock.advance(600_000)
  t.match(next.status('late'), { reason: 'DeadlineExceeded' })
})

test('an agent that starts again takes over and starts nothing', async (t) => {
  const { clock, runtime, start, world } = aNode(t)
  world.want(running('web'), running('over', ['sh', '-c', 'exit 2'], { restartPolicy: 'Never' }))
  await clock.advance(1_000)
  const before = [world.status('web'), world.status('over')]
  await world.stop()
  const made = runtime.containers.map(({ id }) => id)
  const next = start()
  await clock.advance(61_000)
  t.same([next.status('web'), next.status('over')], before)
  t.same(
    runtime.containers.map(({ id }) => id),
    made,
  )
  t.same(next.events, [])
})

test('without any word from a controller, ever, nothing is touched', async (t) => {
  const { clock, runtime, world } = aNode(t)
  world.want(running('web'))
  await clock.advance(1_000)
  await world.stop()
  const lost = startPods({ runtime, clock, log: quietLog(t) })
  t.teardown(() => lost.stop())
  await clock.advance(200_000)
  t.equal(runtime.containers.filter(({ state }) => state === 'running').length, 2)
  t.same(lost.gone, [])
  lost.say({ epoch: 'two', pods: [] })
  await clock.advance(40_000)
  t.same(runtime.containers, [], 'but when it says that nothing is wanted, it is heard')
  t.same(lost.gone, ['uid-of-web'])
})

test('old news is ignored, a new controller is heard', async (t) => {
  const { clock, world } = aNode(t)
  world.say({ version: 5, pods: [running('web')] })
  world.say({ version: 4, pods: [] })
  await clock.advance(1_000)
  t.equal(world.status('web')?.phase, 'Running')
  t.equal(world.manager.pods().length, 1)
  world.say({ epoch: 'two', version: 1, pods: [] })
  await clock.advance(1_000)
  t.same(world.gone, ['uid-of-web'])
})

test('a deleted pod is said to be gone until that is heard', async (t) => {
  const { clock, runtime, world } = aNode(t)
  world.want(running('web'))
  await clock.advance(1_000)
  const leaving = running('web', listening, {
    metadata: { deletionTimestamp: '2026-01-01T00:00:31Z', deletionGracePeriodSeconds: 30 },
  })
  world.want(leaving)
  await clock.advance(1_000)
  t.same(runtime.containers, [])
  t.same(world.gone, ['uid-of-web'])
  world.want(leaving)
  await clock.advance(1_000)
  t.same(world.gone, ['uid-of-web', 'uid-of-web'])
  t.equal(world.told().filter((told) => told.startsWith('Killing')).length, 1)
})

test('a machine that was given another name does not take over what it ran under the old one', async (t) => {
  const before = { epoch: 'one', version: 1, pods: [aPod({ name: 'web', nodeName: 'pi-02' })] }
  const { clock, log, runtime } = aNode(t, { checkpoint: memoryCheckpoint({ desired: before, endings: {} }) })
  await clock.advance(60_000)
  t.same(runtime.containers, [])
  t.same(log.messages('warn'), ['Wanted pods of another node not taken over'])
})

test('a pod whose phase is final is not run again', async (t) => {
  const { clock, runtime, world } = aNode(t)
  world.say({ pods: [running('done', listening, { phase: 'Succeeded' })] })
  await clock.advance(1_000)
  t.same(runtime.containers, [])
  t.equal(world.status('done'), undefined, 'and who knows that needs not be told')
})

test('an engine that is away is waited for, and statuses stand meanwhile', async (t) => {
  const { clock, runtime, log, world } = aNode(t)
  world.want(running('web'))
  await clock.advance(1_000)
  const before = world.status('web')
  runtime.setReachable(false)
  world.want(running('web'), running('late'))
  await clock.advance(300_000)
  t.same(world.status('web'), before)
  t.same(log.messages('warn'), [], 'that it is away is told elsewhere')
  runtime.setReachable(true)
  await clock.advance(31_000)
  t.equal(world.status('late')?.phase, 'Running')
})

test('an engine that goes away at any step delays a pod, and no more', async (t) => {
  for (const method of ['listContainers', 'findImage', 'runSandbox', 'createContainer', 'startContainer'] as const) {
    const { clock, runtime, running: up, world } = aNode(t)
    runtime.failNext(method, 'Unreachable')
    world.want(running('web'))
    await clock.advance(60_000)
    t.equal(world.status('web')?.phase, 'Running', method)
    t.equal(up().length, 2)
    t.same(world.status('web')?.containerStatuses?.[0]?.restartCount, 0)
    runtime.failNext('stopContainer', 'Unreachable')
    runtime.failNext('removeContainer', 'Unreachable')
    world.want()
    await clock.advance(60_000)
    t.same(runtime.containers, [])
  }
})

test('what the engine refuses is shown on the pod, and tried again', async (t) => {
  const { clock, runtime, world } = aNode(t)
  runtime.failNext('runSandbox', 'PortTaken', 'Port 80 is taken')
  runtime.failNext('createContainer', 'Failed', 'Minimum memory limit allowed is 6MB')
  world.want(running('web'))
  await clock.advance(5_000)
  t.match(world.status('web')?.containerStatuses?.[0]?.state?.waiting, {
    reason: 'CreateContainerError',
    message: 'Minimum memory limit allowed is 6MB',
  })
  t.ok(world.told().includes('FailedCreatePodSandBox: Failed to create pod sandbox: Port 80 is taken'))
  await clock.advance(10_000)
  t.equal(world.status('web')?.phase, 'Running')
})

test('a sandbox that cannot be made is tried ever more seldom, whatever noise the tries make', async (t) => {
  const { clock, runtime, world } = aNode(t)
  const tries = () => runtime.calls.filter(({ method }) => method === 'runSandbox').length
  for (let i = 0; i < 50; i++) runtime.failNext('runSandbox')
  world.want(running('web'))
  for (let second = 0; second < 60; second++) {
    world.say({ pods: [running('web')], secrets: [] })
    await clock.advance(1_000)
  }
  t.equal(tries(), 6, 'at 0, 1, 3, 7, 15 and 31 s')
})

test('what the engine cannot remove stands in nobody’s way', async (t) => {
  const { clock, runtime, running: up, world } = aNode(t)
  world.want(running('web'))
  await clock.advance(1_000)
  runtime.powerCut()
  runtime.failNext('removeContainer', 'Failed', 'device or resource busy')
  await clock.advance(1_000)
  t.equal(up().length, 2)
  t.equal(world.status('web')?.phase, 'Running')
  await clock.advance(31_000)
  t.equal(runtime.containers.filter(({ identity }) => identity.kind === 'sandbox').length, 1, 'it goes later')
})

test('a pod that does not fit is refused, and stays refused', async (t) => {
  const { clock, runtime, start, world } = aNode(t, { allocatable: { cpu: '1', pods: '10' } })
  const big = (name: string, creationTimestamp: string) =>
    aPod({ name, image, requests: { cpu: '700m' }, metadata: { creationTimestamp } })
  world.want(big('younger', '2026-01-01T00:00:02Z'), big('older', '2026-01-01T00:00:01Z'))
  await clock.advance(1_000)
  t.equal(world.status('older')?.phase, 'Running')
  t.match(world.status('younger'), {
    phase: 'Failed',
    reason: 'OutOfcpu',
    message: /^Pod was rejected: Node didn't have enough/,
  })
  world.want(big('younger', '2026-01-01T00:00:02Z'))
  await clock.advance(60_000)
  await world.stop()
  const next = start()
  await clock.advance(1_000)
  t.equal(next.status('younger')?.phase, 'Failed', 'for the next agent too')
  t.same(runtime.containers, [])
})

test('a pod that is ended stops in the time given, and says why', async (t) => {
  const { clock, running: up, world } = aNode(t)
  world.want(running('web', ['sleep', '1000']))
  await clock.advance(1_000)
  world.manager.endPod('uid-of-web', {
    reason: 'Evicted',
    message: 'The node was low on memory',
    gracePeriodSeconds: 5,
  })
  await clock.advance(4_000)
  t.match(world.status('web'), { phase: 'Running', reason: 'Evicted' })
  await clock.advance(2_000)
  t.match(world.status('web'), { phase: 'Failed', reason: 'Evicted', message: 'The node was low on memory' })
  t.same(up(), [])
})

test('an evicted pod leaves nothing on the disk, and its status says whose doing it was', async (t) => {
  const { clock, runtime, world } = aNode(t)
  world.want(running('web', ['sleep', '1000']))
  await clock.advance(1_000)
  t.same(world.manager.active().length, 1)
  world.manager.endPod('uid-of-web', {
    reason: 'Evicted',
    message: 'The node was low on resource: memory. ',
    gracePeriodSeconds: 1,
    event: 'Warning',
    disruption: 'because',
  })
  t.same(world.manager.active(), [])
  t.equal(world.manager.holds('uid-of-web'), true)
  await clock.advance(1_500)
  t.same(runtime.containers, [])
  t.equal(world.manager.holds('uid-of-web'), false)
  const { phase, conditions, containerStatuses } = world.status('web') ?? {}
  t.match([phase, containerStatuses?.[0]?.state?.terminated?.exitCode], ['Failed', 137])
  t.match(
    conditions?.filter(({ type }) => type === 'DisruptionTarget'),
    [{ status: 'True', reason: 'TerminationByKubelet', message: 'because' }],
  )
  t.equal(world.told().filter((line) => line === 'Evicted: The node was low on resource: memory. ').length, 1)
})

test('a pod the machine needs makes others go when there is no room', async (t) => {
  const { clock, world } = aNode(t, { allocatable: { cpu: '4', memory: '4Gi', pods: '1' } })
  const web = running('web')
  world.want(web)
  await clock.advance(1_000)
  const critical = running('critical')
  world.want(web, { ...critical, spec: { ...critical.spec, priority: 2_000_000_000 } })
  await clock.advance(40_000)
  t.match(world.status('web'), { phase: 'Failed', reason: 'Preempting' })
  t.match(world.status('critical'), { phase: 'Running' })
  t.ok(world.told().includes('Preempting: Preempted in order to admit critical pod'))
})

test('what a person removed by hand comes back', async (t) => {
  const { clock, runtime, world } = aNode(t)
  world.want(running('web'))
  await clock.advance(1_000)
  for (const { id, identity } of runtime.containers) if (identity.kind === 'container') runtime.lose(id)
  await clock.advance(1_000)
  t.match(world.status('web'), { phase: 'Running', containerStatuses: [{ restartCount: 1 }] })
})

test('in a quiet hour the engine is asked once a minute', async (t) => {
  const { clock, runtime, world } = aNode(t)
  world.want(running('a'), running('b'), running('c'))
  await clock.advance(61_000)
  const before = runtime.calls.length
  await clock.advance(3_600_000)
  t.same([...new Set(runtime.calls.slice(before).map(({ method }) => method))], ['listContainers'])
  t.ok(runtime.calls.length - before <= 61, `${runtime.calls.length - before} calls`)
})

test('a disk that refuses to be written holds up no pod', async (t) => {
  let failing = true
  const kept = memoryCheckpoint()
  const checkpoint = {
    load: kept.load,
    save: async (remembered: Parameters<typeof kept.save>[0]) => {
      if (failing) throw new Error('Read-only file system')
      await kept.save(remembered)
    },
  }
  const { clock, world } = aNode(t, { checkpoint })
  world.want(running('web'))
  await clock.advance(1_000)
  t.equal(world.status('web')?.phase, 'Running')
  failing = false
  await clock.advance(31_000)
  t.equal(kept.content?.desired.pods.length, 1)
})

test('on a kernel without a memory cgroup a pod with a limit runs, and is told so once', async (t) => {
  const { clock, runtime, world } = aNode(t)
  runtime.lacks('memoryLimit', 'swapLimit')
  const resources = { limits: { memory: '64Mi', cpu: '1' } }
  const container = { name: 'main', image, imagePullPolicy: 'IfNotPresent', command: ['sh', '-c', 'exit 1'], resources }
  world.want(running('web', listening, { containers: [container, { ...container, name: 'second' }] }))
  await clock.advance(60_000)
  t.equal(world.told().filter((line) => line.startsWith('MemoryLimitNotEnforced')).length, 1)
  const made = runtime.containers.filter(({ identity }) => identity.kind === 'container')
  t.match(runtime.optionsOf(made[0]?.id ?? '')?.limits, { memoryBytes: 0, nanoCPUs: 1e9 })
})

test('a container’s last words come from its file, or from its log where that is asked for', async (t) => {
  const { clock, runtime, messages, world } = aNode(t)
  const container = { name: 'main', image, imagePullPolicy: 'IfNotPresent', command: listening }
  const terminationMessagePolicy = 'FallbackToLogsOnError'
  const containers = [container, { ...container, name: 'log', terminationMessagePolicy }]
  world.want(aPod({ name: 'web', uid: 'uid-web', restartPolicy: 'Never', containers }))
  await clock.advance(1_000)
  messages.set('uid-web/main/0', 'no disk')
  const made = runtime.containers.filter(({ identity }) => identity.kind === 'container')
  t.match(runtime.optionsOf(made[0]?.id ?? '')?.mounts, [{ source: '/messages/uid-web/main/0' }])
  for (const { id } of made) runtime.logs.set(id, 'one\ntwo\n')
  for (const { id } of made) runtime.exit(id, 1)
  await clock.advance(1_000)
  t.match(world.status('web')?.containerStatuses, [
    { state: { terminated: { message: 'no disk' } } },
    { state: { terminated: { message: 'one\ntwo\n' } } },
  ])
  t.equal(runtime.calls.filter(({ method }) => method === 'logTail').length, 1, 'asked once')
})

const fromFile = (hash: string, image = 'busybox:1.36') =>
  running('web-pi-01', listening, {
    uid: hash,
    containers: [{ name: 'main', image, command: listening }],
    annotations: { 'kubernetes.io/config.source': 'file' },
  })
const mirrorOf = (hash: string, uid: string) =>
  aPod({ name: 'web-pi-01', uid, annotations: { 'kubernetes.io/config.mirror': hash } })

test('a static pod runs with nobody to ask, and is spoken of once it has a mirror', async (t) => {
  const { clock, world, running: runs } = aNode(t)
  world.manager.staticPods([fromFile('a')])
  await clock.advance(1_000)
  t.equal(runs().length, 2)
  t.equal(world.status('web-pi-01'), undefined)
  t.same(world.told(), [], 'an event of a pod that nobody knows would be lost')
  world.want(mirrorOf('a', 'mirror-1'))
  await clock.advance(1_000)
  t.equal(runs().length, 2, 'the mirror itself runs nothing')
  t.match(world.messages('mirror-1'), { uid: 'mirror-1', name: 'web-pi-01', status: { phase: 'Running' } })
  t.match(world.told(), [/^Pulled/, /^Created/, /^Started/])
  world.want(mirrorOf('a', 'mirror-2'))
  await clock.advance(1_000)
  t.match(world.messages('mirror-2'), { status: { phase: 'Running' } })
  t.same(world.gone, ['mirror-1'], 'nothing stays behind of a mirror that is gone')
  world.want()
  await clock.advance(60_000)
  t.equal(runs().length, 2, 'without a mirror it runs on')
})

test('a changed static pod waits until the last one of its name has ended', async (t) => {
  const { clock, runtime, world, running: runs } = aNode(t)
  runtime.images.add('busybox:2')
  world.want()
  const deaf = fromFile('a')
  world.manager.staticPods([
    { ...deaf, spec: { ...deaf.spec, containers: [{ name: 'main', image, command: ['sleep', '9'] }] } },
  ])
  await clock.advance(1_000)
  world.manager.staticPods([fromFile('b', 'busybox:2')])
  await clock.advance(10_000)
  t.same([...new Set(runs().map(({ identity }) => identity.podUID))], ['a'])
  await clock.advance(25_000)
  t.same([...new Set(runs().map(({ identity }) => identity.podUID))], ['b'])
  t.ok(world.manager.isHere('b'))
  world.manager.staticPods([])
  await clock.advance(5_000)
  t.same(runs(), [])
  t.notOk(world.manager.isHere('b'))
})

test('while the files are not known, nothing of a static pod is removed; the next agent adopts it', async (t) => {
  const { clock, world, start, running: runs } = aNode(t)
  world.want()
  world.manager.staticPods([fromFile('a')])
  await clock.advance(1_000)
  const before = runs().map(({ id }) => id)
  await world.stop()
  const next = start()
  next.manager.staticPods(undefined)
  await clock.advance(120_000)
  next.manager.staticPods([fromFile('a')])
  await clock.advance(60_000)
  t.same(
    runs().map(({ id }) => id),
    before,
  )
})

test('a file that changed while no agent and no controller was there replaces its pod', async (t) => {
  const { clock, world, start, running: runs } = aNode(t)
  world.manager.staticPods([fromFile('a')])
  await clock.advance(1_000)
  await world.stop()
  const next = start()
  next.manager.staticPods([fromFile('b')])
  await clock.advance(10_000)
  t.same([...new Set(runs().map(({ identity }) => identity.podUID))], ['b'])
})

test('a pod of the API is not static because it says so', async (t) => {
  const { clock, world } = aNode(t)
  world.want(running('sly', listening, { annotations: { 'kubernetes.io/config.source': 'file' } }))
  await clock.advance(1_000)
  t.match(world.manager.pods()[0]?.metadata.annotations, { 'kubernetes.io/config.source': 'api' })
})

test('a container that is added while a pod lives is started once, and never again', async (t) => {
  const { clock, runtime, world, running: runs } = aNode(t)
  const web = running('web')
  const withDebuggers = (...ephemeralContainers: NonNullable<typeof web.spec.ephemeralContainers>) =>
    world.want({ ...web, spec: { ...web.spec, ephemeralContainers } })
  const look = { name: 'look', image, command: listening, targetContainerName: 'main' }
  withDebuggers()
  await clock.advance(1_000)
  withDebuggers(look, { ...look, name: 'lost', targetContainerName: 'nobody' })
  await clock.advance(1_000)
  const [main, added] = ['main', 'look'].map((name) => runs().find(({ identity }) => identity.containerName === name))
  t.equal(runtime.optionsOf(added?.id ?? '')?.processesOf, main?.id)
  t.match(world.status('web')?.ephemeralContainerStatuses, [
    { name: 'look', state: { running: {} } },
    { name: 'lost', state: { waiting: { message: 'unable to find target container "nobody": it does not run' } } },
  ])
  runtime.exit(added?.id ?? '', 1)
  await clock.advance(400_000)
  await runtime.removeContainer(added?.id ?? '')
  await clock.advance(120_000)
  t.same(
    runs().map(({ identity }) => identity.containerName),
    ['', 'main'],
  )
  t.match(world.status('web'), { phase: 'Running', containerStatuses: [{ restartCount: 0 }] })
})

function stopAllFor(world: ReturnType<typeof startPods>) {
  for (const { metadata } of world.manager.active()) {
    const disruption = shutdownEnding.message
    world.manager.endPod(metadata.uid ?? '', { ...shutdownEnding, gracePeriodSeconds: 5, disruption })
  }
}

test('pods stopped with the machine are over as Kubernetes says it, and run again after the boot', async (t) => {
  let isShuttingDown = false
  const { clock, runtime, start, running: up, world } = aNode(t, { isShuttingDown: () => isShuttingDown })
  const pods = [
    running('web'),
    running('work', listening, { restartPolicy: 'OnFailure' }),
    running('once', listening, { restartPolicy: 'Never' }),
  ]
  world.want(...pods)
  await clock.advance(700)
  t.equal(up().length, 6, 'begun in the very second of the shutdown')
  isShuttingDown = true
  stopAllFor(world)
  world.want(...pods, running('late'))
  await clock.advance(6_000)
  t.same(up(), [])
  for (const { metadata } of pods) t.equal(world.manager.holds(metadata.uid ?? ''), false)
  const message = 'Pod was terminated in response to imminent node shutdown.'
  t.match(world.status('web'), { phase: 'Failed', reason: 'Terminated', message })
  t.match(
    world.status('web')?.conditions?.filter(({ type }) => type === 'DisruptionTarget'),
    [{ status: 'True', reason: 'TerminationByKubelet', message }],
  )
  t.match(world.status('late'), { phase: 'Failed', reason: 'NodeShutdown' })
  await world.stop()

  isShuttingDown = false
  const next = start()
  await clock.advance(3_000)
  t.equal(up().length, 6, 'all but the one that may not be tried twice, from what is remembered here alone')
  t.match(next.status('web'), { phase: 'Running', reason: undefined, message: undefined })
  t.notOk(next.status('web')?.conditions?.some(({ type }) => type === 'DisruptionTarget'))
  t.match(next.status('work'), { phase: 'Running' }, 'it was interrupted, not done')
  t.match(next.status('late'), { phase: 'Running' })
  t.match(next.status('once'), { phase: 'Failed', reason: 'Terminated' })
  const told = { phase: 'Failed', reason: 'Terminated', message } as const
  next.say({ epoch: 'two', pods: [...pods, running('late')].map((pod) => ({ ...pod, status: told })) })
  await clock.advance(3_000)
  t.equal(up().length, 6, 'whatever the control plane has not heard yet')
  runtime.exit(up().find(({ identity }) => identity.podName === 'work')?.id ?? '', 0)
  const work = up().find(({ identity }) => identity.podName === 'work' && identity.kind === 'container')
  if (work !== undefined) runtime.exit(work.id, 0)
  await clock.advance(3_000)
  t.match(next.status('work'), { phase: 'Succeeded' })
})

test('a shutdown finds pods in whatever they are about, and each is over in its time', async (t) => {
  const { clock, runtime, running: up, world } = aNode(t)
  const [deaf, forLong] = [['sleep', '1000'], { deletionGracePeriodSeconds: 300 }]
  const leaving = { metadata: { deletionTimestamp: '2026-01-01T00:05:00Z', ...forLong } }
  const lifecycle = { preStop: { sleep: { seconds: 600 } } }
  runtime.registry.add('slow:1')
  const release = runtime.holdPulls()
  const others = [
    mirrorOf('a', 'mirror'),
    running('pulls', listening, { containers: [{ name: 'main', image: 'slow:1' }] }),
    running('hook', listening, { containers: [{ name: 'main', image, command: listening, lifecycle }] }),
  ]
  world.manager.staticPods([fromFile('a')])
  world.want(...others, running('deleted', deaf))
  await clock.advance(1_000)
  world.want(...others, running('deleted', deaf, leaving))
  await clock.advance(1_000)
  t.equal(up().length, 7, 'of the one that pulls the sandbox')
  stopAllFor(world)
  await clock.advance(1_000)
  const holds = () => ['a', 'uid-of-pulls', 'uid-of-hook', 'uid-of-deleted'].filter((uid) => world.manager.holds(uid))
  t.same(holds(), ['uid-of-hook', 'uid-of-deleted'])
  for (const name of ['web-pi-01', 'pulls']) t.match(world.status(name), { phase: 'Failed', reason: 'Terminated' })
  await clock.advance(4_100)
  t.same(holds(), [], 'a hook that hangs ends with the share, and so does the time a deletion gave')
  t.same(world.gone, ['uid-of-deleted'])
  release()
  await clock.advance(10_000)
  t.same(up(), [], 'what was pulled meanwhile is not run')
})

test('a shutdown that is called off gives the pods back', async (t) => {
  const { clock, running: up, world } = aNode(t)
  world.want(running('web'), running('other'))
  await clock.advance(3_000)
  stopAllFor(world)
  await clock.advance(1_000)
  world.manager.goOn()
  await clock.advance(10_000)
  t.equal(up().length, 4)
  t.match(world.status('web'), { phase: 'Running', reason: undefined })
})
