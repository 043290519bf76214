import { test } from 'tap'
import { poolsAnnotation } from '../../../api/storage/pools.ts'
import { volumeAnnotations } from '../../../api/storage/volume-names.ts'
import { aNode } from '../../../api/testing/builders.ts'
import { rewrite } from '../../store/rewrite.ts'
import { aStorageClass, aStoredClaim } from '../../testing/volume-objects.ts'
import { type VolumeWorld, volumeWorld } from '../../testing/volume-world.ts'

const [first, second] = ['1', '2'].map((digit) => `${digit.repeat(8)}-1111-4111-8111-111111111111`)
const { status: _, metadata: __, ...sent } = aStoredClaim('data', { spec: { storageClassName: 'local-path' } })
const { selectedNode } = volumeAnnotations

async function aWorld(t: Parameters<typeof volumeWorld>[0]) {
  const world = volumeWorld(t)
  world.start()
  const options = { provisioner: 'bramble.dev/local-path', volumeBindingMode: 'WaitForFirstConsumer' } as const
  await world.add('storageclasses', aStorageClass('local-path', options))
  return world
}

async function addNode({ store }: VolumeWorld, name: string, ...ids: readonly (string | undefined)[]) {
  const pools = ids.map((id) => ({ id, path: '/pool' }))
  const { metadata, ...node } = aNode({ name, annotations: { [poolsAnnotation]: JSON.stringify(pools) } })
  const { uid: _uid, resourceVersion: _version, ...own } = metadata
  await store.create('nodes', { ...node, metadata: own })
}

const poolsOf = async ({ store }: VolumeWorld, name: string) =>
  Object.keys((await store.get('nodes', { namespace: '', name }))?.metadata.labels ?? {}).flatMap((label) =>
    label.startsWith('pool.bramble.dev/') ? [label.slice('pool.bramble.dev/'.length)] : [],
  )

const select = ({ store, clock }: VolumeWorld, nodeName: string) =>
  rewrite({ store, clock }, 'persistentvolumeclaims', {
    key: { namespace: 'default', name: 'data' },
    change: (claim) => ({
      ...claim,
      metadata: { ...claim.metadata, annotations: { ...claim.metadata.annotations, [selectedNode]: nodeName } },
    }),
  })

test('a claim is bound to a volume in the pool of its node once that is selected', async (t) => {
  const world = await aWorld(t)
  await addNode(world, 'pi-1', first)
  await world.add('persistentvolumeclaims', { ...sent, metadata: { namespace: 'default', name: 'data' } })
  await world.settle()
  t.same(await poolsOf(world, 'pi-1'), [first])
  t.match(await world.claim('data'), { status: { phase: 'Pending' } })
  await select(world, 'pi-1')
  await world.settle(500)
  const claim = await world.claim('data')
  const name = `pvc-${claim?.metadata.uid}`
  t.match(claim, { spec: { volumeName: name }, status: { phase: 'Bound' } })
  t.match(await world.volume(name), {
    spec: { local: { path: `/pool/default_data_${name}` } },
    status: { phase: 'Bound' },
  })
  t.ok((await world.events('data')).includes(`ProvisioningSucceeded Successfully provisioned volume ${name}`))
})

test('a claim that was given a node without a pool is placed again', async (t) => {
  const world = await aWorld(t)
  await addNode(world, 'pi-1')
  await world.add('persistentvolumeclaims', { ...sent, metadata: { namespace: 'default', name: 'data' } })
  await select(world, 'pi-1')
  await world.settle(500)
  t.notOk(selectedNode in ((await world.claim('data'))?.metadata.annotations ?? {}))
  const because = 'failed to provision volume with StorageClass "local-path": node "pi-1" has no pool for volumes'
  t.ok((await world.events('data')).includes(`ProvisioningFailed ${because}`))
})

test('a claim of a class on a share is bound to a folder there, and the volume goes after the claim', async (t) => {
  const world = await aWorld(t)
  const parameters = { server: '10.0.0.5', share: '/export' }
  await world.add('storageclasses', aStorageClass('nas', { provisioner: 'bramble.dev/nfs', parameters }))
  const spec = { ...sent.spec, storageClassName: 'nas' }
  await world.add('persistentvolumeclaims', { ...sent, spec, metadata: { namespace: 'default', name: 'photos' } })
  await world.settle(500)
  const claim = await world.claim('photos')
  const name = `pvc-${claim?.metadata.uid}`
  t.match(claim, { spec: { volumeName: name }, status: { phase: 'Bound' } })
  t.match(await world.volume(name), { spec: { nfs: { server: '10.0.0.5', path: '/export/default/photos' } } })
  await world.store.delete('persistentvolumeclaims', { namespace: 'default', name: 'photos' })
  await world.settle(500)
  t.equal(await world.volume(name), undefined, 'the folder stays on the share')
})

test('a node has the labels of the pools that it reports, whatever it was given before', async (t) => {
  const world = await aWorld(t)
  const { metadata, ...node } = aNode({ name: 'pi-1', labels: { [`pool.bramble.dev/${first}`]: '', site: 'a' } })
  const { uid: _uid, resourceVersion: _version, ...own } = metadata
  await world.store.create('nodes', { ...node, metadata: own })
  await world.settle()
  t.same(await poolsOf(world, 'pi-1'), [])
})

test('a pool stays with its node until that no longer reports it', async (t) => {
  const world = await aWorld(t)
  await addNode(world, 'pi-1', first, second)
  await world.settle()
  await addNode(world, 'pi-2', first)
  await world.settle()
  t.same([await poolsOf(world, 'pi-1'), await poolsOf(world, 'pi-2')], [[first, second], []])
  const pools = JSON.stringify([{ id: second, path: '/pool' }])
  await rewrite(world, 'nodes', {
    key: { namespace: '', name: 'pi-1' },
    change: (node) => ({ ...node, metadata: { ...node.metadata, annotations: { [poolsAnnotation]: pools } } }),
  })
  await world.settle(500)
  t.same([await poolsOf(world, 'pi-1'), await poolsOf(world, 'pi-2')], [[second], [first]])
})

test('a claim of a class that binds at once has its volume before its pod is placed, where most is free', async (t) => {
  const world = volumeWorld(t)
  world.start()
  const atOnce = { provisioner: 'bramble.dev/local-path', volumeBindingMode: 'Immediate' } as const
  await world.add('storageclasses', aStorageClass('local-path', atOnce))
  await addNode(world, 'pi-1', first)
  await addNode(world, 'pi-2', second)
  for (const [node, id, availableBytes] of [
    ['pi-1', first, 10],
    ['pi-2', second, 20],
  ] as const)
    world.storage.receive(node, {
      done: [],
      refused: [],
      pools: [{ id: id ?? '', capacityBytes: 100, availableBytes }],
    })
  await world.settle()
  await world.add('persistentvolumeclaims', { ...sent, metadata: { namespace: 'default', name: 'data' } })
  await world.settle(500)
  const claim = await world.claim('data')
  t.match(claim, { status: { phase: 'Bound' } })
  t.match(await world.volume(claim?.spec?.volumeName ?? ''), {
    metadata: { annotations: { 'bramble.dev/pool': second } },
  })
})
