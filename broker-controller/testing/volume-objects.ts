/** Claims and volumes as the store has them. A test sets the fields that matter to it. */
import type { ObjectMeta } from '../../api/meta.ts'
import type { PersistentVolume } from '../../api/storage/persistent-volume.ts'
import type { PersistentVolumeClaim } from '../../api/storage/persistent-volume-claim.ts'
import type { StorageClass } from '../../api/storage/storage-class.ts'
import type { StoredObject } from '../store/store.ts'

type Parts<O extends { readonly spec?: unknown; readonly status?: unknown }> = {
  readonly metadata?: ObjectMeta
  readonly spec?: O['spec']
  readonly status?: O['status']
}

const born = { resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' }

/** `default/NAME` with the uid `uid-NAME`; 1Gi, ReadWriteOnce. */
export function aStoredClaim(
  name: string,
  { metadata, spec, status }: Parts<PersistentVolumeClaim> = {},
): StoredObject<'persistentvolumeclaims'> {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { namespace: 'default', uid: `uid-${name}`, ...born, ...metadata, name },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...spec },
    status: { phase: 'Pending', ...status },
  }
}

/** The same for a volume, which is free. */
export function aStoredVolume(
  name: string,
  { metadata, spec, status }: Parts<PersistentVolume> = {},
): StoredObject<'persistentvolumes'> {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { uid: `uid-${name}`, ...born, ...metadata, name },
    spec: {
      accessModes: ['ReadWriteOnce'],
      capacity: { storage: '1Gi' },
      persistentVolumeReclaimPolicy: 'Retain',
      hostPath: { path: `/srv/${name}` },
      ...spec,
    },
    status: { phase: 'Available', ...status },
  }
}

export function aStorageClass(name: string, more: Partial<StorageClass> = {}): StorageClass {
  return {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name },
    provisioner: 'example.com/disk',
    reclaimPolicy: 'Delete',
    volumeBindingMode: 'Immediate',
    ...more,
  }
}

/** The reference of a volume to `default/NAME`. */
export function claimRefTo(name: string, uid: string | undefined = `uid-${name}`) {
  return { kind: 'PersistentVolumeClaim', apiVersion: 'v1', namespace: 'default', name, ...(uid !== '' && { uid }) }
}
