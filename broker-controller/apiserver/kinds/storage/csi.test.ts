import { test } from 'tap'
import type { CSIDriver, CSIDriverSpec } from '../../../../api/storage/csi-driver.ts'
import type { CSINode, CSINodeDriver } from '../../../../api/storage/csi-node.ts'
import type { CSIStorageCapacity } from '../../../../api/storage/csi-storage-capacity.ts'
import type { VolumeAttachment, VolumeAttachmentSpec } from '../../../../api/storage/volume-attachment.ts'
import { kinds } from '../../../assembly/control-plane.ts'
import { causes, create, update } from '../../../testing/admitting.ts'
import { anApi, patchTypes } from '../../../testing/api-in-memory.ts'
import { tableOf } from '../../handlers/tables.ts'

const apiVersion = 'storage.k8s.io/v1'
const metadata = { name: 'disk.example.com' }
const driver = (spec?: CSIDriverSpec): CSIDriver => ({ apiVersion, kind: 'CSIDriver', metadata, ...(spec && { spec }) })
const node = (...drivers: readonly CSINodeDriver[]): CSINode => ({
  apiVersion,
  kind: 'CSINode',
  metadata: { name: 'pi-01' },
  spec: { drivers },
})
const capacity = (more: Partial<CSIStorageCapacity> = {}): CSIStorageCapacity => ({
  apiVersion,
  kind: 'CSIStorageCapacity',
  metadata: { name: 'c', namespace: 'default' },
  storageClassName: 'fast',
  ...more,
})
const attachment = (spec: Partial<VolumeAttachmentSpec> = {}): VolumeAttachment => ({
  apiVersion,
  kind: 'VolumeAttachment',
  metadata: { name: 'a' },
  spec: { attacher: 'disk.example.com', source: { persistentVolumeName: 'pv' }, nodeName: 'pi-01', ...spec },
})
const path = '/apis/storage.k8s.io/v1'

test('a driver gets the defaults of Kubernetes', async (t) => {
  const defaults = {
    attachRequired: true,
    podInfoOnMount: false,
    storageCapacity: false,
    fsGroupPolicy: 'ReadWriteOnceWithFSType',
    volumeLifecycleModes: ['Persistent'],
    requiresRepublish: false,
    seLinuxMount: false,
  }
  t.same(create('csidrivers', driver())['spec'], defaults)
  t.same(create('csidrivers', driver({ volumeLifecycleModes: [] }))['spec'], defaults)
  const own: CSIDriverSpec = { attachRequired: false, volumeLifecycleModes: ['Ephemeral'], fsGroupPolicy: 'File' }
  t.same(create('csidrivers', driver(own))['spec'], { ...defaults, ...own })
})

test('the words of a driver are those of Kubernetes, and each of its audiences is another', async (t) => {
  const wrong = (spec: CSIDriverSpec) => causes(() => create('csidrivers', driver(spec)))
  t.same(wrong({ fsGroupPolicy: 'Never' }), [
    'spec.fsGroupPolicy: Unsupported value: "Never": supported values: "File", "None", "ReadWriteOnceWithFSType"',
  ])
  t.same(wrong({ volumeLifecycleModes: ['Persistent', 'Inline'] }), [
    'spec.volumeLifecycleModes: Unsupported value: "Inline": supported values: "Persistent", "Ephemeral"',
  ])
  t.same(wrong({ tokenRequests: [{ audience: 'a' }, { audience: 'b', expirationSeconds: 599 }, { audience: 'a' }] }), [
    'spec.tokenRequests[1].expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes',
    'spec.tokenRequests[2].audience: Duplicate value: "a"',
  ])
  t.same(wrong({ tokenRequests: [{ audience: '', expirationSeconds: 2 ** 32 + 1 }] }), [
    'spec.tokenRequests[0].expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds',
  ])
  t.same(wrong({ tokenRequests: [{ audience: '', expirationSeconds: 2 ** 32 }, { audience: 'a' }] }), [])
})

test('how a driver attaches is for ever; how it mounts may change', async (t) => {
  const old = create('csidrivers', driver()) as CSIDriver
  const changed = (spec: CSIDriverSpec) =>
    causes(() => update('csidrivers', old, { ...old, spec: { ...old.spec, ...spec } }))
  t.same(changed({ attachRequired: false }), ['spec.attachedRequired: Invalid value: false: field is immutable'])
  t.same(changed({ volumeLifecycleModes: ['Ephemeral'] }), [
    'spec.volumeLifecycleModes: Invalid value: ["Ephemeral"]: field is immutable',
  ])
  t.same(changed({ podInfoOnMount: true, storageCapacity: true, fsGroupPolicy: 'None', requiresRepublish: true }), [])
})

test('a node names each of its drivers once, with its own id in that driver', async (t) => {
  const wrong = (...drivers: readonly CSINodeDriver[]) => causes(() => create('csinodes', node(...drivers)))
  const one: CSINodeDriver = { name: 'd', nodeID: 'n' }
  t.same(wrong(one, { ...one, name: 'e', allocatable: { count: 0 }, topologyKeys: ['example.com/zone'] }), [])
  t.same(wrong(one, one), ['spec.drivers[1].name: Duplicate value: "d"'])
  t.same(wrong({ ...one, nodeID: '' }), ['spec.drivers[0].nodeID: Required value'])
  t.same(wrong({ ...one, nodeID: 'x'.repeat(256) }), [])
  t.match(wrong({ ...one, nodeID: 'x'.repeat(257) }), [/nodeID: Invalid value: .*: must be 256 characters or less$/])
  t.same(wrong({ ...one, allocatable: { count: -1 } }), [
    'spec.drivers[0].allocatable.count: Invalid value: -1: must be greater than or equal to 0',
  ])
  t.match(wrong({ ...one, topologyKeys: ['', 'a', 'a', '-'] }), [
    'spec.drivers[0]: Required value',
    'spec.drivers[0]: Duplicate value: "a"',
    /^spec\.drivers\[0\]: Invalid value: "-"/,
  ])
})

test('a driver of a node is added and removed, and not changed', async (t) => {
  const one: CSINodeDriver = { name: 'd', nodeID: 'n' }
  const old = node(one)
  t.same(
    causes(() => update('csinodes', old, node(one, { name: 'e', nodeID: 'n' }))),
    [],
  )
  t.same(
    causes(() => update('csinodes', old, node())),
    [],
  )
  t.match(
    causes(() => update('csinodes', old, node({ ...one, nodeID: 'm' }))),
    [/^CSINodeDriver: Invalid value: .*: field is immutable$/],
  )
})

test('a capacity keeps what its driver was asked', async (t) => {
  const old = create('csistoragecapacities', capacity({ capacity: '1Gi' })) as CSIStorageCapacity
  const changed = (more: Partial<CSIStorageCapacity>) =>
    causes(() => update('csistoragecapacities', old, { ...old, ...more }))
  t.same(changed({ capacity: '2Gi', maximumVolumeSize: '1Gi' }), [])
  t.same(changed({ storageClassName: 'slow' }), ['storageClassName: Invalid value: "slow": field is immutable'])
  t.match(changed({ nodeTopology: { matchLabels: { zone: 'a' } } }), [
    /^nodeTopology: Invalid value: .*: field is immutable$/,
  ])
  t.match(
    causes(() => create('csistoragecapacities', capacity({ capacity: '-1' }))),
    [/^capacity: Invalid value/],
  )
  t.match(
    causes(() => create('csistoragecapacities', capacity({ storageClassName: 'A' }))),
    [/^storageClassName: Invalid value: "A"/],
  )
})

test('the author of a capacity is warned of deprecated labels', async (t) => {
  const { ask } = await anApi(t)
  const nodeTopology = {
    matchLabels: { 'beta.kubernetes.io/os': 'linux' },
    matchExpressions: [{ key: 'beta.kubernetes.io/arch', operator: 'Exists' }],
  }
  const body = capacity({ nodeTopology })
  const { code, warnings } = await ask('POST', `${path}/namespaces/default/csistoragecapacities`, { body })
  t.equal(code, 201)
  t.same(warnings, [
    'nodeTopology.matchExpressions[0].key: beta.kubernetes.io/arch is deprecated since v1.14; use "kubernetes.io/arch" instead',
    'nodeTopology.matchLabels.beta.kubernetes.io/os: deprecated since v1.14; use "kubernetes.io/os" instead',
  ])
})

test('an attachment names one volume, its driver and its node', async (t) => {
  const wrong = (spec: Partial<VolumeAttachmentSpec>) => causes(() => create('volumeattachments', attachment(spec)))
  const csi = { driver: 'disk.example.com', volumeHandle: 'h' }
  const inline = { accessModes: ['ReadWriteOnce'], csi }
  const at = 'spec.source.inlineVolumeSpec'
  const exactlyOne = 'must specify exactly one of inlineVolumeSpec and persistentVolumeName'
  t.same(wrong({ source: { inlineVolumeSpec: inline } }), [])
  t.same(wrong({ source: {} }), [`spec.source: Required value: ${exactlyOne}`])
  t.same(wrong({ source: { persistentVolumeName: 'a', inlineVolumeSpec: inline } }), [
    `spec.source: Forbidden: ${exactlyOne}`,
  ])
  t.same(wrong({ source: { inlineVolumeSpec: { ...inline, capacity: { storage: '1Gi' }, storageClassName: 'a' } } }), [
    `${at}.capacity: Forbidden: may not be specified in the context of inline volumes`,
    `${at}.storageClassName: Forbidden: may not be specified in the context of inline volumes`,
  ])
  t.same(
    wrong({
      source: { inlineVolumeSpec: { accessModes: ['ReadWriteOnce'], hostPath: { path: '/a' }, volumeMode: 'Block' } },
    }),
    [
      `${at}.csi: Required value: has to be specified in the context of inline volumes`,
      `${at}.volumeMode: Forbidden: may not specify volumeMode other than Filesystem in the context of inline volumes`,
    ],
  )
  t.same(wrong({ source: { inlineVolumeSpec: { ...inline, persistentVolumeReclaimPolicy: 'Delete' } } }), [
    `${at}.persistentVolumeReclaimPolicy: Forbidden: may only be Retain in the context of inline volumes`,
  ])
  t.same(wrong({ attacher: 'x'.repeat(64) }), ['spec.attacher: Too long: may not be more than 63 bytes'])
  t.match(wrong({ nodeName: 'A' }), [/^spec\.nodeName: Invalid value: "A"/])
})

test('an attachment is what it is; its driver writes the status', async (t) => {
  const { ask } = await anApi(t)
  const at = `${path}/volumeattachments`
  const created = await ask('POST', at, { body: { ...attachment(), status: { attached: true } } })
  t.match(created, { code: 201, body: { status: { attached: false } } })
  const changed = { spec: { nodeName: 'pi-02' } }
  t.match(await ask('PATCH', `${at}/a`, { type: patchTypes.merge, body: changed }), {
    code: 422,
    body: { message: /spec: Invalid value: .*: field is immutable/ },
  })
  const body = { metadata: { labels: { a: 'b' } }, status: { attached: true, attachError: { message: 'late' } } }
  const attached = await ask('PATCH', `${at}/a/status`, { type: patchTypes.merge, body })
  t.match(attached, { code: 200, body: { status: { attached: true, attachError: { message: 'late' } } } })
  t.notMatch(attached.body, { metadata: { labels: { a: 'b' } } }, 'metadata is not written with the status')
  const long = { status: { attached: false, attachError: { message: 'é'.repeat(513) } } }
  t.match(await ask('PATCH', `${at}/a/status`, { type: patchTypes.merge, body: long }), {
    code: 422,
    body: { message: /status\.attachError\.message: Too long: may not be more than 1024 bytes/ },
  })
  t.match(await ask('PATCH', `${at}/a`, { type: patchTypes.merge, body: { status: { attached: false } } }), {
    body: { status: { attached: true } },
  })
})

test('the tables are those of kubectl', async (t) => {
  const cells = (resource: keyof typeof kinds, object: object) => {
    const options = { nowMs: 60_000, listMeta: {}, includeObject: 'None' } as const
    const born = { ...object, metadata: { name: 'n', creationTimestamp: '1970-01-01T00:00:00Z' } }
    return tableOf(kinds[resource], [born as never], options).rows[0]?.cells
  }
  const tokenRequests = [{ audience: 'a' }, { audience: 'b' }]
  t.same(cells('csidrivers', driver({})), ['n', true, false, false, '<unset>', false, '<none>', '60s'])
  t.same(cells('csidrivers', driver({ tokenRequests, volumeLifecycleModes: ['Persistent', 'Ephemeral'] })), [
    ...['n', true, false, false, 'a,b', false, 'Persistent,Ephemeral', '60s'],
  ])
  t.same(cells('csinodes', node({ name: 'd', nodeID: 'n' })), ['n', 1, '60s'])
  t.same(cells('csistoragecapacities', capacity()), ['n', 'fast', '<unset>'])
  t.same(cells('csistoragecapacities', capacity({ capacity: '1024Mi' })), ['n', 'fast', '1Gi'])
  t.same(cells('volumeattachments', attachment()), ['n', 'disk.example.com', 'pv', 'pi-01', false, '60s'])
  const types = kinds.csidrivers.table.columns.map(({ name, type }) => `${name} ${type}`)
  t.same(types.slice(0, 3), ['Name string', 'AttachRequired boolean', 'PodInfoOnMount boolean'])
})
