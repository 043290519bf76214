import { test } from 'tap'
import { aPod } from '../../api/testing/builders.ts'
import { rfc3339 } from '../../daemon/clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { aDevice } from '../testing/builders.ts'
import { image, listening, nodeInMemory, podRunning } from '../testing/node-in-memory.ts'
import { memoryCheckpoint, startPods } from '../testing/pod-world.ts'

test('after a power cut a node without a controller runs its pods again', async (t) => {
  const { clock, runtime, checkpoint, start, running, world } = nodeInMemory(t)
  const job = podRunning('job', ['sh', '-c', 'exit 0'], { restartPolicy: 'OnFailure' })
  world.want(
    podRunning('web', listening, {
      containers: [{ name: 'main', image, imagePullPolicy: 'Always', command: listening }],
    }),
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
    running().map(({ identity }) => identity.podName),
    ['web', 'web'],
  )
})

test('after a power cut a pod of a StatefulSet waits for the controller, half a minute at most', async (t) => {
  const owner = { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'db', uid: 'uid-of-set', controller: true }
  const db = podRunning('db-0', listening, { metadata: { ownerReferences: [owner] } })
  const web = podRunning('web')
  const names = (running: readonly { readonly identity: { readonly podName: string } }[]) => [
    ...new Set(running.map(({ identity }) => identity.podName)),
  ]
  for (const released of [true, false]) {
    const { clock, runtime, start, running, world } = nodeInMemory(t)
    world.want(db, web)
    await clock.advance(1_000)
    t.same(names(running()).sort(), ['db-0', 'web'])
    await world.stop()
    runtime.powerCut()
    const next = start()
    await clock.advance(29_000)
    t.same(names(running()), ['web'], 'another machine may run a pod of that name')
    t.match(next.status('db-0'), {
      containerStatuses: [{ state: { waiting: { reason: 'WaitingForController' } } }],
    })
    if (released) next.publishDesired({ epoch: 'two', pods: [web] })
    await clock.advance(2_000)
    t.same(names(running()).sort(), released ? ['web'] : ['db-0', 'web'])
  }
})

test('a deadline does not depend on the date: a pod that starts in 1970 has its time, before and after the date is known', async (t) => {
  let dateMs: number | undefined
  const { clock, start, world } = nodeInMemory(t, { date: { nowMs: () => dateMs, uptimeMs: () => 3600_000 } })
  const bornMs = clock.wallMs()
  clock.setWall(1_000)
  const spec = { activeDeadlineSeconds: 600 }
  const late = podRunning('late')
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
  const { clock, runtime, start, world } = nodeInMemory(t)
  world.want(podRunning('web'), podRunning('over', ['sh', '-c', 'exit 2'], { restartPolicy: 'Never' }))
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

test('without any message from a controller no container is touched', async (t) => {
  const { clock, runtime, world } = nodeInMemory(t)
  world.want(podRunning('web'))
  await clock.advance(1_000)
  await world.stop()
  const lost = startPods({ runtime, clock, log: quietLog(t) })
  t.teardown(() => lost.stop())
  await clock.advance(200_000)
  t.equal(runtime.containers.filter(({ state }) => state === 'running').length, 2)
  t.same(lost.gone, [])
  lost.publishDesired({ epoch: 'two', pods: [] })
  await clock.advance(40_000)
  t.same(runtime.containers, [], 'but its message without pods is used')
  t.same(lost.gone, ['uid-of-web'])
})

test('the pods of an old copy run, and pods that it does not name stay until the controller answers', async (t) => {
  const { clock, runtime, checkpoint, start, running, world } = nodeInMemory(t)
  world.want(podRunning('old'))
  await clock.advance(1_000)
  const older = checkpoint.content
  world.want(podRunning('old'), podRunning('new'), podRunning('unwanted'))
  await clock.advance(1_000)
  await world.stop()
  runtime.powerCut()
  let saved = 0
  const spoiled = {
    load: async () => older && { ...older, mayBeOld: true as const },
    save: async () => void saved++,
    keepCopy: async () => undefined,
  }
  const next = start({ checkpoint: spoiled, epoch: 'one' })
  await clock.advance(200_000)
  t.equal(next.status('old')?.phase, 'Running')
  t.same(next.gone, [])
  const names = () => [...new Set(runtime.containers.map(({ identity }) => identity.podName))].sort()
  t.same(names(), ['new', 'old', 'unwanted'])
  t.equal(next.manager.needOf('uid-of-new'), 'needed')
  t.equal(saved, 0, 'it is not made the newest word')
  t.match(await next.manager.lastDesired(), { desired: { pods: [{}] }, hasAllPods: false })
  // Same epoch and not a later version than the copy: it still counts as newer.
  next.want(podRunning('old'), podRunning('new'))
  await clock.advance(40_000)
  t.same(names(), ['new', 'old'])
  t.equal(running().length, 4)
  t.ok(saved > 0)
  t.match(await next.manager.lastDesired(), { desired: { pods: [{}, {}] }, hasAllPods: true })
})

test('a running container is not replaced because of an old copy, but by a message of the controller', async (t) => {
  const { clock, runtime, checkpoint, start, running, world } = nodeInMemory(t)
  const newer = 'busybox:1.37'
  runtime.images.add(newer)
  world.want(podRunning('web'))
  await clock.advance(1_000)
  const older = checkpoint.content
  const changed = podRunning('web', listening, { containers: [{ name: 'main', image: newer, command: listening }] })
  const ephemeralContainers = [{ name: 'debug', image, command: listening }]
  world.want({ ...changed, spec: { ...changed.spec, ephemeralContainers } })
  await clock.advance(60_000)
  await world.stop()
  const made = running().map(({ id }) => id)
  t.equal(made.length, 3)
  const next = start({
    checkpoint: {
      load: async () => older && { ...older, mayBeOld: true as const },
      save: async () => undefined,
      keepCopy: async () => undefined,
    },
  })
  await clock.advance(200_000)
  t.same(
    running().map(({ id }) => id),
    made,
  )
  t.equal(next.status('web')?.phase, 'Running')
  next.want(podRunning('web'))
  await clock.advance(60_000)
  t.match(next.status('web')?.containerStatuses, [{ image }])
  t.equal(running().length, 2)
})

test('a machine that was given another name does not take over what it ran under the old one', async (t) => {
  const before = { epoch: 'one', version: 1, pods: [aPod({ name: 'web', nodeName: 'pi-02' })] }
  const { clock, log, runtime } = nodeInMemory(t, { checkpoint: memoryCheckpoint({ desired: before, endings: {} }) })
  await clock.advance(60_000)
  t.same(runtime.containers, [])
  t.same(log.messages('warn'), ['Checkpoint ignored: it has pods of another node'])
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
    keepCopy: kept.keepCopy,
  }
  const { clock, world } = nodeInMemory(t, { checkpoint })
  world.want(podRunning('web'))
  await clock.advance(1_000)
  t.equal(world.status('web')?.phase, 'Running')
  failing = false
  await clock.advance(31_000)
  t.equal(kept.content?.desired.pods.length, 1)
})

test('a device of a running container stays its own under another name, also after a restart of the agent', async (t) => {
  const devices = new Map([
    ['bramble.dev/stick', [aDevice('/dev/by-id', { number: '/dev/s0' })]],
    ['bramble.dev/tty', [aDevice('/dev/s0')]],
  ])
  const allocatable = { cpu: '4', memory: '4Gi', pods: '110', 'bramble.dev/stick': '1', 'bramble.dev/tty': '1' }
  const { clock, runtime, start, world } = nodeInMemory(t, { devices, allocatable })
  const asking = (name: string, resource: string) => {
    const container = { name: 'main', image, command: listening, resources: { limits: { [resource]: '1' } } }
    return podRunning(name, listening, { containers: [container] })
  }
  const first = asking('first', 'bramble.dev/stick')
  const second = asking('second', 'bramble.dev/tty')
  world.want(first)
  await clock.advance(1_000)
  t.equal(world.status('first')?.phase, 'Running')
  await world.stop()
  const next = start({ epoch: 'two' })
  next.want(first, second)
  await clock.advance(1_000)
  t.match(next.status('first'), { phase: 'Running', containerStatuses: [{ restartCount: 0 }] })
  t.match(next.status('second')?.containerStatuses?.[0]?.state?.waiting, {
    reason: 'CreateContainerConfigError',
    message: '1 of bramble.dev/tty requested, 1 on this machine, 0 free',
  })
  next.want(second)
  await clock.advance(60_000)
  t.equal(next.status('second')?.phase, 'Running', 'when it is free')
  t.match(
    runtime.containers.find(({ identity }) => identity.podName === 'second' && identity.kind === 'container')?.devices,
    [{ source: '/dev/s0', target: '/dev/s0' }],
  )
})
