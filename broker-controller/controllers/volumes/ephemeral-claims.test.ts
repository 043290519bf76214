import { test } from 'tap'
import type { PersistentVolumeClaim } from '../../../api/storage/persistent-volume-claim.ts'
import { aStoredClaim } from '../../testing/volume-objects.ts'
import { type VolumeWorld, volumeWorld } from '../../testing/volume-world.ts'

const template = {
  metadata: { labels: { app: 'web' }, annotations: { a: 'b' } },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, storageClassName: 'fast' },
}
const addPod = (world: VolumeWorld) => {
  const volumes = [{ name: 'scratch', ephemeral: { volumeClaimTemplate: template } }]
  return world.addPod('web', volumes, 'pi-01')
}
const claimOf = async (world: VolumeWorld): Promise<PersistentVolumeClaim | undefined> =>
  await world.claim('web-scratch')

test('a pod gets a claim for each ephemeral volume, and again when somebody deletes it', async (t) => {
  const world = volumeWorld(t)
  world.start()
  await addPod(world)
  await world.settle()
  const { uid } = (await world.store.get('pods', { namespace: 'default', name: 'web' }))?.metadata ?? {}
  const owner = { apiVersion: 'v1', kind: 'Pod', name: 'web', uid, controller: true, blockOwnerDeletion: true }
  t.match(await claimOf(world), { metadata: { ...template.metadata, ownerReferences: [owner] }, spec: template.spec })
  await world.store.delete('persistentvolumeclaims', { namespace: 'default', name: 'web-scratch' })
  await world.settle()
  t.match(await claimOf(world), { metadata: { ownerReferences: [owner] } })
})

test('a claim of that name that is not for the pod stays as it is, and the pod waits until it is gone', async (t) => {
  const world = volumeWorld(t)
  const { status: _, metadata: __, ...sent } = aStoredClaim('web-scratch')
  await world.add('persistentvolumeclaims', { ...sent, metadata: { namespace: 'default', name: 'web-scratch' } })
  world.start()
  await addPod(world)
  await world.settle()
  t.notOk((await claimOf(world))?.metadata.ownerReferences)
  t.same(await world.events('web'), [
    'FailedBinding ephemeral volume scratch: PVC default/web-scratch was not created for pod default/web (pod is not owner)',
  ])
  await world.store.delete('persistentvolumeclaims', { namespace: 'default', name: 'web-scratch' })
  await world.settle()
  t.ok((await claimOf(world))?.metadata.ownerReferences)
})

test('a pod that is being deleted gets no claim', async (t) => {
  const world = volumeWorld(t)
  await addPod(world)
  const pod = await world.store.get('pods', { namespace: 'default', name: 'web' })
  const deletionTimestamp = '2026-01-01T00:00:00Z'
  if (pod) await world.store.update('pods', { ...pod, metadata: { ...pod.metadata, deletionTimestamp } })
  world.start()
  await world.settle()
  t.equal(await claimOf(world), undefined)
})

test('a claim that is refused is recorded on the pod, and tried again', async (t) => {
  const world = volumeWorld(t)
  const hard = { persistentvolumeclaims: '0' }
  const quota = {
    apiVersion: 'v1',
    kind: 'ResourceQuota',
    metadata: { name: 'none', namespace: 'default' },
    spec: { hard },
  }
  await world.store.create('resourcequotas', { ...quota, status: { hard } } as never)
  world.start()
  await addPod(world)
  await world.settle()
  t.match(await world.events('web'), [
    /^FailedBinding ephemeral volume scratch: create PVC web-scratch: .*exceeded quota: none/,
  ])
  await world.store.delete('resourcequotas', { namespace: 'default', name: 'none' })
  await world.settle(60_000)
  t.ok(await claimOf(world))
})
