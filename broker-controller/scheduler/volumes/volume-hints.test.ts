import { test } from 'tap'
import { aPod } from '../../../api/testing/builders.ts'
import { aClusterWithVolumes, delayedClasses, storedClass, using } from '../../testing/pods-with-claims.ts'
import { aStoredClaim, aStoredVolume, claimRefTo } from '../../testing/volume-objects.ts'
import type { Plugin } from '../filter.ts'
import { type ClusterChange, mayFit } from '../hints.ts'

const known = aClusterWithVolumes({
  claims: [
    aStoredClaim('data', { spec: { storageClassName: 'late' } }),
    aStoredClaim('bound', { spec: { volumeName: 'disk' } }),
  ],
})
const pod = aPod({ spec: using('data') })

const helps = (change: ClusterChange, refusedBy: Plugin = 'VolumeBinding', waiting = pod) =>
  mayFit({ pod: waiting, refusedBy: new Set([refusedBy]) }, change, known)

test('a claim helps the pods that use it', async (t) => {
  const claim = (name: string): ClusterChange => ({ change: 'claim', claim: aStoredClaim(name) })
  t.ok(helps(claim('data')))
  t.ok(helps(claim('data'), 'VolumeRestrictions'))
  t.notOk(helps(claim('data'), 'NodeResourcesFit'), 'its volumes did not keep it out')
  t.notOk(helps(claim('other')))
  t.notOk(helps(claim('data'), 'VolumeBinding', aPod({ namespace: 'another', spec: using('data') })))
  const ephemeral = aPod({ name: 'web', spec: { volumes: [{ name: 'tmp', ephemeral: {} }] } })
  t.ok(helps(claim('web-tmp'), 'VolumeBinding', ephemeral))
})

test('a volume helps the pods whose claims have it or may get it', async (t) => {
  const volume = (name: string, spec: Parameters<typeof aStoredVolume>[1]): ClusterChange => {
    return { change: 'volume', volume: aStoredVolume(name, spec) }
  }
  const holder = aPod({ spec: using('bound') })
  t.ok(helps(volume('any', { spec: { storageClassName: 'late' } })))
  t.notOk(helps(volume('any', { spec: { storageClassName: 'other' } })))
  t.ok(helps(volume('any', { spec: { storageClassName: 'other', claimRef: claimRefTo('data') } })))
  t.notOk(helps(volume('any', { spec: { storageClassName: 'late', claimRef: claimRefTo('other') } })))
  t.ok(helps(volume('disk', {}), 'VolumeZone', holder), 'it was missing, or was in another zone')
  t.notOk(helps(volume('other', {}), 'VolumeZone', holder))
})

test('a storage class helps the pods whose claims name it', async (t) => {
  const [late] = delayedClasses()
  if (late === undefined) throw new Error('no class')
  t.ok(helps({ change: 'storage class', storageClass: late }))
  t.notOk(helps({ change: 'storage class', storageClass: storedClass('other', {}) }))
})

test('a pod that goes helps those that wait for its claim', async (t) => {
  const gone = (claimName: string, namespace = 'default'): ClusterChange => {
    return { change: 'pod gone', nodeName: 'a', pod: aPod({ name: 'first', namespace, spec: using(claimName) }) }
  }
  t.ok(helps(gone('data'), 'VolumeRestrictions'))
  t.notOk(helps(gone('data'), 'VolumeBinding'))
  t.notOk(helps(gone('other'), 'VolumeRestrictions'))
  t.notOk(helps(gone('data', 'another'), 'VolumeRestrictions'))
})
