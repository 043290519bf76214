import { test } from 'tap'
import { aPod } from '../../api/testing/builders.ts'
import type { FakeRuntime } from '../testing/fake-runtime.ts'
import { image, listening, nodeInMemory } from '../testing/node-in-memory.ts'

const onPi = { image, imagePullPolicy: 'IfNotPresent' }
const forLong = { ...onPi, command: listening }
const ending = (exitCode: number) => ({ ...onPi, command: ['sh', '-c', `exit ${exitCode}`] })

/** `docker container prune -f`. */
async function prune(runtime: FakeRuntime) {
  for (const { id, state } of runtime.containers) if (state === 'exited') await runtime.removeContainer(id)
}

const started = ({ calls }: FakeRuntime, name: string) =>
  calls.filter(({ method, subject }) => method === 'startContainer' && subject === name).length

for (const [restartPolicy, exitCode, reason] of [
  ['Never', 0, 'Completed'],
  ['Never', 4, 'Error'],
  ['OnFailure', 0, 'Completed'],
] as const) {
  test(`with ${restartPolicy} a container that ended with ${exitCode} and was removed does not run again`, async (t) => {
    const { clock, runtime, running, messages, start, world, checkpoint } = nodeInMemory(t)
    messages.set('uid-of-job/x/0', 'all of it')
    const containers = [
      { ...ending(exitCode), name: 'x' },
      { ...forLong, name: 'y' },
    ]
    const job = aPod({ name: 'job', restartPolicy, containers })
    world.want(job)
    await clock.advance(1_000)
    const before = world.status('job')
    const message = 'all of it'
    t.match(before?.containerStatuses?.[0]?.state, { terminated: { exitCode, reason, message } })
    await prune(runtime)
    await clock.advance(400_000)
    t.equal(started(runtime, 'x'), 1)
    t.same(world.status('job'), before, 'and its status is the same')
    await world.stop()
    const saved = checkpoint.content

    const next = start()
    await clock.advance(1_000)
    next.want(job)
    await clock.advance(400_000)
    t.equal(started(runtime, 'x'), 1, 'nor with the next agent')
    t.match(next.status('job'), { phase: 'Running', startTime: before?.startTime })
    t.same(next.status('job')?.containerStatuses, before?.containerStatuses)
    t.same(checkpoint.content?.ends, saved?.ends)
    runtime.exit(running().find(({ identity }) => identity.containerName === 'y')?.id ?? '', 0)
    await clock.advance(1_000)
    t.equal(next.status('job')?.phase, exitCode === 0 ? 'Succeeded' : 'Failed')
    t.same(checkpoint.content?.ends, {}, 'the final status of the pod has it')
  })
}

test('an init container that ended and was removed does not run again, and holds nothing up', async (t) => {
  const { clock, runtime, start, running, world } = nodeInMemory(t)
  const initContainers = [
    { ...ending(0), name: 'first' },
    { ...forLong, name: 'second' },
  ]
  const plain = aPod({ name: 'web', containers: [{ ...forLong, name: 'main' }] })
  const web = { ...plain, spec: { ...plain.spec, initContainers } }
  const count = () => ['first', 'second', 'main'].map((name) => started(runtime, name))
  world.want(web)
  await clock.advance(1_000)
  t.same(count(), [1, 1, 0])
  await prune(runtime)
  await clock.advance(120_000)
  t.same(count(), [1, 1, 0])
  await world.stop()
  const second = running().find(({ identity }) => identity.containerName === 'second')
  const next = start()
  await clock.advance(1_000)
  runtime.exit(second?.id ?? '', 0)
  await clock.advance(1_000)
  t.same(count(), [1, 1, 1])
  await prune(runtime)
  await clock.advance(120_000)
  t.same(count(), [1, 1, 1])
  t.match(next.status('web')?.initContainerStatuses, [
    { ready: true, restartCount: 0, state: { terminated: { exitCode: 0 } } },
    { ready: true, restartCount: 0, state: { terminated: { exitCode: 0 } } },
  ])
})

test('with Never a failed init container that was removed fails the pod, also for the next agent', async (t) => {
  const { clock, runtime, start, world } = nodeInMemory(t)
  const plain = aPod({ name: 'web', restartPolicy: 'Never', containers: [{ ...forLong, name: 'main' }] })
  const web = { ...plain, spec: { ...plain.spec, initContainers: [{ ...ending(3), name: 'first' }] } }
  world.want(web)
  await clock.advance(1_000)
  await prune(runtime)
  await clock.advance(60_000)
  t.equal(world.status('web')?.phase, 'Failed')
  await world.stop()
  const next = start()
  await clock.advance(60_000)
  t.equal(next.status('web')?.phase, 'Failed')
  t.equal(started(runtime, 'first'), 1)
})

test('an ephemeral container that ended and was removed does not run again with the next agent', async (t) => {
  const { clock, runtime, start, world } = nodeInMemory(t)
  const plain = aPod({ name: 'web', containers: [{ ...forLong, name: 'main' }] })
  const look = { ...ending(7), name: 'look', targetContainerName: 'main' }
  const web = { ...plain, spec: { ...plain.spec, ephemeralContainers: [look] } }
  world.want(plain)
  await clock.advance(1_000)
  world.want(web)
  await clock.advance(1_000)
  t.equal(started(runtime, 'look'), 1)
  await world.stop()
  await prune(runtime)
  const next = start()
  await clock.advance(60_000)
  t.equal(started(runtime, 'look'), 1)
  t.match(next.status('web')?.ephemeralContainerStatuses, [{ state: { terminated: { exitCode: 7 } } }])
})

test('a container that restarts gets a number that none before it had, whatever was removed', async (t) => {
  const { clock, runtime, running, world, checkpoint } = nodeInMemory(t)
  world.want(aPod({ name: 'web', containers: [{ ...forLong, name: 'main' }] }))
  await clock.advance(1_000)
  const numbers: number[] = []
  for (let round = 0; round < 3; round++) {
    const main = running().find(({ identity }) => identity.containerName === 'main')
    numbers.push(main?.identity.attempt ?? -1)
    runtime.exit(main?.id ?? '', 1)
    await prune(runtime)
    await clock.advance(400_000)
  }
  t.same(numbers, [0, 1, 2])
  t.same(checkpoint.content?.ends, {}, 'nothing is saved of a container that runs again')
})

test('a deleted pod whose ended container was removed is gone, and only what exists is removed', async (t) => {
  const { clock, runtime, world } = nodeInMemory(t)
  const containers = [
    { ...ending(0), name: 'x' },
    { ...forLong, name: 'y' },
  ]
  world.want(aPod({ name: 'job', restartPolicy: 'Never', containers }))
  await clock.advance(1_000)
  await prune(runtime)
  const removed = () => runtime.calls.filter(({ method }) => method === 'removeContainer').length
  const before = removed()
  world.want()
  await clock.advance(60_000)
  t.same(world.gone, ['uid-of-job'])
  t.equal(removed() - before, 2, 'y and the sandbox')
})
