import { type Test, test } from 'tap'
import { dockerRuntime } from '../agent/adapters/docker/docker-runtime.ts'
import type { PodStatus } from '../api/pod.ts'
import { aPod } from '../api/testing/builders.ts'
import { dockerDoor } from './support/docker-door.ts'
import { startDockerd, type TestDockerd, whyNoDockerd } from './support/dockerd.ts'
import { container, eventually, image, isReady, listening, nodeOnDocker } from './support/pods.ts'

const create = /^POST .*\/containers\/create$/
const start = /^POST .*\/containers\/ID\/start$/
const patienceMs = 60_000

const pod = (name: string) => aPod({ name, uid: `uid-${name}`, containers: [container('main', listening[2] ?? '')] })

test('an engine that goes in the middle of a step', { skip: whyNoDockerd() }, async (t) => {
  const dockerd = await startDockerd(t)
  await dockerd.importImage(image)
  await firstPod(t, dockerd)
  const restart = async () => {
    await dockerd.kill()
    await dockerd.start()
  }

  const beginnings = [
    ['before it makes the sandbox', 'hold', create, 0],
    ['after it made the sandbox', 'holdAnswer', create, 0],
    ['before it makes the container', 'hold', create, 1],
    ['after it started the container', 'holdAnswer', start, 1],
  ] as const
  for (const [moment, how, like, pass] of beginnings) {
    t.test(`killed ${moment}: the pod runs, and nothing is left over`, async (t) => {
      const { door, node } = await nodeBehindDoor(t, dockerd)
      const met = door[how](like, pass)
      node.want(pod('web'))
      await met
      await restart()
      door.breakOff()
      const names = async () =>
        (await node.runtime.listContainers())
          .filter(({ state }) => state === 'running')
          .map(({ identity }) => identity.containerName)
          .sort()
          .join()
      await eventually(
        async () => (await names()) === ',main' && isReady(node.status('web') ?? {}),
        () => JSON.stringify([node.status('web'), node.eventTexts()]),
        patienceMs,
      )
      t.equal(await halfMade(dockerd), 0, 'half-made ones are gone')
    })
  }

  const ends = [
    ['before it stops the container', /^POST .*\/containers\/ID\/stop$/],
    ['before it removes the container', /^DELETE .*\/containers\/ID$/],
  ] as const
  for (const [moment, like] of ends) {
    t.test(`killed ${moment}: the pod goes all the same`, async (t) => {
      const { door, node } = await nodeBehindDoor(t, dockerd)
      const going = pod('web')
      node.want(going)
      await node.until('web', isReady)
      const met = door.hold(like)
      const deletion = { deletionTimestamp: '2026-01-01T00:00:30Z', deletionGracePeriodSeconds: 5 }
      node.want({ ...going, metadata: { ...going.metadata, ...deletion } })
      await met
      await restart()
      door.breakOff()
      await eventually(() => node.gone.includes('uid-web'), undefined, patienceMs)
      t.same(await node.runtime.listContainers(), [])
    })
  }

  t.test('one that hangs for a while restarts nothing', async (t) => {
    const { door, node } = await nodeBehindDoor(t, dockerd)
    node.want(pod('web'))
    const before = await node.until('web', isReady)
    const pid = dockerd.pid ?? 0
    const met = door.hold(create, 1)
    node.want(pod('web'), pod('second'))
    await met
    process.kill(pid, 'SIGSTOP')
    t.teardown(async () => {
      process.kill(pid, 'SIGCONT')
    })
    door.breakOff()
    const asked = door.calls.length
    await eventually(() => door.calls.length > asked)
    t.same(node.status('web'), before, 'what was known stands')
    process.kill(pid, 'SIGCONT')
    await node.until('second', isReady)
    t.same(node.status('web')?.containerStatuses, before.containerStatuses)
    t.equal(await halfMade(dockerd), 0)
  })
})

test('containers that exit with 0 because Docker is stopped have not completed', {
  skip: whyNoDockerd(),
}, async (t) => {
  const dockerd = await startDockerd(t)
  await dockerd.importImage(image)
  const node = nodeOnDocker(t, dockerd)
  const slowly = 'trap "sleep 2; exit 0" TERM; while :; do sleep 0.1; done'
  const ending = (name: string, restartPolicy: 'Never' | 'OnFailure', ...scripts: readonly string[]) => {
    const containers = scripts.map((script, index) => container(index === 0 ? 'main' : 'slow', script))
    return aPod({ name, uid: `uid-${name}`, restartPolicy, containers })
  }
  const script = listening[2] ?? ''
  node.want(
    ending('once', 'Never', script, slowly),
    ending('work', 'OnFailure', script, slowly),
    ending('done', 'Never', 'exit 0'),
    ending('stopped', 'OnFailure', script),
  )
  for (const name of ['once', 'work', 'stopped']) await node.until(name, isReady)
  await node.until('done', ({ phase }) => phase === 'Succeeded')
  const label = ['io.kubernetes.pod.uid=uid-stopped', 'io.kubernetes.container.name=main']
  const [stopped] = await dockerd.docker.listContainers({ filters: { label } })
  await dockerd.docker.getContainer(stopped?.Id ?? '').stop()
  await node.until('stopped', ({ phase }) => phase === 'Succeeded')

  await dockerd.stop()
  await dockerd.start()
  const failed = await node.until('once', ({ phase }) => phase === 'Failed' || phase === 'Succeeded')
  const terminated = { exitCode: 143, reason: 'Error', message: /the container engine is stopped/ }
  t.match(failed, { phase: 'Failed', containerStatuses: [{ state: { terminated } }, { state: { terminated } }] })
  const isAgain = ({ containerStatuses = [] }: PodStatus) => containerStatuses.every((one) => one.restartCount === 1)
  const again = await node.until(
    'work',
    (status) => (isReady(status) && isAgain(status)) || status.phase === 'Succeeded',
  )
  t.equal(again.phase, 'Running')
  for (const name of ['done', 'stopped']) t.match(node.status(name), { phase: 'Succeeded' }, name)
})

/** The sandbox's image is made with the first one. */
async function firstPod(t: Test, dockerd: TestDockerd): Promise<void> {
  const node = nodeOnDocker(t, dockerd)
  node.want(pod('first'))
  await node.until('first', isReady)
  node.want()
  await eventually(() => node.gone.includes('uid-first'))
  await node.stop()
}

async function nodeBehindDoor(t: Test, dockerd: TestDockerd) {
  const door = await dockerDoor(t, dockerd.socket)
  const runtime = dockerRuntime({ socketPath: door.socket, nodeName: 'pi-01' })
  return { door, node: nodeOnDocker(t, dockerd, { runtime }) }
}

/** Made, and never started. */
async function halfMade({ docker }: TestDockerd): Promise<number> {
  return (await docker.listContainers({ all: true, filters: { status: ['created'] } })).length
}
