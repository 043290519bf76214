import { test } from 'tap'
import { claimRecord, readClaimRecord } from './claim-record.ts'
import type { PersistentVolume } from './persistent-volume.ts'
import type { PersistentVolumeClaim } from './persistent-volume-claim.ts'

const born = '2026-01-01T00:00:00Z'
const claim = {
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: {
    ...{ namespace: 'shop', name: 'db', uid: 'claim-uid', resourceVersion: '7', creationTimestamp: born },
    labels: { app: 'db' },
    annotations: { 'pv.kubernetes.io/bind-completed': 'yes', 'kubectl.kubernetes.io/last-applied-configuration': '{}' },
    finalizers: ['kubernetes.io/pvc-protection'],
    ownerReferences: [
      { apiVersion: 'v1', kind: 'Pod', name: 'db-0', uid: 'pod-uid', controller: true },
      { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'db', uid: 'set-uid', controller: true },
    ],
  },
  spec: { accessModes: ['ReadWriteOnce'], volumeName: 'pv', resources: { requests: { storage: '1Gi' } } },
  status: { phase: 'Bound' },
} satisfies PersistentVolumeClaim
const volume = {
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: {
    ...{ name: 'pv', uid: 'pv-uid', resourceVersion: '8', creationTimestamp: born },
    annotations: { 'bramble.dev/pool': 'pool', 'pv.kubernetes.io/provisioned-by': 'bramble.dev/local-path', mine: 'x' },
    finalizers: ['bramble.dev/volume-data', 'kubernetes.io/pv-protection'],
  },
  spec: {
    ...{ capacity: { storage: '1Gi' }, local: { path: '/pool/db' }, persistentVolumeReclaimPolicy: 'Delete' },
    claimRef: { namespace: 'shop', name: 'db', uid: 'claim-uid', resourceVersion: '6' },
  },
  status: { phase: 'Bound' },
} satisfies PersistentVolume

test('a record has what binds a claim and its volume to each other, and where the data is', async (t) => {
  const record = readClaimRecord(claimRecord({ claim, volume }) ?? '')
  t.same(record, {
    claim: {
      ...{ apiVersion: 'v1', kind: 'PersistentVolumeClaim', spec: claim.spec },
      metadata: {
        ...{ namespace: 'shop', name: 'db', uid: 'claim-uid', creationTimestamp: born, labels: { app: 'db' } },
        annotations: { 'pv.kubernetes.io/bind-completed': 'yes' },
        ownerReferences: [claim.metadata.ownerReferences[0]],
      },
    },
    volume: {
      ...{ apiVersion: 'v1', kind: 'PersistentVolume' },
      metadata: {
        ...{ name: 'pv', uid: 'pv-uid', creationTimestamp: born, finalizers: ['bramble.dev/volume-data'] },
        annotations: {
          'bramble.dev/pool': 'pool',
          'pv.kubernetes.io/provisioned-by': 'bramble.dev/local-path',
        },
      },
      spec: { ...volume.spec, claimRef: { namespace: 'shop', name: 'db', uid: 'claim-uid' } },
    },
  })
})

test('a record is short: without labels if they are long, and not at all if the rest is', async (t) => {
  const labelled = { ...claim, metadata: { ...claim.metadata, labels: { long: 'x'.repeat(5000) } } }
  const record = readClaimRecord(claimRecord({ claim: labelled, volume }) ?? '')
  t.match(record, {
    claim: { metadata: { uid: 'claim-uid', labels: undefined } },
    volume: { metadata: { uid: 'pv-uid' } },
  })
  const options = { ...volume, spec: { ...volume.spec, mountOptions: ['x'.repeat(5000)] } }
  t.equal(claimRecord({ claim, volume: options }), undefined)
})

test('what cannot be decoded, or is too long, is not a record', async (t) => {
  for (const text of ['', '{', '[]', '{"claim":{}}', `${claimRecord({ claim, volume })}${' '.repeat(5000)}`])
    t.equal(readClaimRecord(text), undefined)
})
