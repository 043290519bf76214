/** Claims on prepared volumes, with the real kubectl: a StatefulSet keeps its data, also without a controller. */
import { execFile } from 'node:child_process'
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { test } from 'tap'
import { whyNoDockerd } from './support/dockerd.ts'
import { joinedFleet } from './support/joined-fleet.ts'
import { image, removeAllContainers } from './support/pods.ts'
import { eventually } from './support/wait.ts'

const storage = { accessModes: ['ReadWriteOnce'], storageClassName: 'disks' }
const request = { ...storage, resources: { requests: { storage: '1Gi' } } }
const hostname = { key: 'kubernetes.io/hostname', operator: 'In', values: ['pi-1'] }
const volume = (name: string, source: object) => ({
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name },
  spec: {
    ...storage,
    capacity: { storage: '1Gi' },
    nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [hostname] }] } },
    ...source,
  },
})
const main = {
  name: 'main',
  image,
  imagePullPolicy: 'Never',
  command: ['sh', '-c', 'trap "exit 0" TERM; hostname >> /data/starts; while :; do sleep 0.1; done'],
  volumeMounts: [{ name: 'data', mountPath: '/data' }],
}
const podSpec = { containers: [main], terminationGracePeriodSeconds: 2, securityContext: { fsGroup: 2000 } }
const set = {
  apiVersion: 'apps/v1',
  kind: 'StatefulSet',
  metadata: { name: 'db' },
  spec: {
    replicas: 2,
    serviceName: 'db',
    selector: { matchLabels: { app: 'db' } },
    template: { metadata: { labels: { app: 'db' } }, spec: podSpec },
    volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: request }],
  },
}
/** A pod with a claim of the same name on a volume that nothing else may take. */
const single = (name: string, source: object) => [
  volume(name, { ...source, storageClassName: name }),
  {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name },
    spec: { ...request, storageClassName: name },
  },
  {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: { ...podSpec, volumes: [{ name: 'data', persistentVolumeClaim: { claimName: name } }] },
  },
]

test('pods with claims on volumes of their machine', { skip: whyNoDockerd(), timeout: 300_000 }, async (t) => {
  const fleet = await joinedFleet(t)
  let { controller } = fleet
  const { folder, docker } = fleet
  const [agent] = await fleet.startReady()
  const create = (...objects: readonly object[]) =>
    controller.kubectlWith(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }), 'create', '-f', '-')
  const admin = () => ['--kubeconfig', controller.kubeconfig]
  const disks = ['disk-a', 'disk-b']
  for (const disk of disks) await mkdir(join(folder, disk), { mode: 0o700 })
  await create(...disks.map((disk) => volume(disk, { local: { path: join(folder, disk) } })), set)
  t.match(await controller.kubectl('rollout', 'status', 'sts/db', '--timeout=85s'), /2 pods at revision|complete/)
  const volumeOf = (claim: string) => controller.kubectl('get', 'pvc', claim, '-o', 'jsonpath={.spec.volumeName}')
  const disk = join(folder, await volumeOf('data-db-0'))
  const starts = async () => (await readFile(join(disk, 'starts'), 'utf8')).split('\n').filter((line) => line !== '')

  await t.test('each has the volume of its claim, with its group', async (t) => {
    t.same(await starts(), ['db-0'])
    t.not(await volumeOf('data-db-1'), await volumeOf('data-db-0'))
    const { gid, mode } = await stat(disk)
    t.same([gid, (mode & 0o7777).toString(8)], [2000, '2770'])
    t.equal((await stat(join(disk, 'starts'))).gid, 2000)
  })

  await t.test('the data stays when the pod is replaced', async (t) => {
    await controller.kubectl('delete', 'pod', 'db-0', '--timeout=60s')
    t.match(await controller.kubectl('rollout', 'status', 'sts/db', '--timeout=85s'), /2 pods at revision|complete/)
    t.same(await starts(), ['db-0', 'db-0'])
  })

  await t.test('a volume that is missing is waited for, and never made', async (t) => {
    const path = join(folder, 'unplugged')
    await create(
      ...single('unplugged', { local: { path } }),
      ...single('shared', { iscsi: { targetPortal: 'nas', iqn: 'iqn.2026-01.lan.nas:x', lun: 0 } }),
    )
    const events = (pod: string) =>
      controller.kubectl(
        'get',
        'events',
        '--field-selector',
        `involvedObject.name=${pod}`,
        '-o',
        'jsonpath={.items[*].message}',
      )
    const failed = async (pod: string, text: string) =>
      await eventually(`${pod}: ${text}`, async () => (await events(pod)).includes(text))
    const initialization = 'MountVolume.NewMounter initialization failed for volume "unplugged"'
    await failed('unplugged', `${initialization} : path "${path}" does not exist`)
    await failed('shared', 'MountVolume.SetUp failed for volume "shared" : no volume plugin matched')
    await t.rejects(stat(path), { code: 'ENOENT' })
    await mkdir(path)
    await controller.kubectl('wait', '--for=condition=Ready', 'pod/unplugged', '--timeout=60s')
    t.same(await readFile(join(path, 'starts'), 'utf8'), 'unplugged\n')
  })

  await t.test('a container has a block volume as a device, and may be allowed to read it only', async (t) => {
    const disk = join(folder, 'disk.img')
    await writeFile(disk, Buffer.alloc(4 * 1024 * 1024))
    const { stdout: device } = await promisify(execFile)('losetup', ['--find', '--show', disk])
    t.teardown(() => promisify(execFile)('losetup', ['--detach', device.trim()]))
    const { volumeMounts: _, command: __, ...bare } = main
    const container = {
      ...bare,
      command: ['sleep', '3600'],
      volumeDevices: [{ name: 'data', devicePath: '/dev/data' }],
    }
    const block = (name: string, path: string) => [
      volume(name, { local: { path }, storageClassName: name, volumeMode: 'Block' }),
      {
        ...{ apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name } },
        spec: { ...request, storageClassName: name, volumeMode: 'Block' },
      },
    ]
    const pod = (name: string, claimName: string, readOnly = false) => {
      const volumes = [{ name: 'data', persistentVolumeClaim: { claimName, readOnly } }]
      return {
        ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name } },
        spec: { containers: [container], terminationGracePeriodSeconds: 0, volumes },
      }
    }
    await create(...block('raw', device.trim()), pod('raw', 'raw'), pod('reader', 'raw', true))
    await create(...block('lost', join(folder, 'none')), pod('lost', 'lost'))
    await controller.kubectl('wait', '--for=condition=Ready', 'pod/raw', 'pod/reader', '--timeout=60s')
    const inside = (name: string, script: string) => controller.kubectl('exec', name, '--', 'sh', '-c', script)
    await inside('raw', 'echo written | dd of=/dev/data conv=fsync')
    t.equal((await readFile(disk)).toString('latin1', 0, 8), 'written\n')
    t.equal(await inside('reader', 'dd if=/dev/data bs=7 count=1'), 'written')
    await t.rejects(inside('reader', 'echo changed | dd of=/dev/data'), /not permitted/)
    const failed = `MapVolume.MapPodDevice failed for volume "lost" : path "${join(folder, 'none')}" does not exist`
    const events = ['get', 'events', '--field-selector', 'involvedObject.name=lost,reason=FailedMapVolume']
    await eventually('the device is missing', async () =>
      (await controller.kubectl(...events, '-o', 'jsonpath={.items[*].message}')).includes(failed),
    )
    await controller.kubectl('delete', 'pod', 'raw', 'reader', 'lost', '--timeout=60s')
  })

  await t.test('a volume is made in the pool of the machine', async (t) => {
    const storageClass = {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name: 'kept' },
      provisioner: 'bramble.dev/local-path',
      reclaimPolicy: 'Retain',
      volumeBindingMode: 'WaitForFirstConsumer',
    }
    const [, claim, pod] = single('made', {})
    const selected = { 'volume.kubernetes.io/selected-node': 'pi-1' }
    const metadata = { name: 'made', annotations: selected }
    await create(storageClass, { ...claim, metadata, spec: { ...request, storageClassName: 'kept' } }, pod ?? {})
    await controller.kubectl('wait', '--for=condition=Ready', 'pod/made', '--timeout=60s')
    const name = await volumeOf('made')
    const pool = join(fleet.dataDir(), 'volumes')
    t.same(await readFile(join(pool, `default_made_${name}`, 'starts'), 'utf8'), 'made\n')
    await controller.kubectl('delete', 'pod/made', 'pvc/made', '--timeout=60s')
    await eventually(
      'the volume is released',
      async () => (await controller.kubectl('get', 'pv', name, '-o', 'jsonpath={.status.phase}')) === 'Released',
    )
    t.same(await readFile(join(pool, `default_made_${name}`, 'starts'), 'utf8'), 'made\n', 'the data stays')
  })

  await t.test('a claim without a class has the default one, grows, and leaves its data in the trash', async (t) => {
    const [, claim, pod] = single('scrap', {})
    const { storageClassName: _, ...unclassed } = request
    await create({ ...claim, spec: unclassed }, pod ?? {})
    await controller.kubectl('wait', '--for=condition=Ready', 'pod/scrap', '--timeout=60s')
    const larger = JSON.stringify({ spec: { resources: { requests: { storage: '2Gi' } } } })
    await controller.kubectl('patch', 'pvc', 'scrap', '-p', larger)
    await controller.kubectl('wait', '--for=jsonpath={.status.capacity.storage}=2Gi', 'pvc/scrap', '--timeout=60s')
    const name = await volumeOf('scrap')
    const uid = await controller.kubectl('get', 'pv', name, '-o', 'jsonpath={.metadata.uid}')
    await controller.kubectl('delete', 'pod/scrap', 'pvc/scrap', '--timeout=60s')
    const isGone = async () => (await controller.kubectl('get', 'pv', name, '--ignore-not-found')) === ''
    await eventually('the volume is gone', isGone, { withinMs: 60_000 })
    const pool = join(fleet.dataDir(), 'volumes')
    await t.rejects(stat(join(pool, `default_scrap_${name}`)), { code: 'ENOENT' })
    t.same(await readFile(join(pool, '.bramble/trash', uid, 'data/starts'), 'utf8'), 'scrap\n')

    const volumes = (...args: readonly string[]) => controller.command('volumes', ...args, ...admin())
    t.match(await volumes('trash'), { code: 0, stdout: new RegExp(`\\ndefault/scrap +${uid} +pi-1 `) })
    t.match(await volumes('undelete', 'scrap'), { code: 0, stdout: /^The claim default\/scrap is created\./ })
    await create(pod ?? {})
    await controller.kubectl('wait', '--for=condition=Ready', 'pod/scrap', '--timeout=60s')
    t.equal(await volumeOf('scrap'), name)
    t.same(await readFile(join(pool, `default_scrap_${name}`, 'starts'), 'utf8'), 'scrap\nscrap\n', 'it is back')
    t.match(await volumes('list'), {
      code: 0,
      stdout: new RegExp(`\\ndefault/scrap +${name} +Bound +pi-1 .* scrap\\n`),
    })
  })

  await t.test('a folder of the machine becomes the volume of a claim', async (t) => {
    const path = join(folder, 'pvc-3d3f6f0e-6d3c-4c1e-9d0b-0d8e5d8d1f11_default_taken')
    await mkdir(path)
    await writeFile(join(path, 'starts'), 'k3s\n')
    t.match(await controller.command('volumes', 'adopt', 'pi-1', path, '--size', '1Gi', ...admin()), { code: 0 })
    const [, , pod] = single('taken', {})
    await create(pod ?? {})
    await controller.kubectl('wait', '--for=condition=Ready', 'pod/taken', '--timeout=60s')
    t.same(await readFile(join(path, 'starts'), 'utf8'), 'k3s\ntaken\n')
  })

  await t.test('a machine that starts without its controller starts its pods with their data', async (t) => {
    await controller.program.stop()
    await agent.stop()
    await removeAllContainers(docker)
    const again = await fleet.startAgent()
    t.teardown(() => again.stop())
    await eventually('db-0 starts', async () => (await starts()).length === 3, { withinMs: 90_000 })
    controller = await fleet.controllerAgain()
    await controller.nodesReady('pi-1')
    t.match(await controller.kubectl('rollout', 'status', 'sts/db', '--timeout=85s'), /2 pods at revision|complete/)
    t.same(await starts(), ['db-0', 'db-0', 'db-0'])
  })
})
