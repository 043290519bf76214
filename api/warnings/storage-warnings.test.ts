import { test } from 'tap'
import { storageClassWarnings } from './storage-warnings.ts'

const ofPools = {
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: { name: 'disks' },
  provisioner: 'bramble.dev/local-path',
} as const

test('the author of a class is warned of an invalid time in the trash', async (t) => {
  t.same(storageClassWarnings({ ...ofPools, parameters: { trash: '30d' } }), [])
  t.same(storageClassWarnings({ ...ofPools, parameters: { trash: 'x' } }), [
    'parameters: invalid value "x" for the parameter trash: use days or hours, like 30d or 12h, or 0. No volumes are made',
  ])
  t.same(storageClassWarnings({ ...ofPools, provisioner: 'example.com/disk', parameters: { trash: 'x' } }), [])
})
