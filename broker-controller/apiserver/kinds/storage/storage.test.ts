import { test } from 'tap'
import type { LimitRange } from '../../../../api/limits/limit-range.ts'
import type { PersistentVolume } from '../../../../api/storage/persistent-volume.ts'
import type { PersistentVolumeClaim } from '../../../../api/storage/persistent-volume-claim.ts'
import { defaultStorageClass, type StorageClass } from '../../../../api/storage/storage-class.ts'
import { kinds } from '../../../assembly/control-plane.ts'
import { create } from '../../../testing/admitting.ts'
import { anApi, patchTypes } from '../../../testing/api-in-memory.ts'
import { tableOf } from '../../handlers/tables.ts'
import { claimViolation } from '../limits/limit-ranger.ts'

type VolumeSpec = NonNullable<PersistentVolume['spec']>
type ClaimSpec = NonNullable<PersistentVolumeClaim['spec']>

const volume = (spec: Partial<VolumeSpec> = {}): PersistentVolume => ({
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name: 'disk' },
  spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/srv' }, ...spec },
})
const claim = (spec: Partial<ClaimSpec> = {}, more: Partial<PersistentVolumeClaim> = {}): PersistentVolumeClaim => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name: 'data', namespace: 'default' },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...spec },
  ...more,
})
const storageClass = (more: Partial<StorageClass> = {}): StorageClass => ({
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: { name: 'fast' },
  provisioner: 'example.com/disk',
  ...more,
})
const cells = (resource: 'persistentvolumes' | 'persistentvolumeclaims' | 'storageclasses', object: object) => {
  const born = { ...object, metadata: { ...metadataOf(object), creationTimestamp: '1970-01-01T00:00:00Z' } }
  const options = { nowMs: 60_000, listMeta: {}, includeObject: 'None' } as const
  return tableOf(kinds[resource], [born as never], options).rows[0]?.cells
}
function metadataOf(object: object): object {
  return 'metadata' in object && typeof object.metadata === 'object' && object.metadata !== null ? object.metadata : {}
}

const asDefault = { 'storageclass.kubernetes.io/is-default-class': 'true' }

test('a new claim is pending', async (t) => {
  t.match(create('persistentvolumeclaims', claim({}, { status: { phase: 'Bound' } })), {
    spec: { volumeMode: 'Filesystem' },
    status: { phase: 'Pending' },
  })
})

test('the two sources of data of a claim fill each other in', async (t) => {
  const made = (spec: Partial<ClaimSpec>) => {
    const { dataSource, dataSourceRef } = (create('persistentvolumeclaims', claim(spec)) as PersistentVolumeClaim)
      .spec as ClaimSpec
    return { dataSource, dataSourceRef }
  }
  const source = { kind: 'PersistentVolumeClaim', name: 'a' }
  t.same(made({ dataSource: source }), { dataSource: source, dataSourceRef: source })
  const other = { apiGroup: 'example.com', kind: 'Image', name: 'a' }
  t.same(made({ dataSourceRef: other }), { dataSource: other, dataSourceRef: other })
  const none = { dataSource: undefined, dataSourceRef: undefined }
  t.same(made({ dataSource: other }), none, 'dropped, as before the field dataSourceRef existed')
  t.same(made({ dataSourceRef: { ...source, namespace: 'other' } }), none, 'of another namespace')
})

test('the newest of several default classes is the class of claims that name none', async (t) => {
  const dated = (name: string, creationTimestamp: string) =>
    storageClass({ metadata: { name, creationTimestamp, annotations: asDefault } })
  const old = dated('a', '2026-01-01T00:00:00Z')
  t.equal(defaultStorageClass([storageClass()]), undefined)
  t.equal(defaultStorageClass([old, dated('b', '2026-01-02T00:00:00Z')]), 'b')
  t.equal(defaultStorageClass([dated('c', '2026-01-01T00:00:00Z'), old]), 'a')
})

test('the tables show sizes, modes and classes', async (t) => {
  const bound = volume({ claimRef: { namespace: 'default', name: 'data' }, storageClassName: 'fast' })
  const made = create('persistentvolumes', bound)
  t.same(cells('persistentvolumes', made), [
    ...['disk', '1Gi', 'RWO', 'Retain', 'Pending', 'default/data', 'fast', '<unset>', '', '60s', 'Filesystem'],
  ])
  const waiting = create('persistentvolumeclaims', claim())
  t.same(cells('persistentvolumeclaims', waiting), [
    ...['data', 'Pending', '', '', '', '', '<unset>', '60s', 'Filesystem'],
  ])
  const accessModes = ['ReadOnlyMany', 'ReadWriteOnce', 'ReadWriteOnce']
  const status = { phase: 'Bound', accessModes, capacity: { storage: '2Gi' } }
  t.same(cells('persistentvolumeclaims', claim({ volumeName: 'disk', storageClassName: 'fast' }, { status })), [
    ...['data', 'Bound', 'disk', '2Gi', 'RWO,ROX', 'fast', '<unset>', '60s', '<unset>'],
  ])
  t.same(cells('storageclasses', storageClass({ metadata: { name: 'fast', annotations: asDefault } })), [
    ...['fast (default)', 'example.com/disk', 'Delete', 'Immediate', false, '60s'],
  ])
})

test('a LimitRange bounds the size of claims', async (t) => {
  const range = (item: object): LimitRange => ({
    apiVersion: 'v1',
    kind: 'LimitRange',
    metadata: { name: 'mine', namespace: 'default' },
    spec: { limits: [{ type: 'PersistentVolumeClaim', ...item }] },
  })
  const of = (item: object) => claimViolation(claim(), [range(item)])
  t.equal(of({ min: { storage: '1Gi' }, max: { storage: '1Gi' } }), undefined)
  t.equal(of({ min: { storage: '2Gi' } }), 'minimum storage usage per PersistentVolumeClaim is 2Gi, but request is 1Gi')
  t.equal(of({ max: { storage: '1Mi' } }), 'maximum storage usage per PersistentVolumeClaim is 1Mi, but request is 1Gi')
  t.equal(of({ type: 'Pod', max: { storage: '1Mi' } }), undefined)
})

test('a claim without a class gets the default, and grows only where its class permits it', async (t) => {
  const { ask } = await anApi(t)
  const claims = '/api/v1/namespaces/default/persistentvolumeclaims'
  const classes = '/apis/storage.k8s.io/v1/storageclasses'
  const fast = storageClass({ metadata: { name: 'fast', annotations: asDefault } })
  t.equal((await ask('POST', classes, { body: fast })).code, 201)
  const made = await ask('POST', claims, { body: claim() })
  t.match(made, { code: 201, body: { spec: { storageClassName: 'fast' } } })
  const named = claim({ storageClassName: '' }, { metadata: { name: 'none' } })
  t.match(await ask('POST', claims, { body: named }), { code: 201, body: { spec: { storageClassName: '' } } })
  const grow = () => {
    const body = { spec: { resources: { requests: { storage: '2Gi' } } } }
    return ask('PATCH', `${claims}/data`, { body, type: patchTypes.merge })
  }
  t.match(await grow(), { code: 422, body: { message: /spec is immutable after creation except resources.requests/ } })
  const bound = { status: { phase: 'Bound', capacity: { storage: '1Gi' } } }
  await ask('PATCH', `${claims}/data/status`, { body: bound, type: patchTypes.merge })
  t.match(await grow(), {
    code: 403,
    body: { message: /the storageclass that provisions the pvc must support resize$/ },
  })
  await ask('PATCH', `${classes}/fast`, { body: { allowVolumeExpansion: true }, type: patchTypes.merge })
  t.match(await grow(), { code: 200, body: { spec: { resources: { requests: { storage: '2Gi' } } } } })
})

test('a quota counts claims and their storage, of all classes and of one', async (t) => {
  const { ask } = await anApi(t)
  const at = '/api/v1/namespaces/default'
  const hard = { 'requests.storage': '3Gi', 'slow.storageclass.storage.k8s.io/persistentvolumeclaims': '1' }
  const quota = { apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name: 'mine' }, spec: { hard } }
  t.equal((await ask('POST', `${at}/resourcequotas`, { body: quota })).code, 201)
  const add = (name: string, spec: Partial<ClaimSpec>) =>
    ask('POST', `${at}/persistentvolumeclaims`, { body: claim(spec, { metadata: { name } }) })
  t.equal((await add('one', { storageClassName: 'slow' })).code, 201)
  t.match(await add('two', { storageClassName: 'slow' }), {
    code: 403,
    body: { message: /exceeded quota: mine, requested: slow.storageclass.storage.k8s.io\/persistentvolumeclaims=1, / },
  })
  t.equal((await add('two', {})).code, 201)
  t.match(await add('three', { resources: { requests: { storage: '2Gi' } } }), {
    code: 403,
    body: { message: /requested: requests.storage=2Gi, used: requests.storage=2Gi, limited: requests.storage=3Gi$/ },
  })
})
