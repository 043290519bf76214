import { test } from 'tap'
import type { PersistentVolume } from '../../../api/storage/persistent-volume.ts'
import { volumeDataFinalizer } from '../../../api/storage/volume-orders.ts'
import { planVolumeDeletion, type VolumeDeletionFacts } from './deletion-plan.ts'

const annotations = { 'pv.kubernetes.io/provisioned-by': 'bramble.dev/local-path', 'bramble.dev/pool': 'p' }
const volume: PersistentVolume = {
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name: 'pvc-1', uid: 'u-1', annotations },
  spec: { local: { path: '/pool/a' }, persistentVolumeReclaimPolicy: 'Delete', claimRef: { name: 'a', uid: 'c-1' } },
  status: { phase: 'Released' },
}
const deletionTimestamp = '2026-01-01T00:00:00Z'
const leaving: PersistentVolume = {
  ...volume,
  metadata: { ...volume.metadata, deletionTimestamp, finalizers: [volumeDataFinalizer] },
}
const plan = (facts: Partial<VolumeDeletionFacts>) =>
  planVolumeDeletion({ volume, hasClaim: false, holder: undefined, isHeld: false, ...facts })
const holder = (done: readonly string[], refused: readonly (readonly [string, string])[] = [], isReady = true) => ({
  ...{ node: 'pi-1', isReady },
  report: { done: new Set(done), refused: new Map(refused) },
})
const withPolicy = (one: PersistentVolume, persistentVolumeReclaimPolicy: 'Retain') => ({
  ...one,
  spec: { ...one.spec, persistentVolumeReclaimPolicy },
})

test('a released volume with the policy Delete is deleted', async (t) => {
  t.same(plan({}), { plan: 'delete' })
  t.same(plan({ volume: { ...volume, status: { phase: 'Failed' } } }), { plan: 'delete' })
})

test('a released volume on a share goes, and its folder stays there', async (t) => {
  const onShare: PersistentVolume = {
    ...volume,
    metadata: { name: 'pvc-1', uid: 'u-1', annotations: { 'pv.kubernetes.io/provisioned-by': 'bramble.dev/nfs' } },
    spec: { nfs: { server: 'nas', path: '/export/a' }, persistentVolumeReclaimPolicy: 'Delete' },
  }
  t.same(plan({ volume: onShare }), { plan: 'delete' })
  t.same(plan({ volume: onShare, hasClaim: true }), { plan: 'nothing' })
  t.same(plan({ volume: onShare, isHeld: true }), { plan: 'nothing' })
  t.same(plan({ volume: withPolicy(onShare, 'Retain') }), { plan: 'nothing' })
  const metadata = { ...onShare.metadata, deletionTimestamp, finalizers: [volumeDataFinalizer] }
  t.same(plan({ volume: { ...onShare, metadata } }), { plan: 'release' })
})

test('the folder of a share is deleted by a ready node that mounts it, in the store that made the volume', async (t) => {
  const annotations = {
    ...{ 'pv.kubernetes.io/provisioned-by': 'bramble.dev/nfs', 'bramble.dev/share-root': '/export' },
    ...{ 'bramble.dev/on-delete': 'trash', 'bramble.dev/store': 's-1' },
  }
  const one: PersistentVolume = {
    ...leaving,
    metadata: { ...leaving.metadata, annotations },
    spec: { ...withPolicy(volume, 'Retain').spec, persistentVolumeReclaimPolicy: 'Delete' },
  }
  const { local: _, ...spec } = one.spec ?? {}
  const onShare = { ...one, spec: { ...spec, nfs: { server: 'nas', path: '/export/a' } } }
  const share = { store: 's-1', candidate: 'pi-2', sharedWith: undefined }
  const { deletionTimestamp: __, ...present } = onShare.metadata
  t.same(plan({ volume: { ...onShare, metadata: present } }), { plan: 'delete' })
  t.same(plan({ volume: onShare, share }), { plan: 'choose', node: 'pi-2' })
  t.same(plan({ volume: onShare, share, holder: holder([], [], false) }), { plan: 'choose', node: 'pi-2' })
  t.match(plan({ volume: onShare, share, holder: holder([]) }), { event: { message: /"pi-1" has not confirmed/ } })
  t.same(plan({ volume: onShare, share, holder: holder(['u-1']) }), { plan: 'release' })
  t.match(plan({ volume: onShare, share, holder: holder([], [['u-1', 'it is mounted']]) }), {
    event: { reason: 'VolumeFailedDelete', message: 'node "pi-1" keeps the data: it is mounted' },
  })
  t.match(plan({ volume: onShare, share: { ...share, candidate: undefined } }), {
    event: { reason: 'DeletionWaitsForNode', message: /^no ready node mounts shares of the kind nfs, .* is on nas/ },
  })
  t.match(plan({ volume: onShare, share: { ...share, store: 's-2' } }), {
    plan: 'wait',
    event: {
      type: 'Warning',
      message: /another store .*: kubectl annotate --overwrite pv pvc-1 bramble\.dev\/store=s-2/,
    },
  })
  t.same(plan({ volume: onShare, share: { ...share, sharedWith: 'pvc-2' } }), { plan: 'release' }, 'its folder stays')
  t.same(plan({ volume: onShare, share, isHeld: true }), { plan: 'wait' })
  t.same(plan({ volume: withPolicy(onShare, 'Retain'), share }), { plan: 'release' })
})

test('no volume is deleted while it may be wanted', async (t) => {
  const nothing = { plan: 'nothing' }
  t.same(plan({ hasClaim: true }), nothing)
  t.same(plan({ isHeld: true }), nothing, 'its claim may come back after a restore')
  t.same(plan({ volume: withPolicy(volume, 'Retain') }), nothing)
  for (const phase of ['Bound', 'Available', 'Pending'] as const)
    t.same(plan({ volume: { ...volume, status: { phase } } }), nothing)
  t.same(
    plan({ volume: { ...volume, metadata: { ...volume.metadata, annotations: {} } } }),
    nothing,
    'of another provisioner',
  )
})

test('the object goes when the node that has the pool has confirmed', async (t) => {
  t.same(plan({ volume: leaving, holder: holder(['u-1']) }), { plan: 'release' })
  t.match(plan({ volume: leaving, holder: holder(['u-2']) }), {
    plan: 'wait',
    event: { type: 'Normal', reason: 'DeletionWaitsForNode', message: /is on node "pi-1", which has not confirmed/ },
  })
  t.match(plan({ volume: leaving, holder: holder([], [], false) }), {
    event: { message: /"pi-1", which is not ready\. / },
  })
  t.match(plan({ volume: leaving }), {
    event: { message: /^the data is in the pool p, which no node has\. To delete/ },
  })
  t.match(plan({ volume: leaving, holder: holder([], [['u-1', 'it is mounted']]) }), {
    event: { type: 'Warning', reason: 'VolumeFailedDelete', message: 'node "pi-1" keeps the data: it is mounted' },
  })
  t.same(plan({ volume: leaving, holder: holder(['u-1']), isHeld: true }), { plan: 'wait' })
})

test('a bound volume that is deleted waits for its claim, and one that is retained goes without its data', async (t) => {
  t.same(plan({ volume: { ...leaving, status: { phase: 'Bound' } }, hasClaim: true, holder: holder(['u-1']) }), {
    plan: 'wait',
  })
  t.same(plan({ volume: withPolicy(leaving, 'Retain') }), { plan: 'release' })
  t.same(plan({ volume: { ...leaving, metadata: { ...leaving.metadata, annotations: {} } } }), { plan: 'release' })
  t.same(plan({ volume: { ...leaving, metadata: { ...leaving.metadata, finalizers: ['other'] } } }), {
    plan: 'nothing',
  })
})
