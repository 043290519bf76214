/** Backups on a NAS with the commands, real agents and Docker, and commands in the pods. The NAS is real where this kernel has NFS. */
import { chmod, mkdir, readdir, readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { boundNas } from './support/bound-nas.ts'
import { whyNoDockerd } from './support/dockerd.ts'
import { temporaryFolder } from './support/fleet.ts'
import { joinedFleet } from './support/joined-fleet.ts'
import { startNas, whyNoNas } from './support/nas.ts'
import { image } from './support/pods.ts'
import { eventually } from './support/wait.ts'

const script = 'trap "exit 0" TERM; echo written >> /data/file; while :; do sleep 0.1; done'
const hook = (when: string, command: string) => ({
  [`${when}.hook.backup.velero.io/command`]: JSON.stringify(['/bin/sh', '-c', command]),
})
const template = {
  metadata: {
    labels: { app: 'db' },
    annotations: {
      ...hook('pre', 'cp /data/file /data/dump && echo pre >> /data/hooks'),
      ...hook('post', 'rm /data/dump && echo post >> /data/hooks'),
    },
  },
  spec: {
    terminationGracePeriodSeconds: 2,
    containers: [
      {
        ...{ name: 'main', image, imagePullPolicy: 'Never', command: ['sh', '-c', script] },
        volumeMounts: [{ name: 'data', mountPath: '/data' }],
      },
    ],
  },
}
const set = {
  apiVersion: 'apps/v1',
  kind: 'StatefulSet',
  metadata: { name: 'db' },
  spec: {
    ...{ replicas: 1, serviceName: 'db', selector: { matchLabels: { app: 'db' } }, template },
    volumeClaimTemplates: [
      {
        metadata: { name: 'data' },
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
      },
    ],
  },
}

test('volumes are backed up to a NAS, and come back', { skip: whyNoDockerd(), timeout: 900_000 }, async (t) => {
  const folder = await temporaryFolder(t)
  // A server looks up what it exports without the rights of root.
  await chmod(folder, 0o711)
  const nas = whyNoNas() === false ? { mountOptions: [], ...(await startNas(t, folder)) } : await boundNas(t, folder)
  const fleet = await joinedFleet(t, { names: ['pi-1', 'pi-2'] })
  const { controller } = fleet
  await fleet.startReady()
  const volumes = (...args: readonly string[]) =>
    controller.command('volumes', ...args, '--kubeconfig', controller.kubeconfig)
  const share = { server: nas.address, path: join(nas.folder, 'backups') }
  const volume = {
    ...{ apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: 'backups' } },
    spec: {
      ...{ capacity: { storage: '1Ti' }, accessModes: ['ReadWriteMany'], persistentVolumeReclaimPolicy: 'Retain' },
      ...{ storageClassName: 'none', mountOptions: nas.mountOptions, nfs: share },
    },
  }
  const storageClass = {
    ...{ apiVersion: 'storage.k8s.io/v1', kind: 'StorageClass', metadata: { name: 'nas' } },
    ...{ provisioner: 'bramble.dev/nfs', mountOptions: nas.mountOptions },
    parameters: { server: nas.address, share: nas.folder },
  }
  const objects = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [set, volume, storageClass] })
  await controller.kubectlWith(objects, 'create', '-f', '-')
  await controller.kubectl('rollout', 'status', 'sts/db', '--timeout=85s')
  const home = await controller.kubectl('get', 'pod', 'db-0', '-o', 'jsonpath={.spec.nodeName}')
  const other = home === 'pi-1' ? 'pi-2' : 'pi-1'
  /** The folder of the claim, once its data is there. */
  const folderOf = async (claim: string) => {
    const name = await controller.kubectl('get', 'pvc', claim, '-o', 'jsonpath={.spec.volumeName}')
    return controller.kubectl('get', 'pv', name, '-o', 'jsonpath={.spec.local.path}')
  }
  const data = await folderOf('data-db-0')
  const linesOf = async (path: string) => (await readFile(path, 'utf8')).trim().split('\n')

  await t.test('to a folder of a PersistentVolume, which must be there', async (t) => {
    const missing = await volumes('backup', 'data-db-0', '--to', 'pv/backups')
    t.match(missing, { code: 1, stderr: /mount failed: .*No such file or directory/ })
    await mkdir(share.path)
    await chmod(share.path, 0o777)
    t.match(await volumes('backup', 'data-db-0', '--to', 'pv/backups'), { code: 0, stderr: '' })
    const [name = '', ...others] = (await readdir(share.path)).filter((one) => one.startsWith('default_data-db-0'))
    t.same(others, [])
    t.same((await readdir(join(share.path, name))).sort(), ['backup.json', 'volume.tar.gz.age'])
    t.match(JSON.parse(await readFile(join(share.path, name, 'backup.json'), 'utf8')), {
      ...{ claim: 'default/data-db-0', consistency: 'hooks' },
    })
    t.match((await volumes('backups')).stdout, new RegExp(`\\ndefault/data-db-0 .* hooks .* pv/backups/${name}\\n`))
  })

  await t.test('the commands of its pods were run before and after it', async (t) => {
    t.same(await linesOf(join(data, 'hooks')), ['pre', 'post', 'pre', 'post'])
    t.notOk((await readdir(data)).includes('dump'))
    t.match(await volumes('restore', 'data-db-0', '--as', 'again', '--to', other), { code: 0, stderr: '' })
    const again = await folderOf('again')
    t.ok(again.startsWith(fleet.dataDir(other)), again)
    t.same(await linesOf(join(again, 'dump')), ['written'], 'as it was between them')
    t.same(await linesOf(join(again, 'hooks')), ['pre', 'post', 'pre'])
  })

  await t.test('a command that fails ends the backup with what it wrote, and the pod goes on', async (t) => {
    const failing = hook('pre', 'echo the database is locked >&2; exit 3')
    const annotations = Object.entries(failing).map(([name, value]) => `${name}=${value}`)
    await controller.kubectl('annotate', '--overwrite', 'pod', 'db-0', ...annotations)
    const failed = await volumes('backup', 'data-db-0')
    t.match(failed, { code: 1, stderr: /in the container main of pod db-0 ended with 3: the database is locked/ })
    await controller.kubectl(
      'annotate',
      '--overwrite',
      'pod',
      'db-0',
      ...annotations.map((one) => one.replace(/=.*/, '-')),
    )
    t.equal((await linesOf(join(data, 'hooks'))).at(-1), 'post')
  })

  await t.test('to the share of a class, where its folder is made', async (t) => {
    t.match(await volumes('backups', '--from', 'class/nas'), { stdout: /No such file or directory/ })
    t.match(await volumes('backup', 'data-db-0', '--to', 'class/nas'), { code: 0, stderr: '' })
    const target = join(nas.folder, '.bramble/backups')
    const [name] = (await readdir(target)).filter((one) => one.startsWith('default_data-db-0'))
    t.match((await volumes('backups', '--from', 'class/nas')).stdout, `class/nas/${name}\n`)
    const restored = await volumes('restore', `class/nas/${name}`, '--as', 'third', '--to', home)
    t.match(restored, { code: 0, stderr: '' })
    t.same(await linesOf(join(await folderOf('third'), 'file')), ['written'])
  })

  await t.test('a folder that another one has replaced gets no backup', async (t) => {
    t.match(await volumes('backup', 'data-db-0', '--to', 'class/nas'), { code: 0 })
    await rename(join(nas.folder, '.bramble/backups'), join(nas.folder, '.bramble/old'))
    t.match(await volumes('backup', 'data-db-0'), { code: 1, stderr: /is not the folder of the earlier backups/ })
  })

  await t.test('nothing is left mounted', async (t) => {
    const isMounted = async () => (await readFile('/proc/self/mountinfo', 'utf8')).includes(nas.folder)
    await eventually('the shares are unmounted', async () => !(await isMounted()))
    t.pass()
  })
})
