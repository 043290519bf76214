import { test } from 'tap'
import { volumeAnnotations } from '../../../api/storage/volume-names.ts'
import { aStorageClass, aStoredClaim, aStoredVolume, claimRefTo } from '../../testing/volume-objects.ts'
import { volumeWorld } from '../../testing/volume-world.ts'

const { boundByController } = volumeAnnotations
type Spec = NonNullable<Parameters<typeof aStoredClaim>[1]>['spec']

/** As their authors send them. */
const claim = (name: string, spec: Spec = {}) => {
  const { status: _, metadata: __, ...sent } = aStoredClaim(name, { spec })
  return { ...sent, metadata: { namespace: 'default', name } }
}
const volume = (name: string, given: Parameters<typeof aStoredVolume>[1] = {}) => {
  const { status: _, metadata: __, ...sent } = aStoredVolume(name, given)
  return { ...sent, metadata: { name, ...given.metadata } }
}

test('a claim and a volume are bound to each other, whichever comes first', async (t) => {
  const world = volumeWorld(t)
  world.start()
  await world.add('persistentvolumes', volume('disk'))
  await world.add('persistentvolumeclaims', claim('data'))
  await world.settle()
  t.match(await world.claim('data'), {
    spec: { volumeName: 'disk' },
    status: { phase: 'Bound', capacity: { storage: '1Gi' } },
  })
  t.match(await world.volume('disk'), { spec: { claimRef: { name: 'data' } }, status: { phase: 'Bound' } })
  await world.add('persistentvolumeclaims', claim('later'))
  await world.settle()
  t.match(await world.claim('later'), { status: { phase: 'Pending' } })
  t.same(await world.events('later'), [
    'FailedBinding no persistent volumes available for this claim and no storage class is set',
  ])
  await world.add('persistentvolumes', volume('second'))
  await world.settle()
  t.match(await world.claim('later'), { spec: { volumeName: 'second' }, status: { phase: 'Bound' } })
})

test('hundreds of binds wait together for a store that keeps statuses together', async (t) => {
  const count = 400
  const world = volumeWorld(t, {
    store: (store) => ({
      ...store,
      async updateStatus(resource, object) {
        await world.clock.sleep(100)
        return await store.updateStatus(resource, object)
      },
    }),
  })
  world.start()
  for (let at = 0; at < count; at++) await world.add('persistentvolumeclaims', claim(`c-${at}`))
  await world.settle(5_000)
  for (let at = 0; at < count; at++) await world.add('persistentvolumes', volume(`v-${at}`))
  const beganMs = world.clock.monotonicMs()
  const bound = async () =>
    (await world.store.list('persistentvolumeclaims')).items.filter(({ status }) => status?.phase === 'Bound').length
  while ((await bound()) < count && world.clock.monotonicMs() - beganMs < 10_000) await world.settle(100)
  const tookMs = world.clock.monotonicMs() - beganMs
  // Three statuses for each volume with its claim. Of 50 at once they take 2.4 s.
  t.ok(tookMs < 1_500, `${tookMs} ms`)
})

test('many claims share many volumes out among them, each the smallest that fits', async (t) => {
  const world = volumeWorld(t)
  world.start()
  const sizes = Array.from({ length: 60 }, (_, index) => `${index + 1}Gi`)
  for (const size of sizes) {
    await world.add(
      'persistentvolumeclaims',
      claim(`c-${size}`.toLowerCase(), { resources: { requests: { storage: size } } }),
    )
  }
  await world.settle()
  for (const size of sizes) {
    await world.add('persistentvolumes', volume(`v-${size}`.toLowerCase(), { spec: { capacity: { storage: size } } }))
  }
  await world.settle(1_000)
  const claims = (await world.store.list('persistentvolumeclaims')).items
  t.equal(claims.filter(({ status }) => status?.phase === 'Bound').length, 60)
  t.equal(new Set(claims.map(({ spec }) => spec?.volumeName)).size, 60)
})

test('a volume is released when its claim is gone, and bound again only after a person freed it', async (t) => {
  const world = volumeWorld(t)
  world.start()
  await world.add('persistentvolumes', volume('disk'))
  await world.add('persistentvolumeclaims', claim('data'))
  await world.settle()
  await world.remove('persistentvolumeclaims', 'data')
  await world.settle()
  t.equal(await world.claim('data'), undefined)
  t.match(await world.volume('disk'), { status: { phase: 'Released' } })
  await world.add('persistentvolumeclaims', claim('data'))
  await world.settle()
  t.match(
    await world.claim('data'),
    { status: { phase: 'Pending' } },
    'the data of the earlier claim is not given away',
  )
  const released = await world.volume('disk')
  const { claimRef: _, ...spec } = released?.spec ?? {}
  if (released) await world.store.update('persistentvolumes', { ...released, spec })
  await world.settle()
  t.match(await world.claim('data'), { spec: { volumeName: 'disk' }, status: { phase: 'Bound' } })
})

test('a claim that loses its volume is lost, and no longer when that comes back', async (t) => {
  const world = volumeWorld(t)
  world.start()
  await world.add('persistentvolumes', volume('disk'))
  await world.add('persistentvolumeclaims', claim('data'))
  await world.settle()
  const { uid = '' } = (await world.claim('data'))?.metadata ?? {}
  await world.store.delete('persistentvolumes', { namespace: '', name: 'disk' })
  await world.settle()
  t.match(await world.claim('data'), { status: { phase: 'Lost' } })
  t.same(await world.events('data'), [
    'ClaimLost Bound claim has lost its PersistentVolume. Data on the volume is lost!',
  ])
  await world.add('persistentvolumes', volume('disk', { spec: { claimRef: claimRefTo('data', uid) } }))
  await world.settle()
  t.match(await world.claim('data'), { status: { phase: 'Bound' } })
  t.match(await world.volume('disk'), { status: { phase: 'Bound' } })
})

test('a class that becomes the default one is given to claims that wait without a class', async (t) => {
  const world = volumeWorld(t)
  world.start()
  await world.add('persistentvolumeclaims', claim('data'))
  await world.add('persistentvolumeclaims', claim('never', { storageClassName: '' }))
  await world.settle()
  const annotations = { 'storageclass.kubernetes.io/is-default-class': 'true' }
  await world.add('storageclasses', aStorageClass('fast', { metadata: { name: 'fast', annotations } }))
  await world.settle()
  t.match(await world.claim('data'), {
    metadata: { annotations: { 'volume.kubernetes.io/storage-provisioner': 'example.com/disk' } },
    spec: { storageClassName: 'fast' },
  })
  t.match(await world.claim('never'), { spec: { storageClassName: '' } })
})

test('a claim of a class that waits is bound to the volume that the scheduler reserves', async (t) => {
  const world = volumeWorld(t)
  world.start()
  await world.add('storageclasses', aStorageClass('late', { volumeBindingMode: 'WaitForFirstConsumer' }))
  await world.add('persistentvolumes', volume('disk', { spec: { storageClassName: 'late' } }))
  await world.add('persistentvolumeclaims', claim('data', { storageClassName: 'late' }))
  await world.settle()
  await world.addPod('web', 'data', '')
  await world.settle()
  t.same(await world.events('data'), [
    'WaitForFirstConsumer waiting for first consumer to be created before binding',
    'WaitForPodScheduled waiting for pod web to be scheduled',
  ])
  const [disk, data] = [await world.volume('disk'), await world.claim('data')]
  if (disk === undefined || data === undefined) throw new Error('gone')
  const annotations = { [boundByController]: 'yes' }
  const claimRef = claimRefTo('data', data.metadata.uid)
  const reserved = { ...disk, metadata: { ...disk.metadata, annotations }, spec: { ...disk.spec, claimRef } }
  await world.store.update('persistentvolumes', reserved)
  await world.settle()
  t.match(await world.claim('data'), { spec: { volumeName: 'disk' }, status: { phase: 'Bound' } })
  t.match(await world.volume('disk'), { status: { phase: 'Bound' } })
})

test('a claim that the watch has not brought yet is not taken for one that is gone', async (t) => {
  let isBlind = true
  const world = volumeWorld(t, {
    store: (inner) => ({
      ...inner,
      async list(resource, namespace) {
        const listed = await inner.list(resource, namespace)
        return resource === 'persistentvolumeclaims' && isBlind ? { ...listed, items: [] } : listed
      },
    }),
  })
  await world.add('persistentvolumeclaims', claim('data', { volumeName: 'disk' }))
  const { uid } = (await world.claim('data'))?.metadata ?? {}
  await world.add('persistentvolumes', volume('disk', { spec: { claimRef: claimRefTo('data', uid) } }))
  const end = world.start()
  await world.settle(60_000)
  t.match(await world.volume('disk'), { status: { phase: 'Bound' } })
  await end()
  isBlind = false
  world.start()
  await world.settle()
  t.match(await world.claim('data'), { status: { phase: 'Bound' } })
})

test('after a restore nothing is released or lost until all may have come back', async (t) => {
  let isHeld = true
  const released: (() => void)[] = []
  const world = volumeWorld(t, {
    hold: {
      holds: () => isHeld,
      holdsPod: () => false,
      holdsUnbound: () => false,
      describe: () => undefined,
      onRelease: (listener) => void released.push(listener),
    },
  })
  const bound = { metadata: { annotations: { [volumeAnnotations.bindCompleted]: 'yes' } } }
  await world.store.create('persistentvolumes', {
    ...volume('disk', { spec: { claimRef: claimRefTo('gone') } }),
    status: { phase: 'Bound' },
  })
  const { uid: _, resourceVersion: __, ...metadata } = aStoredClaim('data', bound).metadata
  const data = { ...claim('data', { volumeName: 'missing' }), metadata, status: { phase: 'Bound' } }
  await world.store.create('persistentvolumeclaims', data)
  world.start()
  await world.settle(60_000)
  t.match(await world.volume('disk'), { status: { phase: 'Bound' } })
  t.match(await world.claim('data'), { status: { phase: 'Bound' } })
  isHeld = false
  for (const notify of released) notify()
  await world.settle()
  t.match(await world.volume('disk'), { status: { phase: 'Released' } })
  t.match(await world.claim('data'), { status: { phase: 'Lost' } })
})

test('after a restore what came unbound with the backup is bound to nothing else until its node may have returned it', async (t) => {
  let isHeld = true
  const released: (() => void)[] = []
  const world = volumeWorld(t, {
    hold: {
      holds: () => isHeld,
      holdsPod: () => false,
      holdsUnbound: ({ metadata }) => isHeld && (metadata.name ?? '').startsWith('old'),
      describe: () => undefined,
      onRelease: (listener) => void released.push(listener),
    },
  })
  world.start()
  await world.add('persistentvolumes', volume('old-disk'))
  await world.add('persistentvolumeclaims', claim('new-claim'))
  await world.settle(60_000)
  t.match(await world.claim('new-claim'), { status: { phase: 'Pending' } }, 'the volume may have another claim')
  await world.add('persistentvolumes', volume('new-disk'))
  await world.add('persistentvolumeclaims', claim('old-claim'))
  await world.settle(60_000)
  t.match(await world.claim('new-claim'), { spec: { volumeName: 'new-disk' } })
  t.match(await world.claim('old-claim'), { status: { phase: 'Pending' } })
  t.match((await world.events('old-claim')).join(), /^AcceptsCheckpoints the claim came with the backup/)
  const own = claimRefTo('old-own', '')
  await world.add('persistentvolumes', volume('old-own-disk', { spec: { claimRef: own } }))
  await world.add('persistentvolumeclaims', claim('old-own'))
  await world.settle()
  t.match(await world.claim('old-own'), { spec: { volumeName: 'old-own-disk' } }, 'it was reserved for it')
  isHeld = false
  for (const notify of released) notify()
  await world.settle()
  t.match(await world.claim('old-claim'), { spec: { volumeName: 'old-disk' }, status: { phase: 'Bound' } })
})

test('a claim that is deleted stays while a pod on a node uses it, and its volume while it is bound', async (t) => {
  const world = volumeWorld(t)
  world.start()
  await world.add('persistentvolumes', volume('disk'))
  await world.add('persistentvolumeclaims', claim('data'))
  await world.addPod('web', 'data', 'pi-01')
  await world.settle()
  await world.remove('persistentvolumes', 'disk')
  await world.remove('persistentvolumeclaims', 'data')
  await world.settle(60_000)
  t.ok((await world.claim('data'))?.metadata.deletionTimestamp)
  t.ok((await world.volume('disk'))?.metadata.deletionTimestamp)
  await world.store.delete('pods', { namespace: 'default', name: 'web' })
  await world.settle()
  t.equal(await world.claim('data'), undefined)
  t.equal(await world.volume('disk'), undefined)
})

test('objects from before they were protected are protected by the controllers', async (t) => {
  const world = volumeWorld(t)
  await world.store.create('persistentvolumeclaims', claim('data') as never)
  await world.store.create('persistentvolumes', volume('disk') as never)
  world.start()
  await world.settle()
  t.match(await world.claim('data'), { metadata: { finalizers: ['kubernetes.io/pvc-protection'] } })
  t.match(await world.volume('disk'), { metadata: { finalizers: ['kubernetes.io/pv-protection'] } })
})

test('what a claim waits for is recorded again before its Events are forgotten, and not at each visit', async (t) => {
  const world = volumeWorld(t)
  world.start()
  await world.add('persistentvolumeclaims', claim('data'))
  await world.settle()
  for (let index = 0; index < 20; index++) {
    await world.add('persistentvolumes', volume(`small-${index}`, { spec: { capacity: { storage: '1Mi' } } }))
    await world.settle()
  }
  const countOf = async () => (await world.store.list('events')).items.map(({ count }) => count)
  t.same(await countOf(), [1])
  await world.settle(11 * 60_000)
  t.same(await countOf(), [3])
})
