import { test } from 'tap'
import type { LimitRange } from '../../../../api/limits/limit-range.ts'
import type { PersistentVolume } from '../../../../api/storage/persistent-volume.ts'
import type { PersistentVolumeClaim } from '../../../../api/storage/persistent-volume-claim.ts'
import { defaultStorageClass, type StorageClass } from '../../../../api/storage/storage-class.ts'
import { kinds } from '../../../assembly/control-plane.ts'
import { causes, create, update } from '../../../testing/admitting.ts'
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

test('a new volume is pending, keeps its data and has a file system', async (t) => {
  const made = create('persistentvolumes', { ...volume(), status: { phase: 'Bound' } })
  t.match(made, {
    spec: { persistentVolumeReclaimPolicy: 'Retain', volumeMode: 'Filesystem', hostPath: { path: '/srv', type: '' } },
    status: { phase: 'Pending', lastPhaseTransitionTime: '1970-01-01T00:00:00Z' },
  })
  const without = create('persistentvolumes', volume({ volumeAttributesClassName: 'gold' }))
  t.notOk('volumeAttributesClassName' in (without.spec as object), 'off by default in Kubernetes 1.32')
})

test('a volume states its size, its access modes and one place', async (t) => {
  const wrong = (spec: Partial<VolumeSpec>) => causes(() => create('persistentvolumes', volume(spec)))
  t.same(wrong({ accessModes: [] }), ['spec.accessModes: Required value'])
  t.same(wrong({ accessModes: ['ReadWriteOncePod', 'ReadWriteOnce'] }), [
    'spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes',
  ])
  t.same(wrong({ accessModes: ['Some'] }), [
    'spec.accessModes: Unsupported value: "Some": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"',
  ])
  t.same(wrong({ capacity: { storage: '0' } }), [
    'spec.capacity[storage]: Invalid value: "0": must be greater than zero',
  ])
  t.match(wrong({ capacity: {} }), ['spec.capacity: Required value', /^spec.capacity: Unsupported value: /])
  t.same(wrong({ nfs: { server: 'a', path: '/b' } }), ['spec.nfs: Forbidden: may not specify more than 1 volume type'])
  const { hostPath: _, ...none } = volume().spec as VolumeSpec
  const placed = (spec: Partial<VolumeSpec>) =>
    causes(() => create('persistentvolumes', { ...volume(), spec: { ...none, ...spec } }))
  t.same(placed({}), ['spec: Required value: must specify a volume type'])
  t.same(placed({ nfs: { server: '', path: 'b' } }), [
    'spec.nfs.server: Required value',
    'spec.nfs.path: Invalid value: "b": must be an absolute path',
  ])
  t.same(placed({ local: { path: '/a/../b' } }), [
    'spec.local.path: Invalid value: "/a/../b": must not contain \'..\'',
    'spec.nodeAffinity: Required value: Local volume requires node affinity',
  ])
  t.same(placed({ local: { path: '/a' }, nodeAffinity: {} }), [
    'spec.nodeAffinity.required: Required value: must specify required node constraints',
  ])
  t.same(placed({ csi: { driver: 'd', volumeHandle: '', nodeExpandSecretRef: { name: 's' } } }), [
    'spec.csi.volumeHandle: Required value',
    'spec.csi.nodeExpandSecretRef.namespace: Required value',
  ])
  t.same(placed({ csi: { driver: 'd'.repeat(64), volumeHandle: 'h' } }).slice(0, 1), [
    'spec.csi.driver: Too long: may not be more than 63 bytes',
  ])
  t.same(wrong({ hostPath: { path: '/' }, persistentVolumeReclaimPolicy: 'Recycle' }), [
    "spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'",
  ])
  t.same(wrong({ persistentVolumeReclaimPolicy: 'Keep', volumeMode: 'Tape', storageClassName: 'A' }).length, 3)
})

test('the place of a volume stays', async (t) => {
  const made = create('persistentvolumes', volume())
  const changed = (spec: Partial<VolumeSpec>) => causes(() => update('persistentvolumes', made, volume(spec)))
  t.same(changed({ persistentVolumeReclaimPolicy: 'Delete', capacity: { storage: '2Gi' } }), [])
  t.same(changed({ hostPath: { path: '/other' } }), [
    'spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation',
  ])
  t.same(changed({ volumeMode: 'Block' }), ['volumeMode: Invalid value: "Block": field is immutable'])
  const csi = { driver: 'd', volumeHandle: 'h' }
  const { hostPath: _, ...none } = volume().spec as VolumeSpec
  const remote = (more: object) => ({ ...volume(), spec: { ...none, csi: { ...csi, ...more } } })
  const stored = create('persistentvolumes', remote({}))
  const secret = { controllerExpandSecretRef: { name: 's', namespace: 'n' } }
  t.same(
    causes(() => update('persistentvolumes', stored, remote(secret))),
    [],
    'a secret for its growth may be added',
  )
})

test('a status with another phase has the time of the change', async (t) => {
  const part = kinds.persistentvolumes.subresources['status']
  if (part?.access !== 'update') throw new Error('The status cannot be written')
  const old = { ...volume(), status: { phase: 'Pending', lastPhaseTransitionTime: '2026-01-01T00:00:00Z' } }
  const now = '2026-01-02T00:00:00Z'
  const written = (status: PersistentVolume['status']) =>
    part.change(old as never, { ...volume(), status } as never, now).status
  t.same(written({ phase: 'Bound' }), { phase: 'Bound', lastPhaseTransitionTime: now })
  t.same(written({ ...old.status, phase: 'Bound' }), { phase: 'Bound', lastPhaseTransitionTime: now })
  const own = { phase: 'Bound', lastPhaseTransitionTime: '2026-01-01T12:00:00Z' }
  t.same(written(own), own)
  t.same(written({ phase: 'Pending', reason: 'Waiting' }), { ...old.status, reason: 'Waiting' })
})

test('a new claim is pending', async (t) => {
  t.match(create('persistentvolumeclaims', claim({}, { status: { phase: 'Bound' } })), {
    spec: { volumeMode: 'Filesystem' },
    status: { phase: 'Pending' },
  })
})

test('a claim states its access modes and its size', async (t) => {
  const wrong = (spec: Partial<ClaimSpec>) => causes(() => create('persistentvolumeclaims', claim(spec)))
  t.same(wrong({ accessModes: [] }), ['spec.accessModes: Required value: at least 1 access mode is required'])
  t.same(wrong({ resources: {} }), ['spec.resources[storage]: Required value'])
  t.same(wrong({ resources: { requests: { storage: '-1' } } }), [
    'spec.resources[storage]: Invalid value: "-1": must be greater than zero',
  ])
  t.same(wrong({ storageClassName: '', volumeMode: 'Block', volumeName: 'disk' }), [])
  t.same(wrong({ dataSource: { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: '' } }), [
    'spec.dataSource.name: Required value',
    'spec.dataSourceRef.name: Required value',
  ])
  const one = { kind: 'PersistentVolumeClaim', name: 'a' }
  t.same(wrong({ dataSource: one, dataSourceRef: { ...one, name: 'b' } }), [
    'spec: Invalid value: "spec.dataSource": must match dataSourceRef',
  ])
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

test('a claim changes only by its volume, its first class, and the size of a bound one', async (t) => {
  const made = create('persistentvolumeclaims', claim()) as PersistentVolumeClaim
  const because =
    'spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims'
  const changed = (spec: Partial<ClaimSpec>, old: PersistentVolumeClaim = made) =>
    causes(() => update('persistentvolumeclaims', old, claim(spec, { status: old.status ?? {} })))
  t.same(changed({ volumeName: 'disk', storageClassName: 'fast' }), [])
  t.same(changed({ accessModes: ['ReadWriteMany'] }), [because])
  const larger = { resources: { requests: { storage: '2Gi' } } }
  t.same(changed(larger), [because])
  const bound = { ...made, status: { phase: 'Bound', capacity: { storage: '1Gi' } } }
  t.same(changed(larger, bound), [])
  t.same(changed({ resources: { requests: { storage: '512Mi' } } }, bound), [
    'spec.resources.requests.storage: Forbidden: field can not be less than status.capacity',
  ])
  const placed = { ...made, spec: { ...claim().spec, volumeName: 'disk', storageClassName: 'fast' } }
  t.same(changed({ volumeName: 'other', storageClassName: 'fast' }, placed), [because])
  t.same(changed({ volumeName: 'disk', storageClassName: 'slow' }, placed), [because])
})

test('the class of a claim moves from its annotation to its field', async (t) => {
  const annotation = 'volume.beta.kubernetes.io/storage-class'
  const named = (value: string, storageClassName?: string) =>
    claim(storageClassName === undefined ? {} : { storageClassName }, {
      metadata: { name: 'data', namespace: 'default', annotations: { [annotation]: value } },
    })
  const made = create('persistentvolumeclaims', named('fast'))
  const changed = (now: PersistentVolumeClaim) => causes(() => update('persistentvolumeclaims', made, now))
  t.same(changed(named('fast', 'fast')), [])
  t.same(changed(claim({ storageClassName: 'fast' })), [])
  t.equal(changed(named('fast', 'slow')).length, 1)
  t.same(changed(named('slow')), [`metadata.annotations[${annotation}]: Invalid value: "slow": field is immutable`])
})

test('the status of a claim has amounts of storage', async (t) => {
  const part = kinds.persistentvolumeclaims.subresources['status']
  if (part?.access !== 'update') throw new Error('The status cannot be written')
  const wrong = (status: PersistentVolumeClaim['status']) =>
    (part.validateUpdate?.(claim() as never, claim({}, { status }) as never) ?? []).map(({ field }) => field)
  t.same(wrong({ phase: 'Bound', capacity: { storage: '1Gi' } }), [])
  t.same(wrong({ capacity: { storage: '-1' } }), ['status.capacity[storage]'])
  t.same(wrong({ allocatedResources: { cpu: '1', 'example.com/a': '1' } }), ['status.allocatedResources'])
  const resized = { storage: 'NodeResizePending', 'example.com/a': 'Growing' }
  t.same(wrong({ allocatedResourceStatuses: resized }), ['status.allocatedResourceStatus'])
})

test('a class is defaulted, and what its volumes are made with stays', async (t) => {
  const made = create('storageclasses', storageClass())
  t.match(made, { reclaimPolicy: 'Delete', volumeBindingMode: 'Immediate' })
  const wrong = (more: Partial<StorageClass>) => causes(() => create('storageclasses', storageClass(more)))
  t.same(wrong({ provisioner: '' }), ['provisioner: Required value'])
  t.same(wrong({ reclaimPolicy: 'Recycle' }), [
    'reclaimPolicy: Unsupported value: "Recycle": supported values: "Delete", "Retain"',
  ])
  t.same(wrong({ volumeBindingMode: 'Late' }), [
    'volumeBindingMode: Unsupported value: "Late": supported values: "Immediate", "WaitForFirstConsumer"',
  ])
  const many = Object.fromEntries(Array.from({ length: 513 }, (_, index) => [`p${index}`, '']))
  t.same(wrong({ parameters: many }), ['parameters: Too long: may not be more than 512 bytes'])
  t.same(wrong({ parameters: { '': 'a' } }), ['parameters: Invalid value: "": field can not be empty.'])
  const term = { matchLabelExpressions: [{ key: 'zone', values: ['a', 'a'] }] }
  t.same(wrong({ allowedTopologies: [term, term] }), [
    'allowedTopologies[0].matchLabelExpressions[0].values[1]: Duplicate value: "a"',
    'allowedTopologies[1].matchLabelExpressions[0].values[1]: Duplicate value: "a"',
    'allowedTopologies[1].matchLabelExpressions: Duplicate value: ""',
  ])
  const changed = (more: Partial<StorageClass>) => causes(() => update('storageclasses', made, storageClass(more)))
  t.same(changed({ allowVolumeExpansion: true }), [])
  t.same(changed({ parameters: { a: 'b' }, provisioner: 'other', reclaimPolicy: 'Retain' }), [
    'parameters: Forbidden: updates to parameters are forbidden.',
    'provisioner: Forbidden: updates to provisioner are forbidden.',
    'reclaimPolicy: Forbidden: updates to reclaimPolicy are forbidden.',
  ])
})

const asDefault = { 'storageclass.kubernetes.io/is-default-class': 'true' }

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
