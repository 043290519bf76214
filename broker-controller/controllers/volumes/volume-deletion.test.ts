import { type Test, test } from 'tap'
import { poolsAnnotation } from '../../../api/storage/pools.ts'
import { volumeAnnotations } from '../../../api/storage/volume-names.ts'
import { volumeDataFinalizer } from '../../../api/storage/volume-orders.ts'
import { aNode } from '../../../api/testing/builders.ts'
import { rewrite } from '../../store/rewrite.ts'
import { aStorageClass, aStoredClaim } from '../../testing/volume-objects.ts'
import { volumeWorld } from '../../testing/volume-world.ts'

const pool = '11111111-1111-4111-8111-111111111111'
const { status: _, metadata: __, ...sent } = aStoredClaim('data', { spec: { storageClassName: 'local-path' } })

/** A claim that is bound to a volume in the pool of pi-1. */
async function aBoundClaim(t: Test) {
  const world = volumeWorld(t)
  world.start()
  const { store, clock } = world
  const options = {
    provisioner: 'bramble.dev/local-path',
    volumeBindingMode: 'WaitForFirstConsumer',
    reclaimPolicy: 'Delete',
  } as const
  await world.add('storageclasses', aStorageClass('local-path', options))
  const pools = JSON.stringify([{ id: pool, path: '/pool' }])
  const { metadata, ...node } = aNode({ name: 'pi-1', annotations: { [poolsAnnotation]: pools } })
  const { uid: _uid, resourceVersion: _version, ...own } = metadata
  await store.create('nodes', { ...node, metadata: own })
  const annotations = { [volumeAnnotations.selectedNode]: 'pi-1' }
  await world.settle()
  await world.add('persistentvolumeclaims', { ...sent, metadata: { namespace: 'default', name: 'data', annotations } })
  await world.settle(500)
  const name = (await world.claim('data'))?.spec?.volumeName ?? ''
  const uid = (await world.volume(name))?.metadata.uid ?? ''
  const report = async (done: readonly string[], refused: readonly { uid: string; reason: string }[] = []) => {
    world.storage.receive('pi-1', { done, refused })
    await world.settle(500)
  }
  const keep = () =>
    rewrite({ store, clock }, 'persistentvolumes', {
      key: { namespace: '', name },
      change: (volume) => ({ ...volume, spec: { ...volume.spec, persistentVolumeReclaimPolicy: 'Retain' } }),
    })
  return { ...world, name, uid, report, keep }
}

test('the volume of a deleted claim goes when its node has confirmed that the data is in the trash', async (t) => {
  const world = await aBoundClaim(t)
  t.match(await world.volume(world.name), {
    metadata: { finalizers: [volumeDataFinalizer] },
    status: { phase: 'Bound' },
  })
  await world.remove('persistentvolumeclaims', 'data')
  await world.settle(500)
  const leaving = await world.volume(world.name)
  t.match(leaving, { status: { phase: 'Released' }, metadata: { finalizers: [volumeDataFinalizer] } })
  t.type(leaving?.metadata.deletionTimestamp, 'string')
  await world.report(['uid-of-another'])
  t.ok(await world.volume(world.name))
  await world.report([world.uid])
  t.equal(await world.volume(world.name), undefined)
})

test('what a volume waits for is an Event of it', async (t) => {
  const world = await aBoundClaim(t)
  await world.remove('persistentvolumeclaims', 'data')
  await world.settle(1000)
  t.same(
    (await world.events(world.name)).filter((event) => /Deletion|Failed/.test(event)),
    [],
    'not at once',
  )
  await world.settle(30_000)
  t.match((await world.events(world.name)).join('\n'), /^DeletionWaitsForNode the data is on node "pi-1", which /m)
  await world.report([], [{ uid: world.uid, reason: 'it is mounted' }])
  t.match(
    (await world.events(world.name)).join('\n'),
    /^VolumeFailedDelete node "pi-1" keeps the data: it is mounted$/m,
  )
})

test('a volume whose object is deleted first has its data deleted with its claim', async (t) => {
  const world = await aBoundClaim(t)
  await world.remove('persistentvolumes', world.name)
  await world.settle(500)
  await world.report([world.uid])
  t.match(await world.volume(world.name), { status: { phase: 'Bound' } }, 'its claim has it')
  await world.remove('persistentvolumeclaims', 'data')
  await world.settle(500)
  await world.report([world.uid])
  t.equal(await world.volume(world.name), undefined)
})

test('a volume that is set to Retain goes without its node', async (t) => {
  const world = await aBoundClaim(t)
  await world.remove('persistentvolumeclaims', 'data')
  await world.store.delete('nodes', { namespace: '', name: 'pi-1' })
  await world.settle(60_000)
  t.match(
    (await world.events(world.name)).join('\n'),
    /DeletionWaitsForNode the data is in the pool 1.*which no node has/,
  )
  t.ok(await world.volume(world.name))
  await world.keep()
  await world.settle(500)
  t.equal(await world.volume(world.name), undefined)
})

test('a volume with the policy Retain stays when its claim is deleted', async (t) => {
  const world = await aBoundClaim(t)
  await world.keep()
  await world.remove('persistentvolumeclaims', 'data')
  await world.settle(60_000)
  t.match(await world.volume(world.name), { status: { phase: 'Released' }, metadata: { deletionTimestamp: undefined } })
})

test('the folder of a claim on a share goes by a ready node that mounts NFS, and by another one when that is gone', async (t) => {
  const world = volumeWorld(t)
  world.start()
  const { store } = world
  const parameters = { server: 'nas', share: '/export', onDelete: 'trash' }
  await world.add('storageclasses', aStorageClass('nas', { provisioner: 'bramble.dev/nfs', parameters }))
  for (const name of ['pi-1', 'pi-2', 'pi-3']) {
    const { metadata, ...node } = aNode({ name })
    const { uid: _uid, resourceVersion: _version, ...own } = metadata
    await store.create('nodes', { ...node, metadata: own })
  }
  world.storage.receive('pi-1', { done: [], refused: [], shares: ['smb'] })
  const claim = aStoredClaim('files', { spec: { storageClassName: 'nas' } })
  await world.add('persistentvolumeclaims', { ...claim, metadata: { namespace: 'default', name: 'files' } })
  await world.settle(500)
  const name = (await world.claim('files'))?.spec?.volumeName ?? ''
  const uid = (await world.volume(name))?.metadata.uid ?? ''
  const chosen = async () => (await world.volume(name))?.metadata.annotations?.['bramble.dev/deleting-node']
  await world.remove('persistentvolumeclaims', 'files')
  await world.settle(500)
  t.type((await world.volume(name))?.metadata.deletionTimestamp, 'string')
  t.equal(await chosen(), undefined, 'no node mounts NFS')
  await world.settle(30_000)
  t.match((await world.events(name)).join('\n'), /^DeletionWaitsForNode no ready node mounts shares of the kind nfs/m)
  world.storage.receive('pi-2', { done: [], refused: [], shares: ['nfs', 'smb'] })
  await world.settle(500)
  t.equal(await chosen(), 'pi-2')
  await store.delete('nodes', { namespace: '', name: 'pi-2' })
  world.storage.forget('pi-2')
  world.storage.receive('pi-3', { done: [], refused: [], shares: ['nfs'] })
  await world.settle(11 * 60_000)
  t.equal(await chosen(), 'pi-3')
  world.storage.receive('pi-1', { done: [uid], refused: [] })
  await world.settle(500)
  t.ok(await world.volume(name), 'another node has nothing to confirm')
  world.storage.receive('pi-3', { done: [uid], refused: [], shares: ['nfs'] })
  await world.settle(500)
  t.equal(await world.volume(name), undefined)
})
