import { test } from 'tap'
import { volumeAnnotations } from '../../../api/storage/volume-names.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { using } from '../../testing/pods-with-claims.ts'
import { aStoredClaim, aStoredVolume, claimRefTo } from '../../testing/volume-objects.ts'
import { boundVolume, isFullyBound, type KnownVolume, usesClaims, volumeCache } from './volume-cache.ts'

const { bindCompleted, boundByController, selectedNode } = volumeAnnotations
const inClass = (name: string, storageClassName: string) => aStoredVolume(name, { spec: { storageClassName } })

test('volumes are listed by their class, also after that changed', async (t) => {
  const cache = volumeCache()
  const names = (className: string) => [...cache.volumesOfClass(className)].map(({ metadata }) => metadata.name)
  cache.putVolume('a', inClass('a', 'fixed'))
  cache.putVolume('b', inClass('b', 'fixed'))
  cache.putVolume('c', aStoredVolume('c'))
  t.same([names('fixed'), names(''), names('late')], [['a', 'b'], ['c'], []])
  cache.putVolume('a', inClass('a', 'late'))
  t.same([names('fixed'), names('late')], [['b'], ['a']])
  cache.putVolume('b', undefined)
  t.same([names('fixed'), cache.volume('b')], [[], undefined])
})

test('a claim is used while any pod on a node names it, in the namespace of the pod', async (t) => {
  const cache = volumeCache()
  const users = (key: string) => [...cache.usersOf(key)]
  const [web, db] = ['web', 'db'].map((name) => aPod({ name, spec: using('data') }))
  const own = aPod({ name: 'job', namespace: 'batch', spec: { volumes: [{ name: 'tmp', ephemeral: {} }] } })
  if (web === undefined || db === undefined) throw new Error('no pods')
  for (const pod of [web, db, own, aPod()]) cache.enter(pod)
  t.same([users('default/data'), users('batch/job-tmp')], [['default/web', 'default/db'], ['batch/job']])
  t.same([cache.isClaimUsed('default/data'), cache.isClaimUsed('batch/data')], [true, false])
  cache.leave(web)
  cache.leave(web)
  t.same([users('default/data'), cache.isClaimUsed('default/data')], [['default/db'], true])
  for (const pod of [db, own, aPod()]) cache.leave(pod)
  t.same([cache.isClaimUsed('default/data'), cache.isClaimUsed('batch/job-tmp')], [false, false])
})

test('a promised volume has the claim in it until each pod that it was promised to is released', async (t) => {
  const cache = volumeCache()
  const [claim, volume] = [aStoredClaim('data'), aStoredVolume('disk')]
  cache.putVolume('disk', volume)
  const refOf = () => cache.volume('disk')?.spec?.claimRef?.name
  for (const pod of ['default/one', 'default/two']) {
    cache.promise(pod, { bindings: [{ claim, volume }], provisions: [] }, 'a')
  }
  t.same([refOf(), cache.stored.volume('disk')], ['data', volume], 'what is stored is not changed')
  cache.release('default/one')
  cache.release('default/one')
  t.equal(refOf(), 'data')
  cache.release('default/two')
  t.equal(refOf(), undefined)
  cache.putVolume('disk', undefined)
  cache.promise('default/one', { bindings: [{ claim, volume }], provisions: [] }, 'a')
  t.equal(cache.volume('disk'), undefined, 'a volume that is gone is not there for a promise')
})

test('a promise does not take a volume from the claim that has it', async (t) => {
  const claim = aStoredClaim('data')
  const cases: readonly (readonly [string, claimRef: ReturnType<typeof claimRefTo> | undefined, uid?: string])[] = [
    ['free', undefined, 'uid-data'],
    ['reserved by name', claimRefTo('data', ''), 'uid-data'],
    ['reserved for another', claimRefTo('other', ''), undefined],
    ['bound to another', claimRefTo('other'), 'uid-other'],
    ['bound to an earlier claim of the name', claimRefTo('data', 'older'), 'older'],
    ['bound to it', claimRefTo('data'), 'uid-data'],
  ]
  for (const [title, claimRef, uid] of cases) {
    const cache = volumeCache()
    const volume = aStoredVolume('disk', { spec: { ...(claimRef && { claimRef }) } })
    cache.putVolume('disk', volume)
    cache.promise('default/a-pod', { bindings: [{ claim, volume }], provisions: [] }, 'a')
    t.equal(cache.volume('disk')?.spec?.claimRef?.uid, uid, title)
  }
})

test('a claim for which a volume is to be made is meant for the node of the pod', async (t) => {
  const cache = volumeCache()
  const claim = aStoredClaim('data')
  cache.putClaim('default/data', claim)
  const nodeOf = () => cache.claim('default/data')?.metadata.annotations?.[selectedNode]
  cache.promise('default/one', { bindings: [], provisions: [claim] }, 'a')
  t.same([nodeOf(), cache.stored.claim('default/data')], ['a', claim])
  cache.promise('default/two', { bindings: [], provisions: [claim] }, 'a')
  cache.release('default/one')
  t.equal(nodeOf(), 'a')
  cache.release('default/two')
  t.equal(nodeOf(), undefined)
  cache.putClaim('default/data', undefined)
  t.equal(cache.claim('default/data'), undefined)
})

test('a claim is bound when it names its volume and the binder has confirmed that', async (t) => {
  const annotations = { [bindCompleted]: 'yes' }
  t.equal(isFullyBound(aStoredClaim('data', { metadata: { annotations }, spec: { volumeName: 'disk' } })), true)
  t.equal(isFullyBound(aStoredClaim('data', { spec: { volumeName: 'disk' } })), false, 'named by a person')
  t.equal(isFullyBound(aStoredClaim('data', { metadata: { annotations } })), false)
  t.equal(isFullyBound(aStoredClaim('data', { metadata: { annotations }, spec: { volumeName: '' } })), false)
})

test('a volume that a person reserved is not marked as chosen by a controller', async (t) => {
  const claim = aStoredClaim('data')
  const { kind, apiVersion, namespace } = claimRefTo('data')
  const [free, reserved] = [
    aStoredVolume('disk'),
    aStoredVolume('disk', { spec: { claimRef: claimRefTo('data', '') } }),
  ]
  const annotated = (volume: KnownVolume) => boundVolume(volume, claim).metadata.annotations?.[boundByController]
  t.same([annotated(free), annotated(reserved)], ['yes', undefined])
  t.match(boundVolume(free, claim).spec?.claimRef, { kind, apiVersion, namespace, name: 'data', uid: 'uid-data' })
})

test('pods use claims by name, or have them made', async (t) => {
  t.equal(usesClaims(aPod()), false)
  t.equal(usesClaims(aPod({ spec: { volumes: [{ name: 'tmp', emptyDir: {} }] } })), false)
  t.equal(usesClaims(aPod({ spec: using('data') })), true)
  t.equal(usesClaims(aPod({ spec: { volumes: [{ name: 'tmp', ephemeral: {} }] } })), true)
})
