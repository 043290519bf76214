import { test } from 'tap'
import type { CSIDriver, CSIDriverSpec } from '../../../../api/storage/csi-driver.ts'
import type { CSINode, CSINodeDriver } from '../../../../api/storage/csi-node.ts'
import type { CSIStorageCapacity } from '../../../../api/storage/csi-storage-capacity.ts'
import type { VolumeAttachment, VolumeAttachmentSpec } from '../../../../api/storage/volume-attachment.ts'
import { kinds } from '../../../assembly/control-plane.ts'
import { causes, create, update } from '../../../testing/admitting.ts'
import { anApi } from '../../../testing/api-in-memory.ts'
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
