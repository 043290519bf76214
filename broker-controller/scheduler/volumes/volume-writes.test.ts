import { type Test, test } from 'tap'
import { volumeAnnotations } from '../../../api/storage/volume-names.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { memoryStore } from '../../store/memory-store.ts'
import { aStoredClaim, aStoredVolume } from '../../testing/volume-objects.ts'
import type { KnownClaim, KnownVolume } from './volume-cache.ts'
import { writeChoice } from './volume-writes.ts'

const { selectedNode } = volumeAnnotations

async function worldWith(t: Test) {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  const { metadata: ofClaim, ...claimParts } = aStoredClaim('data', { spec: { storageClassName: 'fixed' } })
  const { metadata: ofVolume, ...volumeParts } = aStoredVolume('disk', { spec: { storageClassName: 'fixed' } })
  const claim = await store.create('persistentvolumeclaims', {
    ...claimParts,
    metadata: { name: ofClaim.name, namespace: 'default' },
  })
  const volume = await store.create('persistentvolumes', { ...volumeParts, metadata: { name: ofVolume.name } })
  return {
    ...{ store, claim, volume },
    bind: () => writeChoice({ store, clock }, { bindings: [{ claim, volume }], provisions: [] }, 'a'),
    provision: (nodeName: string) => writeChoice({ store, clock }, { bindings: [], provisions: [claim] }, nodeName),
    changeVolume: (change: Partial<KnownVolume>) => store.update('persistentvolumes', { ...volume, ...change }),
    changeClaim: (change: Partial<KnownClaim>) => store.update('persistentvolumeclaims', { ...claim, ...change }),
    volumeNow: () => store.get('persistentvolumes', { namespace: '', name: 'disk' }),
    claimNow: () => store.get('persistentvolumeclaims', { namespace: 'default', name: 'data' }),
    refuses: (write: Promise<unknown>, message: string) => t.rejects(write, { message }),
  }
}

test('a chosen volume names its claim, and is written once', async (t) => {
  const world = await worldWith(t)
  const versions = await world.bind()
  const now = await world.volumeNow()
  t.match(now?.spec?.claimRef, { kind: 'PersistentVolumeClaim', name: 'data', uid: world.claim.metadata.uid })
  t.equal(versions.get(world.volume.metadata.uid), Number(now?.metadata.resourceVersion))
  t.equal((await world.bind()).size, 0, 'nothing is left to write')
  t.same(await world.volumeNow(), now)
})

test('a volume that another claim has by now is not taken from it', async (t) => {
  const world = await worldWith(t)
  await world.changeVolume({ spec: { ...world.volume.spec, claimRef: { namespace: 'default', name: 'other' } } })
  await world.refuses(world.bind(), 'persistentvolume "disk" was changed and is no longer available for "data"')
  t.equal((await world.volumeNow())?.spec?.claimRef?.name, 'other')
})

test('the node of a claim is written once, and never changed to another one', async (t) => {
  const world = await worldWith(t)
  await world.provision('a')
  t.equal((await world.claimNow())?.metadata.annotations?.[selectedNode], 'a')
  t.equal((await world.provision('a')).size, 0)
  const text = 'persistentvolumeclaim "data" was changed and can no longer be provisioned on node "b"'
  await world.refuses(world.provision('b'), text)
  t.equal((await world.claimNow())?.metadata.annotations?.[selectedNode], 'a')
})

test('no volume is made for a claim that has one by now, and none for a claim of the same name', async (t) => {
  const world = await worldWith(t)
  await world.changeClaim({ spec: { ...world.claim.spec, volumeName: 'disk' } })
  const text = 'persistentvolumeclaim "data" was changed and can no longer be provisioned on node "a"'
  await world.refuses(world.provision('a'), text)
  await world.store.delete('persistentvolumeclaims', { namespace: 'default', name: 'data' }, {})
  const { metadata: _, ...parts } = world.claim
  await world.store.create('persistentvolumeclaims', { ...parts, metadata: { name: 'data', namespace: 'default' } })
  t.equal((await world.provision('a')).size, 0)
  t.equal((await world.claimNow())?.metadata.annotations, undefined)
})
