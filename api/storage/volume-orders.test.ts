import { test } from 'tap'
import type { PersistentVolume } from './persistent-volume.ts'
import { deletionOrder, targetOfOrder, volumeDataFinalizer } from './volume-orders.ts'
import { poolOfVolume } from './volume-place.ts'

const metadata = {
  ...{ name: 'pvc-1', uid: 'u-1', deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [volumeDataFinalizer] },
  annotations: { 'pv.kubernetes.io/provisioned-by': 'bramble.dev/local-path', 'bramble.dev/pool': 'p' },
}
const spec = {
  local: { path: '/pool/default_a_pvc-1' },
  persistentVolumeReclaimPolicy: 'Delete',
  claimRef: { namespace: 'default', name: 'a', uid: 'c-1' },
} as const
const volume: PersistentVolume = {
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata,
  spec,
  status: { phase: 'Released' },
}

test('the data of a volume that is on its way out is ordered to the trash', async (t) => {
  const order = { kind: 'trash', volume: 'pvc-1', uid: 'u-1', pool: 'p', folder: 'default_a_pvc-1' }
  t.same(deletionOrder(volume), { ...order, claim: 'default/a', claimUID: 'c-1' })
  const { claimRef: _, ...freed } = spec
  t.same(deletionOrder({ ...volume, spec: freed, status: { phase: 'Available' } }), order)
  t.ok(deletionOrder({ ...volume, status: { phase: 'Failed' } }))
})

test('the order has what the volume is made again with, and how long its data stays in the trash', async (t) => {
  const sized = { ...spec, capacity: { storage: '5Gi' }, storageClassName: 'disks' }
  const keptFor = (trash: string) =>
    deletionOrder({
      ...volume,
      metadata: { ...metadata, annotations: { ...metadata.annotations, 'bramble.dev/trash': trash } },
      spec: sized,
    })
  t.match(keptFor('30d'), { capacity: '5Gi', storageClass: 'disks', keepSeconds: 30 * 86_400 })
  t.equal(keptFor('0')?.keepSeconds, 0)
  t.equal(keptFor('for ever')?.keepSeconds, undefined, 'the usual time')
})

test('the data of every other volume stays', async (t) => {
  const { deletionTimestamp: _, ...standing } = metadata
  const kept: readonly PersistentVolume[] = [
    { ...volume, metadata: standing },
    { ...volume, metadata: { ...metadata, finalizers: [] } },
    { ...volume, metadata: { ...metadata, annotations: { 'bramble.dev/pool': 'p' } } },
    { ...volume, spec: { ...spec, persistentVolumeReclaimPolicy: 'Retain' } },
    { ...volume, status: { phase: 'Bound' } },
    { ...volume, status: {} },
  ]
  for (const one of kept) t.equal(deletionOrder(one), undefined, JSON.stringify(one))
})

test('a volume is of a pool if the provisioner made it there', async (t) => {
  t.equal(poolOfVolume(volume), 'p')
  const { local: _, ...other } = spec
  t.equal(poolOfVolume({ ...volume, spec: { ...other, hostPath: { path: '/' } } }), undefined)
})

test('a folder of a share is ordered by what its class wants, from the node that was chosen, for the store of the volume', async (t) => {
  const onShare = (annotations: { readonly [name: string]: string }): PersistentVolume => {
    const own = { 'pv.kubernetes.io/provisioned-by': 'bramble.dev/nfs', 'bramble.dev/share-root': '/export' }
    const { local: _, ...rest } = spec
    return {
      ...volume,
      metadata: { ...metadata, annotations: { ...own, ...annotations } },
      spec: {
        ...rest,
        mountOptions: ['nfsvers=4.1'],
        nfs: { server: 'nas', path: '/export/default/a', readOnly: true },
      },
    }
  }
  const trash = { 'bramble.dev/on-delete': 'trash', 'bramble.dev/store': 's-1', 'bramble.dev/deleting-node': 'pi-1' }
  t.same(deletionOrder(onShare(trash)), {
    ...{ kind: 'share-trash', volume: 'pvc-1', uid: 'u-1', pool: '', folder: 'default/a' },
    share: { kind: 'nfs', server: 'nas', path: '/export', mountOptions: ['nfsvers=4.1'] },
    ...{ claim: 'default/a', claimUID: 'c-1' },
  })
  t.match(deletionOrder(onShare({ ...trash, 'bramble.dev/on-delete': 'delete' })), { kind: 'share-delete' })
  for (const wanted of ['retain', 'erase', '']) {
    t.equal(deletionOrder(onShare({ ...trash, 'bramble.dev/on-delete': wanted })), undefined)
  }
  t.equal(deletionOrder(onShare({})), undefined)
  t.equal(
    deletionOrder(onShare({ ...trash, 'bramble.dev/share-root': '/export/default/a' })),
    undefined,
    'the whole share',
  )
  t.same(targetOfOrder(onShare(trash), 's-1'), { node: 'pi-1' })
  t.equal(targetOfOrder(onShare(trash), 's-2'), undefined)
  t.same(targetOfOrder(volume, 's-2'), { pool: 'p' })
})
