import { test } from 'tap'
import { volumeDataFinalizer } from '../../../api/storage/volume-orders.ts'
import { rewrite } from '../../store/rewrite.ts'
import { aStoredClaim, aStoredVolume, claimRefTo } from '../../testing/volume-objects.ts'
import { volumeWorld } from '../../testing/volume-world.ts'
import { nextExpansion } from './local-expander.ts'

const annotations = { 'pv.kubernetes.io/provisioned-by': 'bramble.dev/local-path', 'bramble.dev/pool': 'p' }
const claimOf = (request: string, has: string | undefined) =>
  aStoredClaim('data', {
    spec: { volumeName: 'v', resources: { requests: { storage: request } } },
    status: { phase: 'Bound', ...(has !== undefined && { capacity: { storage: has } }) },
  })
const volumeOf = (storage: string, given: object = annotations) =>
  aStoredVolume('v', {
    metadata: { annotations: { ...given }, finalizers: [volumeDataFinalizer] },
    spec: { local: { path: '/pool/v' }, capacity: { storage }, claimRef: claimRefTo('data', 'uid-data') },
    status: { phase: 'Bound' },
  })

test('the volume grows first, then its claim', async (t) => {
  t.match(nextExpansion(claimOf('2Gi', '1Gi'), volumeOf('1Gi')), {
    resource: 'persistentvolumes',
    object: { spec: { capacity: { storage: '2Gi' } } },
  })
  t.match(nextExpansion(claimOf('2Gi', '1Gi'), volumeOf('2Gi')), {
    resource: 'persistentvolumeclaims',
    part: 'status',
    object: { status: { capacity: { storage: '2Gi' } } },
  })
  t.equal(nextExpansion(claimOf('2Gi', '2Gi'), volumeOf('2Gi')), undefined)
})

test('a claim that is not bound, and a volume of another provisioner, do not grow', async (t) => {
  const { status: _, ...unbound } = claimOf('2Gi', '1Gi')
  t.equal(nextExpansion({ ...unbound, status: { phase: 'Pending' } }, volumeOf('1Gi')), undefined)
  t.equal(nextExpansion(claimOf('2Gi', '1Gi'), volumeOf('1Gi', {})), undefined)
  const { local: _local, ...spec } = volumeOf('2Gi', {}).spec ?? {}
  t.equal(nextExpansion(claimOf('2Gi', '1Gi'), { ...volumeOf('2Gi', {}), spec }), undefined, 'its node expands it')
  t.equal(nextExpansion(claimOf('2Gi', '1Gi'), undefined), undefined)
  t.equal(nextExpansion(claimOf('2Gi', undefined), volumeOf('1Gi')), undefined, 'the binder writes the first capacity')
  t.equal(nextExpansion(claimOf('1Gi', '2Gi'), volumeOf('2Gi')), undefined)
  const share = volumeOf('1Gi', { 'pv.kubernetes.io/provisioned-by': 'bramble.dev/nfs' })
  t.match(nextExpansion(claimOf('2Gi', '1Gi'), share), { resource: 'persistentvolumes' }, 'a share has no size, either')
})

test('a local volume that its owner has made larger gives its claim the capacity, also a block device', async (t) => {
  const block = (storage: string, more: object = {}) => {
    const volume = volumeOf(storage, {})
    return { ...volume, spec: { ...volume.spec, volumeMode: 'Block', ...more } }
  }
  const write = nextExpansion(claimOf('1Gi', '1Gi'), block('2Gi'))
  t.match(write, { resource: 'persistentvolumeclaims', part: 'status', object: { status: { phase: 'Bound' } } })
  t.same(write?.object.status, { phase: 'Bound', capacity: { storage: '2Gi' }, conditions: [] })
  t.match(nextExpansion(claimOf('1Gi', '1Gi'), volumeOf('2Gi', {})), { resource: 'persistentvolumeclaims' })
  t.equal(nextExpansion(claimOf('1Gi', '2Gi'), block('1Gi')), undefined, 'it never becomes smaller')
  t.equal(nextExpansion(claimOf('1Gi', undefined), block('2Gi')), undefined, 'the binder writes the first capacity')
  const other = block('2Gi', { claimRef: claimRefTo('data', 'another') })
  t.equal(nextExpansion(claimOf('1Gi', '1Gi'), other), undefined)

  const directed = (step: string, allocated: object = { allocatedResources: { storage: '2Gi' } }) => {
    const claim = claimOf('2Gi', '1Gi')
    const conditions = ['FileSystemResizePending', 'Unused'].map((type) => ({ type, status: 'True' }))
    const allocatedResourceStatuses = { storage: step, other: 'x' }
    return { ...claim, status: { ...claim.status, conditions, allocatedResourceStatuses, ...allocated } }
  }
  t.match(nextExpansion(directed('NodeResizePending'), block('3Gi'))?.object.status, {
    capacity: { storage: '2Gi' },
    conditions: [{ type: 'Unused' }],
    allocatedResourceStatuses: { other: 'x', storage: undefined },
  })
  t.equal(nextExpansion(directed('ControllerResizeInProgress'), block('3Gi')), undefined, 'its controller works on it')
  t.equal(nextExpansion(directed('NodeResizePending', {}), block('3Gi')), undefined)
})

test('a claim follows its local volume when that is made larger, with an Event', async (t) => {
  const world = volumeWorld(t)
  const { store, clock } = world
  world.start()
  const { metadata: _, status: __, ...volume } = volumeOf('1Gi', {})
  await store.create('persistentvolumes', { ...volume, metadata: { name: 'v' } })
  const { status: ___, metadata: ____, ...claim } = claimOf('1Gi', undefined)
  await world.add('persistentvolumeclaims', { ...claim, metadata: { namespace: 'default', name: 'data' } })
  const claimRef = claimRefTo('data', (await world.claim('data'))?.metadata.uid ?? '')
  for (const storage of ['1Gi', '2Gi']) {
    await rewrite({ store, clock }, 'persistentvolumes', {
      key: { namespace: '', name: 'v' },
      change: (found) => ({ ...found, spec: { ...found.spec, claimRef, capacity: { storage } } }),
    })
    await world.settle(500)
  }
  t.match(await world.claim('data'), { status: { capacity: { storage: '2Gi' } } })
  const grown = 'FileSystemResizeSuccessful MountVolume.NodeExpandVolume succeeded for volume "v"'
  t.same(
    (await world.events('data')).filter((event) => event.includes('Resize') || event.includes('Expand')),
    [grown],
  )
})

test('a claim whose volume others expand waits for them, with one Event for each size', async (t) => {
  const world = volumeWorld(t)
  const { store, clock } = world
  world.start()
  const { metadata: _, status: __, ...volume } = volumeOf('1Gi', {})
  await store.create('persistentvolumes', { ...volume, metadata: { name: 'v' } })
  const { status: ___, metadata: ____, ...claim } = claimOf('1Gi', undefined)
  await world.add('persistentvolumeclaims', { ...claim, metadata: { namespace: 'default', name: 'data' } })
  const uid = (await world.claim('data'))?.metadata.uid ?? ''
  await rewrite({ store, clock }, 'persistentvolumes', {
    key: { namespace: '', name: 'v' },
    change: (found) => ({ ...found, spec: { ...found.spec, claimRef: claimRefTo('data', uid) } }),
  })
  await world.settle(500)
  for (const label of ['a', 'b']) {
    await rewrite({ store, clock }, 'persistentvolumeclaims', {
      key: { namespace: 'default', name: 'data' },
      change: (found) => ({
        ...found,
        metadata: { ...found.metadata, labels: { label } },
        spec: { ...found.spec, resources: { requests: { storage: '5Gi' } } },
      }),
    })
    await world.settle(500)
  }
  const waiting = 'ExternalExpanding waiting for an external controller to expand this PVC'
  t.same(
    (await world.events('data')).filter((event) => event === waiting),
    [waiting],
  )
  t.match(await world.claim('data'), { status: { capacity: { storage: '1Gi' } } })
})

test('a bound claim that requests more has it at once, with an Event', async (t) => {
  const world = volumeWorld(t)
  const { store, clock } = world
  world.start()
  const { metadata, status: _, ...volume } = volumeOf('1Gi')
  await store.create('persistentvolumes', {
    ...volume,
    metadata: { name: 'v', annotations: metadata.annotations ?? {} },
  })
  const { status: __, metadata: ___, ...claim } = claimOf('1Gi', undefined)
  await world.add('persistentvolumeclaims', { ...claim, metadata: { namespace: 'default', name: 'data' } })
  const uid = (await world.claim('data'))?.metadata.uid ?? ''
  await rewrite({ store, clock }, 'persistentvolumes', {
    key: { namespace: '', name: 'v' },
    change: (found) => ({ ...found, spec: { ...found.spec, claimRef: claimRefTo('data', uid) } }),
  })
  await world.settle(500)
  t.match(await world.claim('data'), { status: { phase: 'Bound', capacity: { storage: '1Gi' } } })
  await rewrite({ store, clock }, 'persistentvolumeclaims', {
    key: { namespace: 'default', name: 'data' },
    change: (found) => ({ ...found, spec: { ...found.spec, resources: { requests: { storage: '5Gi' } } } }),
  })
  await world.settle(500)
  t.match(await world.volume('v'), { spec: { capacity: { storage: '5Gi' } } })
  t.match(await world.claim('data'), { status: { capacity: { storage: '5Gi' } } })
  const expanded = 'VolumeResizeSuccessful ExpandVolume succeeded for volume default/data'
  t.ok((await world.events('data')).includes(expanded))
})
