import { test } from 'tap'
import { volumeAnnotations } from '../../../api/storage/volume-names.ts'
import { aStoredClaim, aStoredVolume, claimRefTo } from '../../testing/volume-objects.ts'
import { binderKeys, readKey, textOfKey } from './binder-keys.ts'

const texts = (keys: readonly Parameters<typeof textOfKey>[0][]) => keys.map(textOfKey).sort()

test('a change of a volume visits it, the claims that name it, and those of its class while it is free', async (t) => {
  const keys = binderKeys()
  const named = aStoredClaim('named', { spec: { volumeName: 'disk' } })
  t.same(texts(keys.ofClaim(named, undefined)), ['claim default/named', 'volume disk'])
  const free = aStoredVolume('disk', { spec: { storageClassName: 'fixed' }, status: { phase: 'Available' } })
  t.same(texts(keys.ofVolume(free, undefined)), ['claim default/named', 'volume disk', 'waiting fixed'])
  const taken = aStoredVolume('disk', { spec: { storageClassName: 'fixed', claimRef: claimRefTo('other') } })
  t.same(texts(keys.ofVolume(taken, free)), [
    'claim default/named',
    'claim default/named',
    'claim default/other',
    'volume disk',
  ])
})

test('a claim or a volume that is gone is visited as well: what is remembered of it is forgotten', async (t) => {
  const keys = binderKeys()
  const [claim, volume] = [aStoredClaim('data'), aStoredVolume('disk')]
  keys.ofClaim(claim, undefined)
  keys.ofVolume(volume, undefined)
  t.same(texts(keys.ofClaim(undefined, claim)), ['claim default/data'])
  t.same(texts(keys.ofVolume(undefined, volume)), ['volume disk'])
  t.same([...keys.waiting('')], [])
})

test('the claims of a class that wait, and those of a node that was selected, are found by it', async (t) => {
  const keys = binderKeys()
  const annotations = { [volumeAnnotations.selectedNode]: 'pi-1' }
  const claim = aStoredClaim('data', { metadata: { annotations }, spec: { storageClassName: 'late' } })
  keys.ofClaim(claim, undefined)
  t.same([...keys.waiting('late')], ['default/data'])
  t.same(texts(keys.ofNode('pi-1')), ['claim default/data'])
  keys.ofClaim(aStoredClaim('data', { spec: { storageClassName: 'late', volumeName: 'disk' } }), claim)
  t.same([[...keys.waiting('late')], texts(keys.ofNode('pi-1'))], [[], []])
})

test('a key is read as it was written', async (t) => {
  for (const key of [
    { kind: 'claim', key: 'default/data' },
    { kind: 'waiting', key: '' },
  ] as const) {
    t.same(readKey(textOfKey(key)), key)
  }
})
