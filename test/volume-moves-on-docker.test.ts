/** A volume is moved to another node by the command, with its StatefulSet, and backed up and restored, on real agents and Docker. */
import { mkdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { whyNoDockerd } from './support/dockerd.ts'
import { joinedFleet } from './support/joined-fleet.ts'
import { image } from './support/pods.ts'
import { eventually } from './support/wait.ts'

const script = [
  'trap "exit 0" TERM',
  'mkdir -p /data/below && ln -sf ../starts /data/below/link',
  '[ -e /data/large ] || dd if=/dev/urandom of=/data/large bs=1M count=8',
  'echo started >> /data/starts',
  'while :; do sleep 0.1; done',
].join('; ')
const main = {
  ...{ name: 'main', image, imagePullPolicy: 'Never', command: ['sh', '-c', script] },
  volumeMounts: [{ name: 'data', mountPath: '/data' }],
}
const set = {
  apiVersion: 'apps/v1',
  kind: 'StatefulSet',
  metadata: { name: 'db' },
  spec: {
    replicas: 1,
    serviceName: 'db',
    selector: { matchLabels: { app: 'db' } },
    template: { metadata: { labels: { app: 'db' } }, spec: { containers: [main], terminationGracePeriodSeconds: 2 } },
    volumeClaimTemplates: [
      {
        metadata: { name: 'data' },
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
      },
    ],
  },
}

test('a volume moves to another node, and its pod with it', { skip: whyNoDockerd(), timeout: 300_000 }, async (t) => {
  const fleet = await joinedFleet(t, { names: ['pi-1', 'pi-2'] })
  const { controller } = fleet
  await fleet.startReady()
  const volumes = (...args: readonly string[]) =>
    controller.command('volumes', ...args, '--kubeconfig', controller.kubeconfig)
  await controller.kubectlWith(JSON.stringify(set), 'create', '-f', '-')
  await controller.kubectl('rollout', 'status', 'sts/db', '--timeout=85s')
  const nodeOf = () => controller.kubectl('get', 'pod', 'db-0', '-o', 'jsonpath={.spec.nodeName}')
  const folderOf = async (node: string) => {
    const path = await controller.kubectl(
      ...['get', 'pv', await controller.kubectl('get', 'pvc', 'data-db-0', '-o', 'jsonpath={.spec.volumeName}')],
      ...['-o', 'jsonpath={.spec.local.path}'],
    )
    t.ok(path.startsWith(join(fleet.dataDir(node), 'volumes')), path)
    return path
  }
  const from = await nodeOf()
  const to = from === 'pi-1' ? 'pi-2' : 'pi-1'
  const before = await folderOf(from)
  const large = await readFile(join(before, 'large'))

  await t.test('where it is already, and a node that does not exist, are refused with the reason', async (t) => {
    t.match(await volumes('move', 'data-db-0', '--to', from), { code: 1, stderr: /is on pi-\d/ })
    t.match(await volumes('move', 'data-db-0', '--to', 'pi-9'), { code: 1, stderr: /Node pi-9 has no pool/ })
  })

  await t.test('the command moves the data, and the pod starts there', async (t) => {
    const { code, stdout, stderr } = await volumes('move', 'data-db-0', '--to', to)
    t.match({ code, stdout, stderr }, { code: 0, stdout: new RegExp(`Moved: the data is on ${to}\\.`) })
    await eventually('the pod is on the other node', async () => (await nodeOf().catch(() => '')) === to)
    await controller.kubectl('rollout', 'status', 'sts/db', '--timeout=85s')
    const after = await folderOf(to)
    t.equal(await readFile(join(after, 'starts'), 'utf8'), 'started\nstarted\n')
    t.ok(large.equals(await readFile(join(after, 'large'))), 'the data is the same')
    t.equal(await readFile(join(after, 'below/link'), 'utf8'), 'started\nstarted\n', 'links are kept')
    await t.rejects(stat(before), { code: 'ENOENT' })
    t.match(await volumes('trash'), { code: 0, stdout: new RegExp(`\\n\\S+ .*${from} `) }, 'the old copy')
    const events = await controller.kubectl('describe', 'pvc', 'data-db-0')
    t.match(events, new RegExp(`VolumeMoved .*the data is on node "${to}"`))
  })

  await t.test('the commands back it up, list the backup, and restore it as another claim', async (t) => {
    const target = `${to}:${join(fleet.folder, 'backups')}`
    await mkdir(join(fleet.folder, 'backups'))
    t.match(await volumes('backup', 'data-db-0', '--to', target), { code: 0 })
    const { code, stdout, stderr } = await volumes('backups')
    t.match({ code, stderr, stdout }, { code: 0, stderr: '', stdout: /\ndefault\/data-db-0 .* Whole / })
    t.match(await volumes('restore', 'default/data-db-0', '--as', 'again', '--to', from), { code: 0 })
    await eventually('the data is there', async () => (await volumes('list')).stdout.includes(`again `))
    const restored = await controller.kubectl('get', 'pvc', 'again', '-o', 'jsonpath={.spec.volumeName}')
    const path = await controller.kubectl('get', 'pv', restored, '-o', 'jsonpath={.spec.local.path}')
    t.ok(large.equals(await readFile(join(path, 'large'))), 'the data is the same')
  })
})
