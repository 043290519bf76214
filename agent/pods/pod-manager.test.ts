import { test } from 'tap'
import { image, listening, nodeInMemory, podRunning } from '../testing/node-in-memory.ts'

test('a desired pod runs, and is reported as Running', async (t) => {
  const { clock, world } = nodeInMemory(t)
  world.want(podRunning('web'))
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
  t.same(world.eventTexts(), [
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
  const { clock, runtime, world } = nodeInMemory(t, { isNodeKnown: () => isNodeKnown })
  const asking = (fieldPath: string) => ({
    containers: [{ name: 'main', image, env: [{ name: 'IP', valueFrom: { fieldRef: { fieldPath } } }] }],
  })
  world.want(
    podRunning('asks', listening, asking('status.hostIP')),
    podRunning('other', listening, asking('metadata.name')),
  )
  await clock.advance(2_000)
  t.equal(world.status('asks')?.phase, 'Pending')
  t.equal(world.status('other')?.phase, 'Running')
  isNodeKnown = true
  await clock.advance(1_000)
  t.equal(world.status('asks')?.phase, 'Running')
  t.notMatch(world.eventTexts(), /Failed/)
  const made = runtime.containers.find(({ identity }) => identity.podName === 'asks' && identity.kind === 'container')
  t.same(runtime.optionsOf(made?.id ?? '')?.env.find(({ name }) => name === 'IP')?.value, '192.0.2.11')
})

test('a pod in the network of the host is probed once the node has an address, which all statuses then have', async (t) => {
  let hasAddress = false
  const { clock, world } = nodeInMemory(t, { isNodeKnown: () => hasAddress })
  const probed = { containers: [{ name: 'main', image, readinessProbe: { httpGet: { port: 80 }, periodSeconds: 1 } }] }
  world.want(podRunning('web', listening, { ...probed, spec: { hostNetwork: true } }), podRunning('other', listening))
  await clock.advance(30_000)
  const ready = () => world.status('web')?.conditions?.find(({ type }) => type === 'Ready')?.status
  t.equal(ready(), 'False')
  t.equal(world.status('other')?.hostIP, undefined)
  hasAddress = true
  world.manager.addressesChanged()
  await clock.advance(2_000)
  t.equal(ready(), 'True')
  t.match(world.status('web'), { hostIP: '192.0.2.11', podIP: '192.0.2.11' })
  t.equal(world.status('other')?.hostIP, '192.0.2.11')
})

test('a pod that cannot be decoded is reported, and its containers stay as they are', async (t) => {
  const { clock, runtime, log, checkpoint, world, start, running } = nodeInMemory(t)
  const misread = ['old', 'fresh'].map((name) => ({
    kind: 'Pod' as const,
    namespace: 'default',
    name,
    uid: `uid-of-${name}`,
    why: 'spec.x: Unsupported value',
  }))
  world.want(podRunning('old'), podRunning('other'))
  await clock.advance(1_000)
  const before = running().map(({ id }) => id)
  world.publishDesired({ pods: [podRunning('more')], misread })
  await clock.advance(90_000)
  t.same(world.gone, ['uid-of-other'])
  t.equal(world.status('old')?.phase, 'Running')
  t.equal(world.status('more')?.phase, 'Running', 'the others are taken')
  t.equal(world.status('fresh'), undefined, 'what was never known cannot be run')
  const events = world.eventTexts().filter((one) => one.startsWith('NotUnderstood'))
  t.equal(events.length, 2)
  t.match(events, [/spec\.x: Unsupported value/])
  t.equal(log.messages('warn').length, 2)
  t.ok(running().filter(({ id }) => before.includes(id)).length >= 2, 'no container of the old one was replaced')
  const main = running().find(({ identity }) => identity.podName === 'old' && identity.kind === 'container')
  runtime.exit(main?.id ?? '', 1)
  await clock.advance(30_000)
  t.equal(world.status('old')?.containerStatuses?.[0]?.restartCount, 1, 'it is started again as it was')

  // Where only its containers are left of it nothing is removed either.
  await world.stop()
  await checkpoint.save({ desired: { epoch: 'one', version: 9, pods: [], misread }, endings: {} })
  const next = start()
  next.publishDesired({ epoch: 'one', version: 9, misread })
  await clock.advance(90_000)
  t.match(
    running().map(({ identity }) => identity.podName),
    ['old', 'old'],
  )
  t.equal(next.manager.needOf('uid-of-old'), 'needed')
  next.publishDesired({ epoch: 'two' })
  await clock.advance(60_000)
  t.same(running(), [], 'until it is no longer wanted')
})

test('pods that a checkpoint does not list are kept until the controller has sent the desired pods', async (t) => {
  const { clock, checkpoint, world, start, running } = nodeInMemory(t)
  const [old, later] = [podRunning('old'), podRunning('later')]
  world.publishDesired({ version: 1, pods: [old] })
  await clock.advance(5_000)
  const save = checkpoint.save
  checkpoint.save = () => Promise.reject(new Error('ENOSPC: no space left on device'))
  world.publishDesired({ version: 2, pods: [old, later] })
  await clock.advance(5_000)
  const before = running().map(({ id }) => id)
  t.equal(before.length, 4)
  await world.stop()
  checkpoint.save = save

  const next = start()
  await clock.advance(90_000)
  t.same(
    running().map(({ id }) => id),
    before,
    'without the controller',
  )
  t.equal(next.manager.needOf('uid-of-later'), 'needed')
  next.publishDesired({ version: 2, pods: [old, later] })
  await clock.advance(5_000)
  t.equal(next.status('later')?.phase, 'Running')
  t.same(
    running().map(({ id }) => id),
    before,
    'the one is adopted',
  )
})

test('a message that the checkpoint has already shows which pods are not desired', async (t) => {
  const { clock, checkpoint, world, start, running } = nodeInMemory(t)
  world.want(podRunning('web'))
  await clock.advance(5_000)
  await world.stop()
  await checkpoint.save({ desired: { epoch: 'one', version: 9, pods: [] }, endings: {} })
  const next = start()
  await clock.advance(5_000)
  t.equal(running().length, 2)
  next.publishDesired({ version: 9 })
  await clock.advance(60_000)
  t.same(running(), [])
})

test('a slow pull, and a slow stop, stand in no other pod’s way', async (t) => {
  const { clock, runtime, world } = nodeInMemory(t)
  runtime.registry.add('slow:1')
  const release = runtime.holdPulls()
  world.want(
    podRunning('slow', listening, { containers: [{ name: 'main', image: 'slow:1' }] }),
    podRunning('deaf', ['sleep', '1000']),
  )
  await clock.advance(1_000)
  t.match(world.status('slow'), {
    phase: 'Pending',
    containerStatuses: [{ state: { waiting: { reason: 'ContainerCreating' } } }],
  })
  t.equal(world.status('deaf')?.phase, 'Running')
  world.want(podRunning('slow', listening, { containers: [{ name: 'main', image: 'slow:1' }] }), podRunning('quick'))
  await clock.advance(1_000)
  t.equal(world.status('quick')?.phase, 'Running')
  t.same(world.gone, [], 'the deaf one still has its time')
  release()
  await clock.advance(30_000)
  t.equal(world.status('slow')?.phase, 'Running')
  t.same(world.gone, ['uid-of-deaf'])
  t.ok(world.eventTexts().includes('Pulling: Pulling image "slow:1"'))
  t.match(
    world.eventTexts(),
    /Pulled: Successfully pulled image "slow:1" in 2s \(2s including waiting\)\. Image size: 1000 bytes\./,
  )
})

test('an outdated message is ignored, one of a new controller is used', async (t) => {
  const { clock, world } = nodeInMemory(t)
  world.publishDesired({ version: 5, pods: [podRunning('web')] })
  world.publishDesired({ version: 4, pods: [] })
  await clock.advance(1_000)
  t.equal(world.status('web')?.phase, 'Running')
  t.equal(world.manager.pods().length, 1)
  world.publishDesired({ epoch: 'two', version: 1, pods: [] })
  await clock.advance(1_000)
  t.same(world.gone, ['uid-of-web'])
})

test('a deleted pod is reported as gone until the controller no longer names it', async (t) => {
  const { clock, runtime, world } = nodeInMemory(t)
  world.want(podRunning('web'))
  await clock.advance(1_000)
  const leaving = podRunning('web', listening, {
    metadata: { deletionTimestamp: '2026-01-01T00:00:31Z', deletionGracePeriodSeconds: 30 },
  })
  world.want(leaving)
  await clock.advance(1_000)
  t.same(runtime.containers, [])
  t.same(world.gone, ['uid-of-web'])
  world.want(leaving)
  await clock.advance(1_000)
  t.same(world.gone, ['uid-of-web', 'uid-of-web'])
  t.equal(world.eventTexts().filter((one) => one.startsWith('Killing')).length, 1)
})

test('a container whose stop ends while the containers are listed is not stopped again', async (t) => {
  const { clock, runtime, world } = nodeInMemory(t)
  world.want(podRunning('web'))
  await clock.advance(1_000)
  const { listContainers, stopContainer } = runtime
  let listMs = 0
  runtime.listContainers = async (uid) => {
    const found = await listContainers(uid)
    await clock.sleep(listMs)
    return found
  }
  runtime.stopContainer = async (id, graceSeconds) => {
    await clock.sleep(1_000)
    await stopContainer(id, graceSeconds)
  }
  const leaving = (hint: string) =>
    podRunning('web', listening, {
      metadata: {
        annotations: { hint },
        deletionTimestamp: '2026-01-01T00:00:31Z',
        deletionGracePeriodSeconds: 30,
      },
    })
  world.want(leaving('first'))
  await clock.advance(900)
  listMs = 200
  world.want(leaving('second'))
  await clock.advance(5_000)
  t.same(runtime.containers, [])
  t.same(world.gone, ['uid-of-web'])
  t.equal(world.eventTexts().filter((one) => one.startsWith('Killing')).length, 1)
})

test('a pod whose phase is final is not run again', async (t) => {
  const { clock, runtime, world } = nodeInMemory(t)
  world.publishDesired({ pods: [podRunning('done', listening, { phase: 'Succeeded' })] })
  await clock.advance(1_000)
  t.same(runtime.containers, [])
  t.equal(world.status('done'), undefined, 'the control plane has that status already')
})

test('what a person removed by hand comes back', async (t) => {
  const { clock, runtime, world } = nodeInMemory(t)
  world.want(podRunning('web'))
  await clock.advance(1_000)
  for (const { id, identity } of runtime.containers) if (identity.kind === 'container') runtime.lose(id)
  await clock.advance(1_000)
  t.match(world.status('web'), { phase: 'Running', containerStatuses: [{ restartCount: 1 }] })
})

test('in a quiet hour the engine is asked once a minute', async (t) => {
  const { clock, runtime, world } = nodeInMemory(t)
  world.want(podRunning('a'), podRunning('b'), podRunning('c'))
  await clock.advance(61_000)
  const before = runtime.calls.length
  await clock.advance(3_600_000)
  t.same([...new Set(runtime.calls.slice(before).map(({ method }) => method))], ['listContainers'])
  t.ok(runtime.calls.length - before <= 61, `${runtime.calls.length - before} calls`)
})
