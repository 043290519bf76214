import { cp, mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import type { ContainerRuntime } from '../agent/runtime/runtime.ts'
import { memoryCheckpoint } from '../agent/testing/pod-world.ts'
import { savedTree } from '../agent/testing/saved-trees.ts'
import type { Pod, PodStatus } from '../api/pod.ts'
import { aPod } from '../api/testing/builders.ts'
import { dockerDoor } from './support/docker-door.ts'
import { startDockerd, whyNoDockerd } from './support/dockerd.ts'
import { isServing, loneNode } from './support/lone-node.ts'
import { container, eventually, image, isReady, listening, nodeOnDocker, statusOf } from './support/pods.ts'
import { testVolumes } from './support/volumes.ts'

const [, , listens = ''] = listening

function pod(name: string, names: readonly string[] = ['main'], spec: Partial<Pod['spec']> = {}): Pod {
  const containers = names.map((one) => container(one, listens, { volumeMounts: mountsOf(spec) }))
  return aPod({ name, uid: `uid-${name}`, containers, spec: { terminationGracePeriodSeconds: 2, ...spec } })
}

function mountsOf({ volumes = [] }: Partial<Pod['spec']>) {
  return volumes.map(({ name }) => ({ name, mountPath: `/${name}` }))
}

/** Who runs, and since when. */
async function running(runtime: ContainerRuntime) {
  const found = (await runtime.listContainers()).filter(({ state }) => state === 'running')
  return found.map(({ id, startedAt }) => `${id} ${startedAt}`).sort()
}

test('an engine with live-restore', { skip: whyNoDockerd() }, async (t) => {
  const dockerd = await startDockerd(t, { liveRestore: true })
  await dockerd.importImage(image)

  t.test('goes and comes, or is killed, while the pods run on: they are adopted', async (t) => {
    const node = nodeOnDocker(t, dockerd)
    const pods = [pod('pair', ['one', 'two'])]
    node.want(...pods)
    await node.until('pair', isReady)
    const before = await running(node.runtime)
    t.equal(before.length, 3)
    for (const [name, leave] of [
      ['stopped', dockerd.stop],
      ['killed', dockerd.kill],
    ] as const) {
      await leave()
      await dockerd.start()
      pods.push(pod(name))
      node.want(...pods)
      await node.until(name, isReady)
      const after = await running(node.runtime)
      t.same(
        after.filter((one) => before.includes(one)),
        before,
        `${name}: the same ones, since the same moment`,
      )
    }
    t.match(node.status('pair'), { containerStatuses: [{ restartCount: 0 }, { restartCount: 0 }] })
    t.notMatch(node.eventTexts().join('\n'), /Killing|SandboxChanged|BackOff/)
    t.equal((await node.runtime.listContainers()).length, 3 + 2 + 2)
  })
})

test('an engine without live-restore, and a machine', { skip: whyNoDockerd() }, async (t) => {
  const dockerd = await startDockerd(t)
  await dockerd.importImage(image)
  const restarts = (status: PodStatus) => status.containerStatuses?.map(({ restartCount }) => restartCount) ?? []

  for (const [how, leave] of [
    ['stopped', dockerd.stop],
    ['killed', dockerd.kill],
  ] as const) {
    t.test(`${how} and started again it has lost its containers: they are started again, and counted`, async (t) => {
      const node = nodeOnDocker(t, dockerd)
      node.want(pod('pair', ['one', 'two']))
      const before = await node.until('pair', isReady)
      await leave()
      await dockerd.start()
      const after = await node.until(
        'pair',
        (status) => isReady(status) && restarts(status).every((count) => count >= 1),
      )
      for (const name of ['one', 'two']) {
        t.match(statusOf(after, name), {
          lastState: { terminated: { containerID: statusOf(before, name)?.containerID } },
        })
      }
      t.match(node.eventTexts(), /SandboxChanged: Pod sandbox changed, it will be killed and re-created./)
      await eventually(async () => (await running(node.runtime)).length === 3)
      const sandboxes = async () =>
        (await node.runtime.listContainers()).filter(({ identity }) => identity.kind === 'sandbox')
      await eventually(async () => (await sandboxes()).length === 1)
    })
  }

  t.test('after a reboot all pods come back from the checkpoint, without a controller', async (t) => {
    const node = await loneNode(t, dockerd)
    const root = join(node.dataDir, 'root')
    await cp(savedTree('pi-4-cgroup-v2'), root, { recursive: true })
    const boot = join(root, 'proc/sys/kernel/random')
    await mkdir(boot, { recursive: true })
    await writeFile(join(boot, 'boot_id'), '11111111-1111-4111-8111-111111111111\n')
    const done = aPod({
      name: 'done',
      uid: 'uid-done',
      restartPolicy: 'Never',
      containers: [container('main', 'exit 0')],
    })
    const lasting = [pod('first'), pod('second', ['one', 'two'])]
    await node.want(...lasting, done)
    const agent = node.startAgent({ root })
    const serving = async () => (await node.runtime.listContainers()).filter(isServing(lasting))
    await eventually(async () => (await serving()).length === 3)
    const ended = async () =>
      (await node.runtime.listContainers()).filter(
        ({ identity, state }) => identity.podName === 'done' && identity.kind === 'container' && state === 'exited',
      )
    await eventually(async () => (await ended()).length === 1)
    const before = await serving()

    agent.kill('SIGKILL')
    await agent.ended
    await dockerd.stop()
    await writeFile(join(boot, 'boot_id'), '22222222-2222-4222-8222-222222222222\n')
    await dockerd.start()
    t.same(await serving(), [], 'nothing comes back by itself')
    const next = node.startAgent({ root })
    t.match(await next.logged('Agent starting'), { rebooted: true })
    await eventually(async () => (await serving()).length === 3)
    const after = await serving()
    t.same(
      after.map(({ identity }) => identity.attempt),
      [1, 1, 1],
      'counted as restarts',
    )
    t.not(after[0]?.id, before[0]?.id)
    t.equal((await ended()).length, 1, 'what had ended stays ended')
    t.equal(await next.stop(), 0)
  })

  t.test('what an agent had only half made when it was killed is cleared away', async (t) => {
    const node = await loneNode(t, dockerd)
    const door = await dockerDoor(t, dockerd.socket)
    const wanted = pod('half')
    await node.want(wanted)
    const halfMade = async () => (await node.runtime.listContainers()).filter(({ state }) => state === 'created')
    for (const kind of ['sandbox', 'container']) {
      const starts = door.hold(/^POST .*\/containers\/ID\/start$/, kind === 'sandbox' ? 0 : 1)
      const agent = node.startAgent({ dockerSocket: door.socket })
      await starts
      t.match(await halfMade(), [{ identity: { kind } }], `a ${kind} that was never started`)
      agent.kill('SIGKILL')
      await agent.ended
    }
    const last = node.startAgent()
    await eventually(async () => (await node.runtime.listContainers()).some(isServing([wanted])))
    t.same(await halfMade(), [])
    const all = await node.runtime.listContainers()
    const own = all.filter(({ identity }) => identity.podName === 'half')
    t.same(own.map(({ identity }) => identity.kind).sort(), ['container', 'sandbox'])
    t.ok(all.length > own.length, 'containers that the checkpoint does not list stay until the controller was reached')
    await last.stop()
    await Promise.all(all.map(({ id }) => node.runtime.removeContainer(id)))
  })

  t.test('pods that were deleted while no agent was there leave nothing behind', async (t) => {
    const volumes = await testVolumes(t)
    const checkpoint = memoryCheckpoint()
    const first = nodeOnDocker(t, dockerd, { volumes: volumes.store, checkpoint })
    const scratch = {
      volumes: [
        { name: 'disk', emptyDir: {} },
        { name: 'memory', emptyDir: { medium: 'Memory' } },
      ],
    }
    const [stays, goes, leaves] = [pod('stays', ['main'], scratch), pod('goes', ['main'], scratch), pod('leaves')]
    first.want(stays, goes, leaves)
    for (const name of ['stays', 'goes', 'leaves']) await first.until(name, isReady)
    await first.stop()
    const before = await running(first.runtime)

    const second = nodeOnDocker(t, dockerd, { volumes: volumes.store, checkpoint, epoch: 'two' })
    const metadata = { ...leaves.metadata, deletionTimestamp: '2026-01-01T00:00:30Z', deletionGracePeriodSeconds: 2 }
    second.want(stays, { ...leaves, metadata })
    await eventually(() => ['uid-goes', 'uid-leaves'].every((uid) => second.gone.includes(uid)))
    t.same([...new Set((await second.runtime.listContainers()).map(({ identity }) => identity.podName))], ['stays'])
    const after = await running(second.runtime)
    t.equal(after.length, 2)
    t.ok(
      after.every((one) => before.includes(one)),
      'what stays was not touched',
    )
    for (const folder of [volumes.dataDirectory, volumes.memoryDirectory]) {
      t.same(await readdir(join(folder, 'pods')), ['uid-stays'])
    }
  })

  t.test('what is removed by hand comes back; what is not ours is never touched', async (t) => {
    const node = nodeOnDocker(t, dockerd)
    const label = { 'io.kubernetes.pod.uid': 'uid-theirs', 'io.kubernetes.pod.name': 'theirs' }
    const strangers = await Promise.all(
      [{}, label, { ...label, 'bramble.dev/node': 'pi-02' }].map((Labels) =>
        dockerd.docker.createContainer({ Image: image, Cmd: ['sleep', '100000'], Labels }),
      ),
    )
    t.teardown(() => Promise.all(strangers.map((one) => one.remove({ force: true }))).then(() => undefined))
    await Promise.all(strangers.map((one) => one.start()))
    const seen = async () =>
      (await Promise.all(strangers.map((one) => one.inspect()))).map(({ Id, State }) => [Id, State.StartedAt])
    const before = await seen()

    node.want(pod('pair', ['one', 'two']))
    const first = await node.until('pair', isReady)
    const idOf = (status: PodStatus, name: string) =>
      statusOf(status, name)?.containerID?.replace('docker://', '') ?? ''
    await dockerd.docker.getContainer(idOf(first, 'one')).remove({ force: true })
    const second = await node.until('pair', (status) => isReady(status) && idOf(status, 'one') !== idOf(first, 'one'))
    t.equal(statusOf(second, 'one')?.restartCount, 1)
    t.same(statusOf(second, 'two'), statusOf(first, 'two'), 'the other one runs on')

    const sandbox = (await node.runtime.listContainers()).find(({ identity }) => identity.kind === 'sandbox')
    await dockerd.docker.getContainer(sandbox?.id ?? '').remove({ force: true })
    const third = await node.until('pair', (status) => isReady(status) && idOf(status, 'two') !== idOf(second, 'two'))
    t.same(restarts(third), [2, 1], 'with its network gone all of the pod starts again')

    node.want()
    await eventually(() => node.gone.includes('uid-pair'))
    t.same(await seen(), before, 'they run since the same moment')
  })
})
