import { test } from 'tap'
import { problemText } from '../../../../api/problem.ts'
import type { PersistentVolumeClaim } from '../../../../api/storage/persistent-volume-claim.ts'
import { kinds } from '../../../assembly/control-plane.ts'
import { causes, create, update } from '../../../testing/admitting.ts'
import { claimChangeProblems, claimProblems, claimStatusProblems } from './claim-problems.ts'

type ClaimSpec = NonNullable<PersistentVolumeClaim['spec']>

const claim = (spec: Partial<ClaimSpec> = {}, more: Partial<PersistentVolumeClaim> = {}): PersistentVolumeClaim => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name: 'data', namespace: 'default' },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...spec },
  ...more,
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

test('every wrong field of a claim is named', async (t) => {
  const problems = (spec: ClaimSpec) => claimProblems(claim(spec)).map(problemText)
  const group = { apiGroup: 'example.com', kind: 'Image', name: 'a' }
  t.same(problems({ dataSource: { kind: 'PersistentVolumeClaim', name: 'a' } }), [])
  t.same(problems({ dataSourceRef: { ...group, namespace: 'other' } }), [])
  t.same(problems({ accessModes: ['Some', 'ReadWriteOncePod', 'ReadOnlyMany'] }), [
    'spec.accessModes: Unsupported value: "Some": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"',
    'spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes',
  ])
  t.same(problems({ volumeMode: 'Tape' }), [
    'spec.volumeMode: Unsupported value: "Tape": supported values: "Block", "Filesystem"',
  ])
  t.match(problems({ storageClassName: 'A' }), [/^spec.storageClassName: Invalid value: "A"/])
  t.match(problems({ resources: { requests: { storage: '0' } } }), [/must be greater than zero$/])
  t.same(problems({ dataSource: { kind: 'Pod', name: 'a' } }), [
    `spec.dataSource: Invalid value: "Pod": must be 'PersistentVolumeClaim' when referencing the default apiGroup`,
  ])
})

test('a claim keeps all of its specification while it is not bound', async (t) => {
  const because =
    'spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims'
  const [mode, source] = ['Block', { kind: 'PersistentVolumeClaim', name: 'a' }]
  const changed = (old: ClaimSpec, now: ClaimSpec) => claimChangeProblems(claim(old), claim(now)).map(problemText)
  t.same(changed({ volumeName: '' }, {}), [], 'in Go the same')
  t.same(changed({ volumeMode: 'Filesystem' }, { volumeMode: mode }), [
    because,
    'volumeMode: Invalid value: "Block": field is immutable',
  ])
  t.same(changed({}, { selector: { matchLabels: { a: 'b' } } }), [because])
  t.same(changed({}, { dataSource: source }), [because])
  t.same(changed({ volumeName: 'disk' }, {}), [because])
})

test('the size of a bound claim is not less than what its volume has, nor as large, once it was larger', async (t) => {
  const sized = (storage: string, has?: string) =>
    claim(
      { resources: { requests: { storage } } },
      { status: { phase: 'Bound', capacity: has ? { storage: has } : {} } },
    )
  const changed = (old: string, now: string, has?: string) =>
    claimChangeProblems(sized(old, has), sized(now, has)).map(problemText)
  const below = 'spec.resources.requests.storage: Forbidden: field can not be less than status.capacity'
  t.same(changed('4Gi', '3Gi', '2Gi'), [])
  t.same(changed('4Gi', '2Gi', '2Gi'), [below])
  t.same(changed('4Gi', '1Gi', '2Gi'), [below])
  t.same(changed('2Gi', '2Gi', '2Gi'), [])
  t.same(changed('2Gi', '1Gi'), [], 'the volume is not known yet')
})

test('the class of a claim that names none may be named once', async (t) => {
  const changed = (old: ClaimSpec, now: ClaimSpec) => claimChangeProblems(claim(old), claim(now)).length
  t.equal(changed({}, { storageClassName: 'fast' }), 0)
  t.equal(changed({}, { storageClassName: '' }), 0)
  t.equal(changed({ storageClassName: 'fast' }, { storageClassName: 'slow' }), 1)
  t.equal(changed({ storageClassName: 'fast' }, {}), 1)
  t.equal(changed({ storageClassName: '' }, { storageClassName: 'fast' }), 1)
  t.equal(changed({ storageClassName: '' }, {}), 1, 'the default class is another answer than none')
})

test('a status names storage and the resources of vendors', async (t) => {
  const problems = (status: PersistentVolumeClaim['status'] = {}) =>
    claimStatusProblems(claim({}, { status })).map(problemText)
  t.same(problems(), [])
  const all = [
    'ControllerResizeInProgress',
    'ControllerResizeInfeasible',
    'NodeResizeInProgress',
    'NodeResizeInfeasible',
  ]
  for (const state of [...all, 'NodeResizePending'])
    t.same(problems({ allocatedResourceStatuses: { storage: state, 'example.com/a': state } }), [])
  t.same(problems({ allocatedResources: { storage: '0', 'example.com/a': '1' } }), [])
  t.same(problems({ allocatedResources: { cpu: '1' }, allocatedResourceStatuses: { memory: 'NodeResizePending' } }), [
    'status.allocatedResourceStatus: Unsupported value: "memory": supported values: "storage"',
    'status.allocatedResources: Unsupported value: "cpu": supported values: "storage"',
  ])
  t.same(problems({ allocatedResources: { 'kubernetes.io/a': '1', 'volumes.kubernetes.io/a': '1' } }), [
    'status.allocatedResources: Unsupported value: "kubernetes.io/a": supported values: "storage"',
    'status.allocatedResources: Unsupported value: "volumes.kubernetes.io/a": supported values: "storage"',
  ])
  t.match(problems({ allocatedResources: { '-': '1' } }), [/^status.allocatedResources: Invalid value: "-"/])
  t.same(problems({ allocatedResources: { storage: '-1' } }), [
    'status.allocatedResources[storage]: Invalid value: "-1": must be a valid resource quantity',
  ])
  const states =
    '"ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress", "NodeResizeInfeasible", "NodeResizePending"'
  t.same(problems({ allocatedResourceStatuses: { storage: 'Growing' } }), [
    `status.allocatedResourceStatus: Unsupported value: "storage": supported values: ${states.split(', ').sort().join(', ')}`,
  ])
})

test('an empty field that a client leaves out does not change a claim', async (t) => {
  const selector = { matchLabels: { disk: 'fast' } }
  const old = create('persistentvolumeclaims', claim({ selector: { ...selector, matchExpressions: [] } }))
  t.same(
    causes(() => update('persistentvolumeclaims', old, claim({ selector }))),
    [],
  )
})
