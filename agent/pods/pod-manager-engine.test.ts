import { test } from 'tap'
import { platformProblem } from '../runtime/platforms.ts'
import type { FakeRuntime } from '../testing/fake-runtime.ts'
import { listening, nodeInMemory, podRunning } from '../testing/node-in-memory.ts'

test('an engine that is away is waited for, and statuses stand meanwhile', async (t) => {
  const { clock, runtime, log, world } = nodeInMemory(t)
  world.want(podRunning('web'))
  await clock.advance(1_000)
  const before = world.status('web')
  runtime.setReachable(false)
  world.want(podRunning('web'), podRunning('late'))
  await clock.advance(300_000)
  t.same(world.status('web'), before)
  t.same(log.messages('warn'), [], 'an unreachable engine is reported elsewhere')
  runtime.setReachable(true)
  await clock.advance(31_000)
  t.equal(world.status('late')?.phase, 'Running')
})

test('an engine that goes away at any step only delays a pod', async (t) => {
  for (const method of ['listContainers', 'findImage', 'runSandbox', 'createContainer', 'startContainer'] as const) {
    const { clock, runtime, running, world } = nodeInMemory(t)
    runtime.failNext(method, 'Unreachable')
    world.want(podRunning('web'))
    await clock.advance(60_000)
    t.equal(world.status('web')?.phase, 'Running', method)
    t.equal(running().length, 2)
    t.same(world.status('web')?.containerStatuses?.[0]?.restartCount, 0)
    runtime.failNext('stopContainer', 'Unreachable')
    runtime.failNext('removeContainer', 'Unreachable')
    world.want()
    await clock.advance(60_000)
    t.same(runtime.containers, [])
  }
})

test('what the engine refuses is shown on the pod, and tried again', async (t) => {
  const { clock, runtime, world } = nodeInMemory(t)
  runtime.failNext('runSandbox', 'PortTaken', 'Port 80 is taken')
  runtime.failNext('createContainer', 'Failed', 'Minimum memory limit allowed is 6MB')
  world.want(podRunning('web'))
  await clock.advance(5_000)
  t.match(world.status('web')?.containerStatuses?.[0]?.state?.waiting, {
    reason: 'CreateContainerError',
    message: 'Minimum memory limit allowed is 6MB',
  })
  t.ok(world.eventTexts().includes('FailedCreatePodSandBox: Failed to create pod sandbox: Port 80 is taken'))
  await clock.advance(10_000)
  t.equal(world.status('web')?.phase, 'Running')
})

test('a sandbox that cannot be made is tried ever more seldom, whatever noise the tries make', async (t) => {
  const { clock, runtime, world } = nodeInMemory(t)
  const tries = () => runtime.calls.filter(({ method }) => method === 'runSandbox').length
  for (let i = 0; i < 50; i++) runtime.failNext('runSandbox')
  world.want(podRunning('web'))
  for (let second = 0; second < 60; second++) {
    world.publishDesired({ pods: [podRunning('web')], secrets: [] })
    await clock.advance(1_000)
  }
  t.equal(tries(), 6, 'at 0, 1, 3, 7, 15 and 31 s')
})

test('a container that the engine cannot remove blocks no other', async (t) => {
  const { clock, runtime, running, world } = nodeInMemory(t)
  world.want(podRunning('web'))
  await clock.advance(1_000)
  runtime.powerCut()
  runtime.failNext('removeContainer', 'Failed', 'device or resource busy')
  await clock.advance(1_000)
  t.equal(running().length, 2)
  t.equal(world.status('web')?.phase, 'Running')
  await clock.advance(31_000)
  t.equal(runtime.containers.filter(({ identity }) => identity.kind === 'sandbox').length, 1, 'it goes later')
})

test('an image that cannot be had is tried again, further and further apart', async (t) => {
  const { clock, runtime, world } = nodeInMemory(t)
  world.want(podRunning('web', listening, { containers: [{ name: 'main', image: 'absent:1' }] }))
  const reason = () => world.status('web')?.containerStatuses?.[0]?.state?.waiting?.reason
  await clock.advance(1_000)
  t.equal(reason(), 'ErrImagePull')
  await clock.advance(5_000)
  t.equal(reason(), 'ImagePullBackOff')
  await clock.advance(60_000)
  const pulls = () => runtime.calls.filter(({ method }) => method === 'pullImage').length
  t.equal(pulls(), 3, 'at 0, 10 and 30 s')
  const failed = 'Failed: Failed to pull image "absent:1": manifest for absent:1 not found'
  t.equal(world.eventTexts().filter((one) => one === failed).length, 3, 'each failed pull has one Event')
  t.ok(world.eventTexts().includes('BackOff: Back-off pulling image "absent:1"'))
  runtime.registry.add('absent:1')
  await clock.advance(10_000)
  t.equal(world.status('web')?.phase, 'Running')
})

test('a pod that comes while another one pulls its image starts when the pull ends', async (t) => {
  const { clock, runtime, world } = nodeInMemory(t)
  const letGo = runtime.holdPulls()
  runtime.registry.add('app:1')
  const pod = (name: string) => podRunning(name, listening, { containers: [{ name: 'main', image: 'app:1' }] })
  world.want(pod('first'))
  await clock.advance(20_000)
  world.want(pod('first'), pod('late'))
  await clock.advance(20_000)
  t.equal(world.status('late')?.containerStatuses?.[0]?.state?.waiting?.reason, 'ContainerCreating')
  letGo()
  await clock.advance(5_000)
  t.same([world.status('first')?.phase, world.status('late')?.phase], ['Running', 'Running'])
  t.equal(runtime.calls.filter(({ method }) => method === 'pullImage').length, 1)
})

test('an image that the engine refuses gets no container, and an Event has the reason', async (t) => {
  const { clock, runtime, world } = nodeInMemory(t)
  runtime.images.add('app:1')
  const refused = 'image app:1: its configuration is too large (300 KiB, at most 256 KiB)'
  runtime.refusedImages.set('app:1', refused)
  const container = { name: 'main', image: 'app:1', imagePullPolicy: 'Never' } as const
  world.want(podRunning('web', listening, { containers: [container] }))
  await clock.advance(1_000)
  const waiting = () => world.status('web')?.containerStatuses?.[0]?.state?.waiting
  t.match(waiting(), { reason: 'ErrImagePull', message: refused })
  t.ok(world.eventTexts().includes(`Failed: Failed to pull image "app:1": ${refused}`))
  t.notOk(runtime.calls.some(({ method }) => method === 'createContainer'))
  runtime.refusedImages.delete('app:1')
  await clock.advance(300_000)
  t.equal(world.status('web')?.phase, 'Running')
})

test('an image for another platform is reported, and the pod runs once the right one is there', async (t) => {
  const machine = { os: 'linux', architecture: 'amd64', variant: '' }
  const { clock, runtime, world } = nodeInMemory(t, {
    platformProblem: async (name, platform) => platformProblem(name, platform, machine, []),
  })
  runtime.registry.add('app:1')
  runtime.imagePlatforms.set('app:1', 'linux/arm64')
  world.want(podRunning('web', listening, { containers: [{ name: 'main', image: 'app:1' }] }))
  await clock.advance(1_000)
  const message = /image "app:1" is for linux\/arm64, this machine is linux\/amd64: use an image built for/
  t.match(world.status('web')?.containerStatuses?.[0]?.state?.waiting, { reason: 'ImagePlatformMismatch', message })
  await clock.advance(200_000)
  const failed = world.eventTexts().filter((one) => one.startsWith('Failed: Failed to use image: image "app:1" is for'))
  t.equal(failed.length, 1)
  runtime.imagePlatforms.delete('app:1')
  await clock.advance(200_000)
  t.equal(world.status('web')?.phase, 'Running')
})

const ending = (restartPolicy: 'Never' | 'OnFailure') => ({ restartPolicy })

/** As `systemctl stop docker`: all containers are stopped, and from then on no call is answered. */
function stopEngine(runtime: FakeRuntime) {
  runtime.setReachable(false)
  for (const { id, identity } of runtime.containers) runtime.exit(id, identity.kind === 'sandbox' ? 137 : 0)
}

test('containers that exit with 0 because the engine is stopped have not completed', async (t) => {
  const { clock, runtime, world } = nodeInMemory(t)
  const pods = [
    podRunning('once', listening, ending('Never')),
    podRunning('work', listening, ending('OnFailure')),
    podRunning('done', ['sh', '-c', 'exit 0'], ending('Never')),
  ]
  world.want(...pods)
  await clock.advance(1_000)
  t.match(world.status('done'), { phase: 'Succeeded' })
  stopEngine(runtime)
  await clock.advance(20_000)
  runtime.setReachable(true)
  await clock.advance(31_000)
  t.match(world.status('work'), { phase: 'Running', containerStatuses: [{ restartCount: 1 }] })
  const terminated = {
    exitCode: 143,
    reason: 'Error',
    message: /^The container exited with code 0 when the pod's sandbox ended/,
  }
  t.match(world.status('once'), { phase: 'Failed', containerStatuses: [{ state: { terminated } }] })
  t.match(world.status('done'), { phase: 'Succeeded' })
})

test('an agent that starts after the engine was stopped finds that they have not completed', async (t) => {
  const { clock, runtime, start, world } = nodeInMemory(t)
  world.want(podRunning('once', listening, ending('Never')), podRunning('work', listening, ending('OnFailure')))
  await clock.advance(1_000)
  stopEngine(runtime)
  await world.stop()
  runtime.setReachable(true)
  const next = start()
  await clock.advance(5_000)
  t.match(next.status('once'), { phase: 'Failed' })
  t.match(next.status('work'), { phase: 'Running' })
})

test('a container that a user stops has completed if it exits with 0', async (t) => {
  const { clock, runtime, running, world } = nodeInMemory(t)
  world.want(podRunning('work', listening, ending('OnFailure')))
  await clock.advance(1_000)
  runtime.exit(running().find(({ identity }) => identity.kind === 'container')?.id ?? '', 0)
  await clock.advance(5_000)
  t.match(world.status('work'), { phase: 'Succeeded' })
})

test('the end of a pod is saved before its sandbox is stopped', async (t) => {
  const { clock, checkpoint, running, runtime, world } = nodeInMemory(t)
  const save = checkpoint.save
  let release: () => void = () => undefined
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  checkpoint.save = async (data) => {
    if (Object.keys(data.endings).length > 0) await released
    await save(data)
  }
  world.want(podRunning('once', listening, ending('Never')))
  await clock.advance(1_000)
  runtime.exit(running().find(({ identity }) => identity.kind === 'container')?.id ?? '', 0)
  await clock.advance(5_000)
  t.match(world.status('once'), { phase: 'Succeeded' })
  t.equal(running().length, 1, 'the sandbox runs')
  release()
  await clock.advance(1_000)
  t.same(running(), [])
})

test('the sandbox of a pod that has ended runs until its end can be saved on a disk that was full', async (t) => {
  const { clock, checkpoint, running, runtime, world } = nodeInMemory(t)
  const save = checkpoint.save
  world.want(podRunning('once', listening, ending('OnFailure')))
  await clock.advance(1_000)
  checkpoint.save = () => Promise.reject(new Error('ENOSPC: no space left on device'))
  runtime.exit(running().find(({ identity }) => identity.kind === 'container')?.id ?? '', 0)
  await clock.advance(60_000)
  t.match(world.status('once'), { phase: 'Succeeded' })
  t.equal(running().length, 1, 'the sandbox runs')
  checkpoint.save = save
  await clock.advance(45_000)
  t.same(running(), [])
})

test('a pod that is deleted is removed also while its end cannot be saved', async (t) => {
  const { clock, checkpoint, runtime, world } = nodeInMemory(t)
  world.want(podRunning('once', listening, ending('OnFailure')))
  await clock.advance(1_000)
  checkpoint.save = () => Promise.reject(new Error('ENOSPC: no space left on device'))
  world.want()
  await clock.advance(60_000)
  t.same(runtime.containers, [])
})
