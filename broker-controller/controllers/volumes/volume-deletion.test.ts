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
