import { test } from 'tap'
import { shutdownEnding } from '../../api/node/node-shutdown.ts'
import { aPod } from '../../api/testing/builders.ts'
import { fakeVolumes } from '../testing/fake-volumes.ts'
import { image, listening, mirrorOf, nodeInMemory, podFromFile, podRunning } from '../testing/node-in-memory.ts'
import type { PodWorld } from '../testing/pod-world.ts'

test('a pod that does not fit is refused, and stays refused', async (t) => {
  const { clock, runtime, start, world } = nodeInMemory(t, { allocatable: { cpu: '1', pods: '10' } })
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

test('a pod that is ended stops within the given time, and then has the reason in its status', async (t) => {
  const { clock, running, world } = nodeInMemory(t)
  world.want(podRunning('web', ['sleep', '1000']))
  await clock.advance(1_000)
  world.manager.endPod('uid-of-web', {
    reason: 'Evicted',
    message: 'The node was low on memory',
    gracePeriodSeconds: 5,
  })
  await clock.advance(4_000)
  t.match(world.status('web'), { phase: 'Running', reason: undefined })
  await clock.advance(2_000)
  t.match(world.status('web'), { phase: 'Failed', reason: 'Evicted', message: 'The node was low on memory' })
  t.same(running(), [])
})

test('an evicted pod leaves nothing on the disk, and its status shows the disruption', async (t) => {
  const { clock, runtime, world } = nodeInMemory(t)
  world.want(podRunning('web', ['sleep', '1000']))
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
  t.equal(world.eventTexts().filter((line) => line === 'Evicted: The node was low on resource: memory. ').length, 1)
})

test('a pod is shown as ended only when nothing of it runs, whatever ends it', async (t) => {
  const { clock, runtime, world, running } = nodeInMemory(t)
  const deaf = { image, imagePullPolicy: 'IfNotPresent', command: ['sleep', '1000'] }
  const initContainers = [{ ...deaf, name: 'side', restartPolicy: 'Always' }]
  const named = (name: string, spec: object) => podRunning(name, listening, { restartPolicy: 'Never', spec })
  world.want(
    named('job', { initContainers }),
    named('debugged', { ephemeralContainers: [{ ...deaf, name: 'look' }] }),
    named('evicted', { initContainers }),
    named('begun', { initContainers: [{ ...deaf, name: 'first' }] }),
  )
  await clock.advance(3_000)
  for (const { id, identity } of running())
    if (identity.containerName === 'main' && identity.podName !== 'evicted') runtime.exit(id, 0)
  for (const name of ['evicted', 'begun'])
    world.manager.endPod(`uid-of-${name}`, { reason: 'Evicted', message: 'why', gracePeriodSeconds: 20 })
  const names = ['job', 'debugged', 'evicted', 'begun']
  const phases = () => names.map((name) => world.status(name)?.phase)
  await clock.advance(15_000)
  t.same(phases(), ['Running', 'Running', 'Running', 'Pending'])
  await clock.advance(40_000)
  t.same(phases(), ['Succeeded', 'Succeeded', 'Failed', 'Failed'])
  t.same(running(), [], 'what ran beside the completed container is stopped')
  for (const name of names)
    t.same(
      world.statuses(name).filter(({ phase }, index, all) => phase !== all[index - 1]?.phase).length,
      name === 'begun' ? 2 : 3,
      'a final phase is never left',
    )
})

test('a pod the machine needs makes others go when there is no room', async (t) => {
  const { clock, world } = nodeInMemory(t, { allocatable: { cpu: '4', memory: '4Gi', pods: '1' } })
  const web = podRunning('web')
  world.want(web)
  await clock.advance(1_000)
  const critical = podRunning('critical')
  world.want(web, { ...critical, spec: { ...critical.spec, priority: 2_000_000_000 } })
  await clock.advance(40_000)
  t.match(world.status('web'), { phase: 'Failed', reason: 'Preempting' })
  t.match(world.status('critical'), { phase: 'Running' })
  t.ok(world.eventTexts().includes('Preempting: Preempted in order to admit critical pod'))
})

function stopAllFor(world: PodWorld) {
  for (const { metadata } of world.manager.active()) {
    const disruption = shutdownEnding.message
    world.manager.endPod(metadata.uid ?? '', { ...shutdownEnding, gracePeriodSeconds: 5, disruption })
  }
}

test('pods stopped by a shutdown have Kubernetes’ final status, and run again after the boot', async (t) => {
  let isShuttingDown = false
  const volumes = fakeVolumes()
  const { clock, runtime, start, running, world } = nodeInMemory(t, { isShuttingDown: () => isShuttingDown, volumes })
  const pods = [
    podRunning('web'),
    podRunning('work', listening, { restartPolicy: 'OnFailure' }),
    podRunning('once', listening, { restartPolicy: 'Never' }),
  ]
  world.want(...pods)
  await clock.advance(700)
  t.equal(running().length, 6, 'begun in the very second of the shutdown')
  isShuttingDown = true
  stopAllFor(world)
  world.want(...pods, podRunning('late'))
  await clock.advance(6_000)
  t.same(running(), [])
  t.same(
    volumes.unmounted.toSorted(),
    ['uid-of-late', 'uid-of-web', 'uid-of-work'],
    'once each; the volumes of the one that does not come back are removed',
  )
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
  t.equal(running().length, 6, 'all but the one that may not be tried twice, from what is remembered here alone')
  t.match(next.status('web'), { phase: 'Running', reason: undefined, message: undefined })
  t.notOk(next.status('web')?.conditions?.some(({ type }) => type === 'DisruptionTarget'))
  t.match(next.status('work'), { phase: 'Running' }, 'it was interrupted, not done')
  t.match(next.status('late'), { phase: 'Running' })
  t.match(next.status('once'), { phase: 'Failed', reason: 'Terminated' })
  const stored = { phase: 'Failed', reason: 'Terminated', message } as const
  next.publishDesired({ epoch: 'two', pods: [...pods, podRunning('late')].map((pod) => ({ ...pod, status: stored })) })
  await clock.advance(3_000)
  t.equal(running().length, 6, 'although the control plane has not received it yet')
  const work = running().find(({ identity }) => identity.podName === 'work' && identity.kind === 'container')
  if (work !== undefined) runtime.exit(work.id, 0)
  await clock.advance(3_000)
  t.match(next.status('work'), { phase: 'Succeeded' })
})

test('a shutdown finds pods in whatever they are about, and each is over in its time', async (t) => {
  const { clock, runtime, running, world } = nodeInMemory(t)
  const [deaf, forLong] = [['sleep', '1000'], { deletionGracePeriodSeconds: 300 }]
  const leaving = { metadata: { deletionTimestamp: '2026-01-01T00:05:00Z', ...forLong } }
  const lifecycle = { preStop: { sleep: { seconds: 600 } } }
  runtime.registry.add('slow:1')
  const release = runtime.holdPulls()
  const others = [
    mirrorOf('a', 'mirror'),
    podRunning('pulls', listening, { containers: [{ name: 'main', image: 'slow:1' }] }),
    podRunning('hook', listening, { containers: [{ name: 'main', image, command: listening, lifecycle }] }),
  ]
  world.manager.staticPods([podFromFile('a')])
  world.want(...others, podRunning('deleted', deaf))
  await clock.advance(1_000)
  world.want(...others, podRunning('deleted', deaf, leaving))
  await clock.advance(1_000)
  t.equal(running().length, 7, 'of the one that pulls the sandbox')
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
  t.same(running(), [], 'what was pulled meanwhile is not run')
})

test('a shutdown that is called off gives the pods back', async (t) => {
  const { clock, running, world } = nodeInMemory(t)
  world.want(podRunning('web'), podRunning('other'))
  await clock.advance(3_000)
  stopAllFor(world)
  await clock.advance(1_000)
  world.manager.resume()
  await clock.advance(10_000)
  t.equal(running().length, 4)
  t.match(world.status('web'), { phase: 'Running', reason: undefined })
})

test('a shutdown that is cancelled while a termination message is read resumes the pod, too', async (t) => {
  let release: () => void = () => undefined
  const lastWords = new Promise<void>((resolve) => {
    release = resolve
  })
  let reading = 0
  const message = async () => {
    reading++
    await lastWords
    return Buffer.alloc(0)
  }
  const { clock, running, world } = nodeInMemory(t, { volumes: { ...fakeVolumes(), message } })
  world.want(podRunning('work', listening, { restartPolicy: 'OnFailure' }))
  await clock.advance(3_000)
  stopAllFor(world)
  await clock.advance(1_000)
  t.equal(reading, 1, 'it has exited with 0')
  world.manager.resume()
  release()
  await clock.advance(10_000)
  t.match(world.status('work'), { phase: 'Running', reason: undefined })
  t.equal(running().length, 2)
})

test('a pod has completed once its sidecar has stopped, not before', async (t) => {
  const { clock, running, runtime, world } = nodeInMemory(t)
  const container = { image, imagePullPolicy: 'IfNotPresent', command: ['sleep', '1000'] }
  const initContainers = [{ ...container, name: 'side', restartPolicy: 'Always' }]
  const containers = [{ ...container, name: 'main' }]
  world.want(
    aPod({
      name: 'job',
      uid: 'uid-job',
      restartPolicy: 'Never',
      containers,
      spec: { initContainers, terminationGracePeriodSeconds: 5 },
    }),
  )
  await clock.advance(2_000)
  const main = running().find(({ identity }) => identity.containerName === 'main')
  runtime.exit(main?.id ?? '', 0)
  await clock.advance(2_000)
  t.match(world.status('job'), { phase: 'Running', containerStatuses: [{ state: { terminated: { exitCode: 0 } } }] })
  await clock.advance(5_000)
  t.same(running(), [])
  t.match(world.status('job'), {
    phase: 'Succeeded',
    initContainerStatuses: [{ state: { terminated: { exitCode: 137 } } }],
  })
})

test('a container that never ran has failed with its pod, once the pod was initialized', async (t) => {
  const { clock, world } = nodeInMemory(t)
  const container = { name: 'main', image: 'missing:1', imagePullPolicy: 'Never', command: listening }
  const initContainers = [{ ...container, name: 'init' }]
  world.want(
    aPod({ name: 'web', uid: 'uid-web', containers: [container] }),
    aPod({ name: 'staged', uid: 'uid-staged', containers: [container], spec: { initContainers } }),
  )
  await clock.advance(2_000)
  const ending = { reason: 'Evicted', message: 'The node was low on memory', gracePeriodSeconds: 1 }
  for (const uid of ['uid-web', 'uid-staged']) world.manager.endPod(uid, ending)
  await clock.advance(3_000)
  const unknown = { state: { terminated: { exitCode: 137, reason: 'ContainerStatusUnknown' } } }
  t.match(world.status('web'), { phase: 'Failed', reason: 'Evicted', containerStatuses: [unknown] })
  t.match(world.status('staged'), {
    initContainerStatuses: [unknown],
    containerStatuses: [{ state: { waiting: { reason: 'PodInitializing' } } }],
  })
})

test('the preStop hook of a sidecar begins with the end of its pod, and the sidecar stops after the others', async (t) => {
  const { clock, running, world } = nodeInMemory(t)
  const container = { image, imagePullPolicy: 'IfNotPresent', command: listening }
  const lifecycle = { preStop: { sleep: { seconds: 6 } } }
  const initContainers = [{ ...container, name: 'side', restartPolicy: 'Always', lifecycle }]
  const containers = [
    { ...container, name: 'main', command: ['sleep', '1000'], lifecycle: { preStop: { sleep: { seconds: 4 } } } },
  ]
  const pod = aPod({
    name: 'web',
    uid: 'uid-web',
    containers,
    spec: { initContainers, terminationGracePeriodSeconds: 8 },
  })
  world.want(pod)
  await clock.advance(2_000)
  world.manager.endPod('uid-web', { reason: 'Evicted', message: 'low', gracePeriodSeconds: 8 })
  await clock.advance(5_000)
  const names = () => running().flatMap(({ identity }) => identity.containerName || [])
  t.same(names(), ['side', 'main'])
  await clock.advance(3_500)
  t.same(names(), [], 'the hook of the sidecar ran beside that of the first')
})
