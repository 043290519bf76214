import { access, mkdir, mkdtemp, readdir, readFile, readlink, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { cell } from '../../../daemon/cell.ts'
import { systemClock } from '../../../daemon/clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import type { PodEvent } from '../../pods/record/pod-events.ts'
import type { GrowingClaim } from '../../pods/volumes/csi/claim-growth.ts'
import type { CsiMount } from '../../pods/volumes/csi/csi-mount.ts'
import { volumeGrowth } from '../../pods/volumes/csi/volume-growth.ts'
import type { ClaimVolume } from '../../pods/volumes/volume-store.ts'
import { claimApi } from '../../testing/claim-api.ts'
import { type CsiDriverOptions, csiDriver } from '../../testing/csi-driver.ts'
import { until } from '../../testing/until.ts'
import { csiClient } from './csi-client.ts'
import { csiRecords } from './csi-records.ts'
import { csiVolumes } from './csi-volumes.ts'

const mount = (more: Partial<CsiMount> = {}): CsiMount => ({
  ...{ driver: 'disk.example.com', handle: 'vol-1', fsType: 'ext4', accessMode: 'ReadWriteOnce', readOnly: false },
  ...{ pod: 'default/web', mountOptions: ['noatime'], attributes: { share: 's' }, podAttributes: { pod: 'p' } },
  ...{ publishContext: { device: '/dev/x' }, stageSecrets: { key: 'stage' }, publishSecrets: { key: 'publish' } },
  ...more,
})
const claim = (more: Partial<ClaimVolume> = {}): ClaimVolume => ({
  ...{ uid: 'pv-uid', volume: 'pv-1', source: 'csi', path: '', type: '', claim: 'default/data', isForOnePod: false },
  ...more,
})

type Ending = { teardown(end: () => Promise<void>): void; fail(message: string): unknown }

async function machine(t: Ending, options: CsiDriverOptions = {}) {
  const kubelet = await mkdtemp(join(tmpdir(), 'csi-'))
  const driver = await csiDriver(kubelet, options)
  t.teardown(async () => {
    await driver.close()
    await rm(kubelet, { recursive: true, force: true })
  })
  const client = csiClient(driver.endpoint, 60_000)
  const capabilities = await client.capabilities()
  const registered = new Map([['disk.example.com', { client, capabilities }]])
  const volumesInUse = cell<readonly string[] | undefined>(undefined)
  const events: string[] = []
  /** The claim that is expanded; undefined: the API cannot be reached. */
  const growing: { claim?: GrowingClaim | undefined } = {}
  const api = claimApi(growing)
  const recorded = { ofPod: (_: unknown, { message }: PodEvent) => void events.push(message), ofClaim: () => undefined }
  const time = { nowMs: 0 }
  const volumes = (agent = '/var/lib/bramble', patienceMs = 60_000) =>
    csiVolumes({
      ...{ records: csiRecords(kubelet, agent), log: quietLog(t), driver: (name) => registered.get(name) },
      ...{ patienceMs, isMounted: exists, isDevice: exists, writes: { volumesInUse }, monotonicMs: () => time.nowMs },
      growth: volumeGrowth({ api, events: recorded, clock: systemClock, log: quietLog(t) }, 'pi-1'),
      events: recorded,
    })
  const names = () => driver.calls.map(({ name }) => name).filter((name) => !name.startsWith('NodeGet'))
  const target = (pod: string, volume = 'pv-1') =>
    join(kubelet, 'pods', pod, 'volumes', 'kubernetes.io~csi', volume, 'mount')
  return { kubelet, driver, registered, volumes, volumesInUse, names, target, growing, events, time }
}

async function exists(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  )
}

test('a volume is staged once, published for each pod, and unstaged after the last one', async (t) => {
  const { kubelet, driver, volumes, names, target } = await machine(t)
  const own = volumes()
  t.same(await own.place('a', claim(), mount()), { path: target('a'), hasGroup: false })
  await own.place('a', claim(), mount())
  await own.place('b', claim(), mount())
  t.same(names(), ['NodeStageVolume', 'NodePublishVolume', 'NodePublishVolume'])
  const [stage, publish] = driver.calls.filter(({ name }) => /Stage|Publish/.test(name)).map(({ request }) => request)
  const staging = String(stage?.['stagingTargetPath'])
  t.match(staging, new RegExp(`^${kubelet}/plugins/kubernetes.io/csi/disk.example.com/[0-9a-f]{64}/globalmount$`))
  const capability = { mount: { fsType: 'ext4', mountFlags: ['noatime'] }, accessMode: { mode: 1 } }
  const shared = { volumeId: 'vol-1', publishContext: { device: '/dev/x' }, volumeCapability: capability }
  t.match(stage, { ...shared, secrets: { key: 'stage' }, volumeContext: { share: 's' } })
  t.match(publish, { ...shared, stagingTargetPath: staging, targetPath: target('a'), readonly: false })
  t.match(publish, { secrets: { key: 'publish' }, volumeContext: { share: 's', pod: 'p' } })
  t.same(stage?.['volumeContext'], { share: 's' }, 'the stage is of no pod')
  await own.remove('a')
  t.same(names().slice(3), ['NodeUnpublishVolume'])
  await own.remove('b')
  t.same(names().slice(4), ['NodeUnpublishVolume', 'NodeUnstageVolume'])
  t.same(await readdir(join(kubelet, 'pods')), [], 'nothing of the pods is left')
  await own.remove('b')
  t.equal(names().length, 6, 'what is not there is not removed')
})

test('an agent that starts again has the volumes of its pods unmounted, and no others', async (t) => {
  const { kubelet, volumes, names, target } = await machine(t)
  await volumes().place('a', claim(), mount())
  const record = join(target('a'), '..', 'vol_data.json')
  const { driverName, volumeHandle, specVolID } = JSON.parse(await readFile(record, 'utf8'))
  t.same([driverName, volumeHandle, specVolID], ['disk.example.com', 'vol-1', 'pv-1'])
  t.notMatch(await readFile(record, 'utf8'), /publish|stage/, 'texts of Secrets are not written')
  const other = volumes('/another')
  t.same(await other.podUIDs(), [])
  await other.remove('a')
  t.same(names(), ['NodeStageVolume', 'NodePublishVolume'])
  const next = volumes()
  t.same(await next.podUIDs(), ['a'])
  await next.place('a', claim(), mount())
  t.equal(names().length, 2, 'what is mounted is not mounted again')
  await next.remove('a')
  t.same(names().slice(2), ['NodeUnpublishVolume', 'NodeUnstageVolume'])
  t.same(await readdir(join(kubelet, 'pods')), [])
})

test('after a power cut the volume is staged and published again', async (t) => {
  const { volumes, names, target } = await machine(t)
  await volumes().place('a', claim(), mount())
  await rm(target('a'), { recursive: true })
  await volumes().place('a', claim(), mount())
  t.same(names().slice(2), ['NodeStageVolume', 'NodePublishVolume'])
})

test('a stage that an agent did not finish before it was killed is unstaged with its pod', async (t) => {
  const { driver, volumes, names } = await machine(t)
  driver.fail('NodePublishVolume', 14, 'shutting down')
  const killed = volumes()
  await t.rejects(killed.place('a', claim(), mount()), { message: /code = Unavailable desc = shutting down/ })
  driver.heal()
  const next = volumes()
  t.same(await next.podUIDs(), ['a'], 'it may be mounted')
  await next.remove('a')
  t.same(names().slice(2), ['NodeUnpublishVolume', 'NodeUnstageVolume'])
})

test('after a final refusal nothing is published, and the stage goes without a pod', async (t) => {
  const { driver, volumes, names } = await machine(t)
  driver.fail('NodePublishVolume', 3, 'no such share')
  const own = volumes()
  await t.rejects(own.place('a', claim(), mount()), {
    ...{ step: 'MountVolume.SetUp failed', message: 'rpc error: code = InvalidArgument desc = no such share' },
  })
  t.same(await own.podUIDs(), [])
  driver.heal()
  await own.release()
  t.same(names().slice(2), ['NodeUnstageVolume'])
  driver.fail('NodeStageVolume', 13, 'mkfs failed')
  await t.rejects(own.place('a', claim(), mount()), { step: 'MountVolume.MountDevice failed', message: /mkfs failed/ })
})

test('a driver that is not there is named, and its volumes wait for it', async (t) => {
  const { registered, volumes, names } = await machine(t)
  const message =
    'kubernetes.io/csi: mounter.SetUpAt failed to get CSI client: driver name other.example.com not found in the list of registered CSI drivers'
  await t.rejects(volumes().place('a', claim(), mount({ driver: 'other.example.com' })), { message })
  const own = volumes()
  await own.place('a', claim(), mount())
  const driver = registered.get('disk.example.com')
  registered.clear()
  await t.rejects(own.remove('a'), { message: /driver name disk.example.com not found/ })
  t.same(await own.podUIDs(), ['a'])
  if (driver !== undefined) registered.set('disk.example.com', driver)
  await own.remove('a')
  t.same(await own.podUIDs(), [])
  t.equal(names().length, 4)
})

test('a driver that hangs keeps no worker, and its answer counts later', async (t) => {
  const { driver, volumes, names } = await machine(t)
  const slow = volumes('a', 20)
  driver.hang('NodeStageVolume')
  const late = { message: 'driver disk.example.com takes longer than usual to mount the volume' }
  await t.rejects(slow.place('a', claim(), mount()), late)
  await t.rejects(slow.place('a', claim(), mount()), late)
  await until('the driver is called', () => names().length > 0)
  t.same(names(), ['NodeStageVolume'], 'it is called once')
  await t.rejects(slow.remove('a'), { message: /takes longer than usual to unmount/ })
  t.same(await slow.podUIDs(), ['a'], 'it may be mounted still')
})

test('a driver without stages, and one that mounts with the group, are asked accordingly', async (t) => {
  const { driver, volumes, names, target } = await machine(t, { capabilities: [5, 6] })
  t.same(await volumes().place('a', claim(), mount({ group: 2000, accessMode: 'ReadWriteOncePod', readOnly: true })), {
    ...{ path: target('a'), hasGroup: true },
  })
  t.same(names(), ['NodePublishVolume'])
  t.match(driver.calls.at(-1)?.request, {
    ...{ stagingTargetPath: '', readonly: true },
    volumeCapability: { mount: { volumeMountGroup: '2000' }, accessMode: { mode: 6 } },
  })
})

test('what a driver has left in the place of a mount is never removed', async (t) => {
  const { driver, volumes, target } = await machine(t)
  const own = volumes()
  await own.place('a', claim(), mount())
  await writeFile(join(target('a'), 'data'), 'x')
  await t.rejects(own.remove('a'), { message: /it is still mounted/ })
  t.equal(await readFile(join(target('a'), 'data'), 'utf8'), 'x')
  t.same(await own.podUIDs(), ['a'])
  t.equal(driver.calls.at(-1)?.name, 'NodeUnpublishVolume')
})

test('a volume that its driver attaches is in use from before the first call until it is unstaged, also after a restart', async (t) => {
  const { driver, volumes, volumesInUse, names } = await machine(t)
  const seen: unknown[] = []
  volumesInUse.onChange((now) => seen.push([now, names().length]))
  const own = volumes()
  await own.open()
  t.same(volumesInUse.get(), [])
  await own.place('a', claim({ volume: 'pv-2' }), mount({ handle: 'vol-2' }))
  t.same(volumesInUse.get(), [], 'a driver that attaches nothing')
  const name = 'kubernetes.io/csi/disk.example.com^vol-1'
  seen.length = 0
  await own.place('a', claim(), mount({ isAttachable: true }))
  t.same(seen[0], [[name], 2], 'it is reported before it is staged')
  driver.fail('NodeUnstageVolume', 13, 'busy')
  await own.remove('a')
  t.same(volumesInUse.get(), [name], 'it is still staged')
  driver.heal()
  volumesInUse.set(undefined)
  const next = volumes()
  await next.open()
  t.same(volumesInUse.get(), [name])
  await next.release()
  t.same(volumesInUse.get(), [])
  driver.fail('NodeStageVolume', 3, 'no')
  await t.rejects(next.place('a', claim(), mount({ isAttachable: true })))
  t.same(volumesInUse.get(), [name], 'the stage is undone first')
  driver.heal()
  await next.release()
  t.same(volumesInUse.get(), [])
})

test('an inline volume is published without a stage, and unpublished with its pod', async (t) => {
  const { volumes, names, driver, target } = await machine(t)
  const own = volumes()
  await own.place('a', claim({ volume: 'v' }), mount({ handle: 'csi-1', isInline: true }))
  t.same(names(), ['NodePublishVolume'])
  t.match(driver.calls.at(-1)?.request, { volumeId: 'csi-1', stagingTargetPath: '', targetPath: target('a', 'v') })
  const record = JSON.parse(await readFile(join(target('a', 'v'), '..', 'vol_data.json'), 'utf8'))
  t.equal(record.volumeLifecycleMode, 'Ephemeral')
  await volumes().remove('a')
  t.same(names().slice(1), ['NodeUnpublishVolume'])
})

test('a driver that asks for it is asked again once a minute, and what it has mounted stays if it refuses', async (t) => {
  const { driver, volumes, names, time } = await machine(t)
  const own = volumes()
  const again = (token: string) => own.place('a', claim(), mount({ republish: true, podAttributes: { token } }))
  await again('one')
  await again('one')
  t.same(names(), ['NodeStageVolume', 'NodePublishVolume'])
  time.nowMs = 60_000
  await again('two')
  t.same(names().slice(2), ['NodePublishVolume'])
  t.match(driver.calls.at(-1)?.request, { volumeContext: { token: 'two' } })
  time.nowMs = 120_000
  driver.fail('NodePublishVolume', 13, 'expired')
  await t.rejects(again('three'), { message: /expired/ })
  t.same(await own.podUIDs(), ['a'])
  await own.place('a', claim(), mount())
  t.equal(names().length, 4, 'others are asked once')
})

const larger = { size: '2Gi', isAwaited: true, secrets: { texts: { key: 'expand' } } }
const resized = (): GrowingClaim => ({
  metadata: { uid: 'claim-uid', resourceVersion: '1' },
  spec: { accessModes: ['ReadWriteOnce'] },
  status: {
    ...{ capacity: { storage: '1Gi' }, allocatedResources: { storage: '2Gi' } },
    allocatedResourceStatuses: { storage: 'NodeResizePending' },
  },
})
const ofClaim = claim({ claimUID: 'claim-uid' })

test('a volume that was made larger is expanded once, while pods use it', async (t) => {
  const { volumes, names, driver, growing, events, target, kubelet } = await machine(t, { capabilities: [1, 3] })
  const own = volumes()
  await own.place('a', ofClaim, mount())
  await own.place('a', ofClaim, mount({ growth: larger }))
  t.same(names().slice(2), [], 'the API cannot be reached')
  growing.claim = resized()
  await own.place('a', ofClaim, mount({ growth: larger }))
  await own.place('a', ofClaim, mount({ growth: larger }))
  t.same(names().slice(2), ['NodeExpandVolume'])
  const { request } = driver.calls.at(-1) ?? {}
  t.match(request, {
    ...{ volumeId: 'vol-1', volumePath: target('a'), secrets: { key: 'expand' } },
    ...{ capacityRange: { requiredBytes: 2 * 1024 ** 3 }, volumeCapability: { mount: { fsType: 'ext4' } } },
  })
  t.match(request?.['stagingTargetPath'], new RegExp(`^${kubelet}/plugins/.*/globalmount$`))
  t.same(growing.claim?.status?.capacity, { storage: '2Gi' })
  t.same(events, ['MountVolume.NodeExpandVolume succeeded for volume "pv-1" pi-1'])
})

test('a pod in use stays in use when its volume cannot be expanded, and it is tried again', async (t) => {
  const { volumes, names, driver, growing, events, time } = await machine(t, { capabilities: [1, 3] })
  const own = volumes()
  await own.place('a', ofClaim, mount())
  growing.claim = resized()
  driver.fail('NodeExpandVolume', 13, 'no room')
  const again = () => own.place('a', ofClaim, mount({ growth: larger }))
  await again()
  await again()
  t.equal(names().length, 3, 'not at once')
  const failed = 'Expander.NodeExpand failed to expand the volume : rpc error: code = Internal desc = no room'
  t.same(events, [`NodeExpandVolume.NodeExpandVolume failed for volume "pv-1" : ${failed}`])
  t.match(growing.claim?.status?.conditions, [
    { type: 'NodeResizeError', message: `failed to expand pvc with ${failed}` },
  ])
  time.nowMs = 60_000
  driver.heal()
  await again()
  t.equal(names().length, 4)
  t.same(growing.claim?.status?.conditions, [])
})

test('a pod that starts waits until its volume is expanded, but not for a controller', async (t) => {
  const { volumes, names, driver, growing } = await machine(t, { capabilities: [1, 3] })
  const own = volumes()
  const start = (pod: string) => own.place(pod, ofClaim, mount({ growth: larger }))
  await start('a')
  t.same(names(), ['NodeStageVolume', 'NodePublishVolume'])
  await own.remove('a')
  growing.claim = resized()
  driver.fail('NodeExpandVolume', 13, 'no room')
  const step = 'MountVolume.Setup failed while expanding volume'
  await t.rejects(start('b'), { step, message: /no room/ })
  await t.rejects(start('b'), { step, message: /no room/ }, 'also the next time')
  driver.heal()
  await start('b')
  t.equal(growing.claim?.status?.allocatedResourceStatuses, undefined)
})

test('a driver that expands no volume in use is asked again when it is mounted the next time', async (t) => {
  const { volumes, names, driver, growing } = await machine(t, { capabilities: [1, 3] })
  const own = volumes()
  growing.claim = resized()
  driver.fail('NodeExpandVolume', 9, 'in use')
  const start = () => own.place('a', ofClaim, mount({ growth: larger }))
  await start()
  await start()
  t.equal(names().filter((name) => name === 'NodeExpandVolume').length, 1)
  await own.remove('a')
  driver.heal()
  await start()
  t.equal(names().filter((name) => name === 'NodeExpandVolume').length, 2)
  t.same(growing.claim?.status?.capacity, { storage: '2Gi' })
})

test('a volume of several nodes is expanded on each that had it mounted before', async (t) => {
  const { volumes, names, growing } = await machine(t, { capabilities: [1, 3] })
  const own = volumes()
  const spec = { accessModes: ['ReadWriteMany'] }
  const grown = (size: string) => ({ ...larger, size, isAwaited: false })
  growing.claim = {
    ...resized(),
    spec,
    status: { capacity: { storage: '2Gi' }, allocatedResources: { storage: '2Gi' } },
  }
  await own.place('a', ofClaim, mount({ growth: grown('1Gi') }))
  t.equal(names().length, 2, 'it is mounted with its size')
  await own.place('a', ofClaim, mount({ growth: grown('2Gi') }))
  await own.place('a', ofClaim, mount({ growth: grown('2Gi') }))
  t.same(names().slice(2), ['NodeExpandVolume'])
})

test('a block volume is staged by its name, published for each pod as a device, and its link is in the folder of the pod', async (t) => {
  const { kubelet, driver, volumes, names } = await machine(t)
  const devices = join(kubelet, 'plugins/kubernetes.io/csi/volumeDevices')
  const target = join(devices, 'publish/pv-1/a')
  const link = join(kubelet, 'pods/a/volumeDevices/kubernetes.io~csi/pv-1')
  const own = volumes()
  t.same(await own.place('a', claim(), mount({ isBlock: true })), { path: target, hasGroup: false })
  const [stage, publish] = driver.calls.filter(({ name }) => /Stage|Publish/.test(name)).map(({ request }) => request)
  const volumeCapability = { block: {}, mount: undefined, accessMode: { mode: 1 } }
  const stagingTargetPath = join(devices, 'staging/pv-1')
  t.match(stage, { stagingTargetPath, volumeCapability })
  t.match(publish, { stagingTargetPath, targetPath: target, volumeCapability })
  t.equal(await readlink(link), target)
  t.equal(JSON.parse(await readFile(join(devices, 'pv-1/data/vol_data.json'), 'utf8')).driverName, 'disk.example.com')
  const next = volumes()
  t.same(await next.podUIDs(), ['a'])
  await next.place('a', claim(), mount({ isBlock: true }))
  t.equal(names().length, 2, 'after a restart of the agent it is there')
  await writeFile(join(stagingTargetPath, 'left'), '')
  await next.remove('a')
  t.same(names().slice(2), ['NodeUnpublishVolume', 'NodeUnstageVolume'])
  t.match(driver.calls.at(-1)?.request, { stagingTargetPath })
  t.same(await readdir(join(kubelet, 'pods')), [])
  t.same((await readdir(devices)).sort(), ['publish', 'staging'])
  t.same([await readdir(join(devices, 'publish')), await readdir(join(devices, 'staging'))], [[], []])
})

test('what a driver has left in the place of a device is never removed', async (t) => {
  const { kubelet, volumes } = await machine(t)
  const own = volumes()
  const { path } = await own.place('a', claim(), mount({ isBlock: true }))
  await rm(path)
  await mkdir(path)
  await writeFile(join(path, 'data'), 'x')
  await t.rejects(own.remove('a'))
  t.equal(await readFile(join(path, 'data'), 'utf8'), 'x')
  t.same(await own.podUIDs(), ['a'])
  t.ok(await exists(kubelet))
})

test('a block volume is expanded by its device', async (t) => {
  const { volumes, driver, growing } = await machine(t, { capabilities: [1, 3] })
  const own = volumes()
  growing.claim = resized()
  driver.fail('NodeExpandVolume', 13, 'no room')
  const start = () => own.place('a', ofClaim, mount({ isBlock: true, growth: larger }))
  const step = 'MapVolume.MarkVolumeAsMounted failed while expanding volume'
  await t.rejects(start(), { step, message: /no room/ })
  driver.heal()
  const { path } = await start()
  t.match(driver.calls.at(-1)?.request, { volumePath: path, volumeCapability: { block: {} } })
})
