import { test } from 'tap'
import { aPod } from '../../../../api/testing/builders.ts'
import { type CsiMount, csiAccessMode, csiSteps, getsGroup, podInfo, volumeCapability } from './csi-mount.ts'

const mount: CsiMount = {
  ...{ driver: 'disk.example.com', handle: 'h', pod: 'default/web', fsType: 'ext4', accessMode: 'ReadWriteOnce' },
  ...{ readOnly: false, mountOptions: ['noatime'], attributes: {}, podAttributes: {}, publishContext: {} },
  ...{ stageSecrets: {}, publishSecrets: {} },
}
const capabilities = {
  ...{ stages: true, mountsWithGroup: true, hasSingleNodeModes: true, expands: true, hasStats: true },
  hasCondition: true,
}

test('access modes have the numbers of CSI, those of one node only for a driver that has that capability', async (t) => {
  const modes = ['ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOncePod', 'x']
  t.same(
    modes.map((mode) => csiAccessMode(mode, { hasSingleNodeModes: false })),
    [1, 3, 5, 1, 0],
  )
  t.same(
    modes.map((mode) => csiAccessMode(mode, { hasSingleNodeModes: true })),
    [7, 3, 5, 6, 0],
  )
})

test('a driver gets the file system and its options, and the group if it mounts with it', async (t) => {
  const capability = (more: Partial<CsiMount>, can: Partial<typeof capabilities> = {}) =>
    volumeCapability({ ...mount, ...more }, { ...capabilities, ...can })
  const fields = { fsType: 'ext4', mountFlags: ['noatime'], volumeMountGroup: '' }
  t.same(capability({}), { mount: fields, accessMode: { mode: 7 } })
  t.same(capability({ group: 0 }), { mount: { ...fields, volumeMountGroup: '0' }, accessMode: { mode: 7 } })
  t.same(capability({ group: 7 }, { mountsWithGroup: false }).mount, fields)
  t.same(capability({ isBlock: true, group: 7 }, { hasSingleNodeModes: false }), {
    block: {},
    accessMode: { mode: 1 },
  })
})

test('the files of a volume get the group by the policy, its file system and its access modes', async (t) => {
  const one = (mode: string) => getsGroup({ fsType: 'ext4', accessModes: [mode] })
  const modes = ['ReadWriteOnce', 'ReadWriteOncePod', 'ReadOnlyMany', 'ReadWriteMany']
  t.same(modes.map(one), [true, true, false, false])
  t.ok(getsGroup({ fsType: 'ext4', accessModes: ['ReadWriteMany', 'ReadWriteOnce'] }))
  t.notOk(getsGroup({ fsType: 'ext4' }), 'without access modes')
  t.notOk(getsGroup({ fsType: '', accessModes: ['ReadWriteOnce'] }))
  t.notOk(getsGroup({ accessModes: ['ReadWriteOnce'] }))
  t.ok(getsGroup({}, 'File'))
  t.notOk(getsGroup({ fsType: 'ext4', accessModes: ['ReadWriteOnce'] }, 'None'))
})

test('a driver that asks for it gets the pod', async (t) => {
  const pod = aPod({ name: 'web', namespace: 'shop', uid: 'u-1', spec: { serviceAccountName: 'seller' } })
  const facts = {
    'csi.storage.k8s.io/pod.name': 'web',
    'csi.storage.k8s.io/pod.namespace': 'shop',
    'csi.storage.k8s.io/pod.uid': 'u-1',
    'csi.storage.k8s.io/serviceAccount.name': 'seller',
  }
  t.same(podInfo(pod, false), { ...facts, 'csi.storage.k8s.io/ephemeral': 'false' })
  t.same(podInfo(pod, true), { ...facts, 'csi.storage.k8s.io/ephemeral': 'true' })
  t.match(podInfo(aPod(), false), { 'csi.storage.k8s.io/serviceAccount.name': '' })
})

test('what fails has the name of the kubelet, which differs for block devices', async (t) => {
  t.same(csiSteps(undefined), csiSteps(false))
  t.same(Object.values(csiSteps(false)), [
    ...['MountVolume.WaitForAttach failed', 'MountVolume.MountDevice failed', 'MountVolume.SetUp failed'],
    'MountVolume.Setup failed while expanding volume',
  ])
  t.same(Object.values(csiSteps(true)), [
    ...['MapVolume.WaitForAttach failed', 'MapVolume.SetUpDevice failed', 'MapVolume.MapPodDevice failed'],
    'MapVolume.MarkVolumeAsMounted failed while expanding volume',
  ])
})
