/** A fleet whose store is in etcd: the programs as a user starts them, and the move between SQLite and etcd. */
import { access, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Test, test } from 'tap'
import { parse } from 'yaml'
import { readKubeconfig } from '../broker-controller/commands/connection/kubeconfig.ts'
import { apiSession } from './replicas/api-session.ts'
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

/** The commands and the configuration of "Move a fleet to etcd" in scale.md. */
async function moveOnThePage() {
  const page = await readFile(fileURLToPath(new URL('../../docs/scale.md', import.meta.url)), 'utf8')
  const section = page.slice(page.indexOf('## Move a fleet to etcd'))
  const [, commands = '', , configuration = ''] = section.split('```', 4)
  const lines = commands.replace(/\\\n\s*/g, '').split('\n')
  const [, stop = '', backup = '', migrate = ''] = lines
  return { stop, backup, migrate, configuration: configuration.replace(/^yaml\n/, '') }
}

test('a fleet moves from SQLite to etcd and back as scale.md describes it, and restarts no container', {
  skip,
  timeout: 300_000,
}, async (t) => {
  const etcd = await etcdCluster({ size: 3, tls: true })
  t.teardown(() => etcd.remove())
  const settings: Record<string, unknown> = {}
  const fleet = await joinedFleet(t, { controller: settings })
  let { controller } = fleet
  await fleet.startReady()
  const container = await appliedPod(controller, 'web')
  await controller.kubectl('-n', 'default', 'create', 'secret', 'generic', 'hidden', '--from-literal=word=sesame')
  const uid = await controller.kubectl('get', 'pod', 'web', '-o', 'jsonpath={.metadata.uid}')
  const { dataDir } = controller
  const page = await moveOnThePage()
  t.equal(page.stop, 'systemctl stop bramble-controller')
  const copies = `${dataDir}.copies`
  await mkdir(copies)
  const { ca = '', certificate = '', key = '' } = etcd.tls?.files ?? {}
  /** With the servers and files of this test. */
  const here = (text: string) =>
    text
      .replace(/https:\/\/10\.0\.0\.([123]):2379/g, (_, number) => etcd.urls[Number(number) - 1] ?? '')
      .replace('/etc/bramble/etcd-ca.crt', ca)
      .replace('/etc/bramble/etcd-client.crt', certificate)
      .replace('/etc/bramble/etcd-client.key', key)
      .replace(/ \/root$/, ` ${copies}`)
  const command = (line: string) => controller.command(...here(line).split(' ').slice(1), '--data-dir', dataDir)
  const migrate = (to: string) => command(page.migrate.replace('--to etcd', `--to ${to}`))
  const isWhole = async (t: Test) => {
    await controller.nodesReady('pi-1')
    t.equal(await running(controller, 'web'), container, 'the same container')
    t.equal(await controller.kubectl('get', 'pod', 'web', '-o', 'jsonpath={.metadata.uid}'), uid)
    const word = await controller.kubectl('get', 'secret', 'hidden', '-o', 'jsonpath={.data.word}')
    t.equal(Buffer.from(word, 'base64').toString(), 'sesame')
  }

  t.match(await migrate('etcd'), { code: 1, stderr: /A controller is running: stop it first/ })
  await controller.program.stop()
  const copied = await command(page.backup)
  t.equal(copied.code, 0, copied.stderr)
  const moved = await migrate('etcd')
  t.match(
    moved,
    { code: 0, stdout: /Moved to \/bramble\/default in etcd, and verified: .*1 nodes, .*1 pods, / },
    moved.stderr,
  )
  Object.assign(settings, parse(here(page.configuration)))
  t.same(settings, etcdFields(etcd))
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

const configMaps = '/api/v1/namespaces/default/configmaps'

/** Writes one ConfigMap after the other until `stop`, and counts in two of them whose names are far apart. */
async function load(t: Test, controller: Controller) {
  const api = apiSession(await readKubeconfig(controller.kubeconfig), 10_000)
  t.teardown(() => api.close())
  const create = async (name: string, data: object) => {
    const answer = await api.send('POST', configMaps, { metadata: { name }, data })
    if (answer?.status !== 201) throw new Error(`${name} is not created: ${JSON.stringify(answer)}`)
  }
  const text = 'x'.repeat(2_000)
  // Not all at once: a server with many connections that have sent nothing yet closes some of them.
  for (let at = 0; at < 400; at += 40)
    await Promise.all(Array.from({ length: 40 }, (_, i) => create(`many-${at + i}`, { text })))
  for (const name of ['a-first', 'z-last']) await create(name, {})
  const stopping = new AbortController()
  t.teardown(() => stopping.abort())
  let count = 0
  const counting = async () => {
    while (!stopping.signal.aborted) {
      count += 1
      for (const name of ['a-first', 'z-last']) {
        await api.send('PATCH', `${configMaps}/${name}`, { data: { count: `${count}` } })
      }
    }
  }
  const creating = async () => {
    for (let i = 0; !stopping.signal.aborted; i++) await create(`more-${i}`, { text })
  }
  const working = Promise.all([counting(), creating()])
  return {
    count: () => count,
    async stop() {
      stopping.abort()
      await working
    },
  }
}

test('a fleet in etcd is backed up while clients write, and restored into another etcd: its nodes keep their pods', {
  skip,
  timeout: 300_000,
}, async (t) => {
  const lost = await etcdCluster({ size: 3, tls: true })
  t.teardown(() => lost.remove())
  const settings: Record<string, unknown> = { ...etcdFields(lost) }
  const fleet = await joinedFleet(t, { controller: settings })
  let { controller } = fleet
  const { dataDir, command } = controller
  await fleet.startReady()
  const early = await appliedPod(controller, 'early')
  await controller.kubectl('-n', 'default', 'create', 'secret', 'generic', 'hidden', '--from-literal=word=sesame')
  const uidOf = (what: string) => controller.kubectl('get', ...what.split('/'), '-o', 'jsonpath={.metadata.uid}')
  const named = ['pod/early', 'secret/hidden', 'node/pi-1', 'configmap/many-7']
  const clients = await load(t, controller)
  const uids = await Promise.all(named.map(uidOf))

  const target = `${dataDir}.backup`
  const least = clients.count()
  const made = await command('backup', target, '--data-dir', dataDir)
  t.match(made, { code: 0, stdout: /1 pods, .* secrets, .* in etcd as they were at revision \d+/s }, made.stderr)
  t.ok(clients.count() > least, 'clients wrote meanwhile')
  await clients.stop()
  const late = await appliedPod(controller, 'late')
  const refused = await command('restore', target, '--replace', '--data-dir', dataDir)
  t.match(refused, { code: 1, stderr: /A controller uses .*: stop it first/ })

  controller.program.kill('SIGKILL')
  await controller.program.ended
  await lost.remove()
  const etcd = await etcdCluster({ size: 3, tls: true })
  t.teardown(() => etcd.remove())
  Object.assign(settings, etcdFields(etcd))
  const config = `${dataDir}.etcd.yaml`
  const kind = { apiVersion: 'bramble.dev/v1alpha1', kind: 'ControllerConfiguration' }
  await writeFile(config, JSON.stringify({ ...kind, ...settings }))
  const restored = await command('restore', target, '--replace', '--data-dir', dataDir, '--config', config)
  t.match(restored, { code: 0, stdout: /The objects are below \/bramble\/default in etcd/ }, restored.stderr)
  const again = await command('restore', target, '--replace', '--data-dir', dataDir, '--config', config)
  t.match(again, { code: 1, stderr: /\/bramble\/default in etcd is in use/ })

  controller = await fleet.controllerAgain()
  const countOf = async (name: string) =>
    Number(await controller.kubectl('get', 'cm', name, '-o', 'jsonpath={.data.count}'))
  const [first, last] = [await countOf('a-first'), await countOf('z-last')]
  t.ok(first === last || first === last + 1, `${first} was written before ${last}`)
  t.ok(last >= least - 1, 'every answered write is in it')
  t.same(await Promise.all(named.map(uidOf)), uids)
  const word = await controller.kubectl('get', 'secret', 'hidden', '-o', 'jsonpath={.data.word}')
  t.equal(Buffer.from(word, 'base64').toString(), 'sesame')
  t.equal(await running(controller, 'early'), early, 'the same container')
  t.equal(await running(controller, 'late'), late, 'created since the backup, and reported by its node')
  await controller.nodesReady('pi-1')
})
