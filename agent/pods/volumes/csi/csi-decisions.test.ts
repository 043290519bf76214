import { test } from 'tap'
import type { NodeCsiVolume, NodeVolume } from '../../../../api/storage/node-claim.ts'
import { aPod } from '../../../../api/testing/builders.ts'
import { podInfo } from './csi-mount.ts'
import { pluginProblem } from './plugin-problem.ts'
import { csiMountOf, inlineCsiMount } from './wanted-csi.ts'

const pod = aPod({
  name: 'web',
  uid: 'uid-web',
  spec: { serviceAccountName: 'reader', securityContext: { fsGroup: 7 } },
})
const volume: NodeVolume = { name: 'pv', uid: 'uid-pv', source: 'other', mountOptions: ['noatime'] }
const csi: NodeCsiVolume = { driver: 'disk.example.com', handle: 'h', fsType: 'ext4', accessModes: ['ReadWriteOnce'] }
const wanted = (more: Partial<NodeCsiVolume> = {}, isReadOnly = false) =>
  csiMountOf(pod, { volume, csi: { ...csi, ...more }, isReadOnly, secrets })
const data = { password: Buffer.from('geheim').toString('base64') }
const secrets = [
  { apiVersion: 'v1' as const, kind: 'Secret' as const, metadata: { name: 's', namespace: 'storage' }, data },
]

test('a driver is asked for the volume with the texts of its Secrets and what it wants of the pod', async (t) => {
  const stageSecret = { namespace: 'storage', name: 's' }
  t.match(wanted({ stageSecret, podInfo: true, attributes: { a: 'b' }, publishContext: { c: 'd' } }), {
    csi: {
      ...{ driver: 'disk.example.com', handle: 'h', fsType: 'ext4', mountOptions: ['noatime'], readOnly: false },
      ...{
        stageSecrets: { password: 'geheim' },
        publishSecrets: {},
        attributes: { a: 'b' },
        publishContext: { c: 'd' },
      },
      podAttributes: podInfo(pod, false),
    },
    group: 7,
  })
  t.match(podInfo(pod, true), {
    'csi.storage.k8s.io/pod.name': 'web',
    'csi.storage.k8s.io/serviceAccount.name': 'reader',
    'csi.storage.k8s.io/ephemeral': 'true',
  })
  const missing = { namespace: 'storage', name: 'other' }
  t.same(wanted({ publishSecret: missing }), {
    step: 'MountVolume.SetUp failed',
    message: 'fetching NodePublishSecretRef storage/other failed: secrets "other" not found',
  })
  t.match(wanted({ stageSecret: missing }), { step: 'MountVolume.MountDevice failed' })
  const waits = { step: 'MountVolume.WaitForAttach failed', message: 'why', isQuiet: true }
  t.same(wanted({ attachable: true, notAttached: 'why' }), waits, 'the controller records why')
  t.match(wanted({ attachable: true }), { csi: { isAttachable: true } })
})

test('an inline volume is of its pod alone, and only for drivers that allow it', async (t) => {
  const inline = {
    driver: 'disk.example.com',
    volumeAttributes: { a: 'b' },
    nodePublishSecretRef: { name: 's' },
    readOnly: true,
  }
  const mine = secrets.map((one) => ({ ...one, metadata: { ...one.metadata, namespace: 'default' } }))
  const mount = (driver: object | undefined, more: object = {}) =>
    inlineCsiMount(
      pod,
      { name: 'v', inline: { ...inline, ...more } },
      { csiDrivers: driver === undefined ? [] : [{ name: 'disk.example.com', ...driver }], secrets: mine },
    )
  const modes = ['Persistent', 'Ephemeral']
  // sha256 of the UID of the pod and the name of the volume.
  const handle = 'csi-b7db0ab0c772507a084f8906cf24f50b0b386c1bb0d233e1e1517aa7f5357a74'
  t.match(mount({ modes, podInfo: true }), {
    ...{ uid: 'uid-web.v', volume: 'v', source: 'csi', isForOnePod: false },
    csi: {
      ...{ handle, isInline: true, readOnly: true, attributes: { a: 'b' }, publishSecrets: { password: 'geheim' } },
      ...{ accessMode: 'ReadWriteOnce', podAttributes: podInfo(pod, true), stageSecrets: {} },
    },
  })
  t.match(mount({ modes, fsGroupPolicy: 'File', republish: true }, { readOnly: false }), {
    ...{ group: 7, csi: { republish: true } },
  })
  t.match(mount({ modes, tokens: [{ audience: 'vault' }] }), {
    message: /failed to get service accoount token attributes: failed to fetch token: it was not requested$/,
  })
  t.equal(Object.hasOwn(mount({ modes }, { readOnly: false }), 'group'), false, 'it names no type of file system')
  const refused =
    'kubernetes.io/csi: mounter.SetupAt failed to check volume lifecycle mode: volume mode "Ephemeral" not supported by driver disk.example.com'
  t.match(mount({ modes: ['Persistent'] }), { message: `${refused} (only supports ["Persistent"])` })
  t.match(mount(undefined), { step: 'MountVolume.SetUp failed', message: `${refused} (no CSIDriver object)` })
  t.match(mount({ modes }, { nodePublishSecretRef: { name: 'other' } }), {
    message: 'fetching NodePublishSecretRef default/other failed: secrets "other" not found',
  })
})

test('the files of a volume get the group by the policy of the driver', async (t) => {
  const group = (more: Partial<NodeCsiVolume>, isReadOnly = false) => {
    const found = wanted(more, isReadOnly)
    return 'csi' in found ? found.group : found.message
  }
  t.equal(group({}), 7)
  t.equal(group({}, true), undefined)
  t.equal(group({ fsType: '' }), undefined, 'the default needs a type of file system')
  t.equal(group({ accessModes: ['ReadWriteMany'] }), undefined, 'and one node')
  t.equal(group({ accessModes: ['ReadWriteOncePod'] }), 7)
  t.equal(group({ accessModes: ['ReadWriteMany'], fsGroupPolicy: 'File' }), 7)
  t.equal(group({ fsGroupPolicy: 'None' }), undefined)
})

test('a plugin is refused with the reason', async (t) => {
  const facts = { type: 'CSIPlugin', name: 'disk.example.com', endpoint: '/a/csi.sock', supportedVersions: ['1.0.0'] }
  const problem = (more: Partial<typeof facts>) => pluginProblem({ ...facts, ...more }, '/s')
  t.equal(problem({}), undefined)
  t.equal(problem({ supportedVersions: ['0.3.0', 'v1.2.3'] }), undefined)
  t.match(problem({ type: 'DRAPlugin' }), /^no handler registered for plugin type: DRAPlugin at socket \/s$/)
  for (const name of ['', '..', 'a/b', 'x'.repeat(64)]) t.match(problem({ name }), /is not the name of a driver/)
  for (const endpoint of ['', 'csi.sock', '/a/../b', `/${'x'.repeat(107)}`])
    t.match(problem({ endpoint }), /is not the path of a socket/)
  for (const version of ['2.0.0', '0.3.0', '1', '1.x'])
    t.match(problem({ supportedVersions: [version] }), /none of the CSI versions/)
  t.match(problem({ supportedVersions: [] }), /none of the CSI versions/)
})
