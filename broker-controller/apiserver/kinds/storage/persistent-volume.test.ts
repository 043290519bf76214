import { test } from 'tap'
import type { PersistentVolume } from '../../../../api/storage/persistent-volume.ts'
import { kinds } from '../../../assembly/control-plane.ts'
import { create } from '../../../testing/admitting.ts'

type VolumeSpec = NonNullable<PersistentVolume['spec']>

const volume = (spec: Partial<VolumeSpec> = {}): PersistentVolume => ({
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name: 'disk' },
  spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/srv' }, ...spec },
})

test('a new volume is pending, keeps its data and has a file system', async (t) => {
  const made = create('persistentvolumes', { ...volume(), status: { phase: 'Bound' } })
  t.match(made, {
    spec: { persistentVolumeReclaimPolicy: 'Retain', volumeMode: 'Filesystem', hostPath: { path: '/srv', type: '' } },
    status: { phase: 'Pending', lastPhaseTransitionTime: '1970-01-01T00:00:00Z' },
  })
  const without = create('persistentvolumes', volume({ volumeAttributesClassName: 'gold' }))
  t.notOk('volumeAttributesClassName' in (without.spec as object), 'off by default in Kubernetes 1.32')
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

test('a new volume is protected from deletion while it is used', async (t) => {
  t.same(create('persistentvolumes', volume()).metadata.finalizers, ['kubernetes.io/pv-protection'])
})

test('the table shows a volume that is deleted, and what is not set', async (t) => {
  const { table } = kinds.persistentvolumes
  const cells = (one: PersistentVolume) => table.cells(one as never, Date.parse('2026-01-01T00:01:00Z'))
  const bare = { ...volume(), spec: {}, metadata: { name: 'disk', creationTimestamp: '2026-01-01T00:00:00Z' } }
  t.same(cells(bare), ['disk', '0', '', '', '', '', '', '<unset>', '', '60s', '<unset>'])
  const metadata = {
    ...bare.metadata,
    deletionTimestamp: '2026-01-01T00:00:30Z',
    annotations: { 'volume.beta.kubernetes.io/storage-class': 'fast' },
  }
  const status = { phase: 'Failed', reason: 'RecyclerFailed' }
  t.same(cells({ ...volume({ volumeAttributesClassName: 'gold' }), metadata, status }), [
    ...['disk', '1Gi', 'RWO', '', 'Terminating', '', 'fast', 'gold', 'RecyclerFailed', '60s', '<unset>'],
  ])
})
