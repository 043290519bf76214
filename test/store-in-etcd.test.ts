/** A fleet whose store is in etcd: the programs as a user starts them, and the move between SQLite and etcd. */
import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { whyNoDockerd } from './support/dockerd.ts'
import { etcdCluster, noEtcd } from './support/etcd.ts'
import type { Controller } from './support/fleet.ts'
import { joinedFleet } from './support/joined-fleet.ts'
import { podManifest } from './support/manifests.ts'
import { image } from './support/pods.ts'
import { etcdFields } from './support/replicas.ts'
import { eventually } from './support/wait.ts'

const skip = whyNoDockerd() || noEtcd

const runs = 'jsonpath={.status.phase} {.status.containerStatuses[0].containerID}'

async function running(controller: Controller, name: string): Promise<string> {
  return eventually(`pod ${name} runs`, async () => {
    const { stdout } = await controller.tryKubectl('get', 'pod', name, '-o', runs)
    return /^Running \S+/.test(stdout) && stdout
  })
}

async function appliedPod(controller: Controller, name: string): Promise<string> {
  await controller.kubectlWith(podManifest({ name, image }), 'apply', '-f', '-')
  return running(controller, name)
}

test('the controller and etcd are killed, and come back with everything', { skip, timeout: 300_000 }, async (t) => {
  const etcd = await etcdCluster({ tls: true })
  t.teardown(() => etcd.remove())
  const fleet = await joinedFleet(t, { controller: etcdFields(etcd) })
  let { controller } = fleet
  await fleet.startReady()
  await controller.kubectl('-n', 'default', 'create', 'secret', 'generic', 'hidden', '--from-literal=word=sesame')
  const before = await appliedPod(controller, 'early')
  t.match(await controller.kubectl('get', '--raw', '/readyz?verbose'), /\[\+\]etcd ok/)
  await t.rejects(access(join(controller.dataDir, 'store.db')), 'there is no file of SQLite')

  await t.test(
    'a backup is refused with the way to make one, and so is a restore while the controller runs',
    async (t) => {
      const { dataDir } = controller
      const target = `${dataDir}.backup`
      const backup = () => controller.command('backup', target, '--data-dir', dataDir)
      t.match(await backup(), {
        code: 1,
        stderr: /in etcd: back them up with etcdctl snapshot save, and copy authority/,
      })
      const restored = await controller.command('restore', target, '--replace', '--data-dir', dataDir)
      t.match(restored, { code: 1, stderr: /A controller uses .*: stop it first/ })
    },
  )

  await t.test('etcd is killed: reads are answered, writes are refused, and both go on when it is back', async (t) => {
    await etcd.members[0]?.kill()
    t.equal((await controller.tryKubectl('get', 'pod', 'early')).code, 0)
    const refused = await controller.tryKubectl('create', 'configmap', 'a')
    t.match(refused, { code: 1, stderr: /etcd/ })
    t.match((await controller.tryKubectl('get', '--raw', '/readyz?verbose')).stderr, /\[-\]etcd failed/)
    await etcd.members[0]?.start()
    await eventually('a write', async () => {
      const { code, stderr } = await controller.tryKubectl('create', 'configmap', 'b')
      // One without an answer may have happened.
      return code === 0 || /AlreadyExists/.test(stderr)
    })
  })

  await t.test('controller and etcd are killed together: the pod runs on, and nothing is lost', async (t) => {
    controller.program.kill('SIGKILL')
    await etcd.members[0]?.kill()
    await controller.program.ended
    await etcd.members[0]?.start()
    controller = await fleet.controllerAgain()
    await controller.nodesReady('pi-1')
    t.equal(await running(controller, 'early'), before, 'the same container')
    const word = await controller.kubectl('get', 'secret', 'hidden', '-o', 'jsonpath={.data.word}')
    t.equal(Buffer.from(word, 'base64').toString(), 'sesame')
    await appliedPod(controller, 'late')
  })
})

test('a fleet moves from SQLite to etcd and back, and restarts no container', { skip, timeout: 300_000 }, async (t) => {
  const etcd = await etcdCluster({ tls: true })
  t.teardown(() => etcd.remove())
  const settings: Record<string, unknown> = {}
  const fleet = await joinedFleet(t, { controller: settings })
  let { controller } = fleet
  await fleet.startReady()
  const container = await appliedPod(controller, 'web')
  await controller.kubectl('-n', 'default', 'create', 'secret', 'generic', 'hidden', '--from-literal=word=sesame')
  const uid = await controller.kubectl('get', 'pod', 'web', '-o', 'jsonpath={.metadata.uid}')
  const { dataDir } = controller
  const { files } = etcd.tls ?? {}
  const place = [
    ...['--data-dir', dataDir, '--etcd-servers', etcd.urls.join(',')],
    ...[
      '--etcd-cafile',
      files?.ca ?? '',
      '--etcd-certfile',
      files?.certificate ?? '',
      '--etcd-keyfile',
      files?.key ?? '',
    ],
  ]
  const migrate = (to: string) => controller.command('store', 'migrate', '--to', to, ...place)
  const isWhole = async (t: Test) => {
    await controller.nodesReady('pi-1')
    t.equal(await running(controller, 'web'), container, 'the same container')
    t.equal(await controller.kubectl('get', 'pod', 'web', '-o', 'jsonpath={.metadata.uid}'), uid)
    const word = await controller.kubectl('get', 'secret', 'hidden', '-o', 'jsonpath={.data.word}')
    t.equal(Buffer.from(word, 'base64').toString(), 'sesame')
  }

  t.match(await migrate('etcd'), { code: 1, stderr: /A controller is running: stop it first/ })
  await controller.program.stop()
  const moved = await migrate('etcd')
  t.match(
    moved,
    { code: 0, stdout: /Moved to \/bramble\/default in etcd, and verified: .*1 nodes, .*1 pods, / },
    moved.stderr,
  )
  Object.assign(settings, etcdFields(etcd))
  controller = await fleet.controllerAgain()
  await t.test('in etcd', isWhole)
  t.match(await migrate('sqlite'), { code: 1, stderr: /A controller is running: stop it first/ })
  await controller.program.stop()
  const back = await migrate('sqlite')
  t.match(back, { code: 0, stdout: /Moved to .*store\.db, and verified: / }, back.stderr)
  for (const field of Object.keys(settings)) delete settings[field]
  controller = await fleet.controllerAgain()
  await t.test('back in SQLite', isWhole)
})
