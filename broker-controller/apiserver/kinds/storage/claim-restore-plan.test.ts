import { test } from 'tap'
import { learntFromAnnotation } from '../../../../api/node/node-checkpoint.ts'
import type { PersistentVolume } from '../../../../api/storage/persistent-volume.ts'
import type { PersistentVolumeClaim } from '../../../../api/storage/persistent-volume-claim.ts'
import { aStoredClaim, aStoredVolume, claimRefTo } from '../../../testing/volume-objects.ts'
import { planClaimRestore } from './claim-restore-plan.ts'

const completed = { 'pv.kubernetes.io/bind-completed': 'yes' }
const at = (day: number) => `2026-01-0${day}T00:00:00Z`
const [sinceMs, afterLoss] = [Date.parse(at(5)), at(6)]

function aClaim(uid: string, day: number, volumeName = 'pv', more: object = {}): PersistentVolumeClaim {
  const annotations = volumeName === '' ? {} : completed
  const metadata = { uid, creationTimestamp: at(day), annotations: { ...annotations, ...more } }
  return aStoredClaim('db', { metadata, spec: { volumeName } })
}

function aVolume(spec: object = {}, metadata: object = {}): PersistentVolume {
  const given = { claimRef: claimRefTo('db', 'first'), persistentVolumeReclaimPolicy: 'Delete', ...spec }
  return aStoredVolume('pv', { metadata: { creationTimestamp: at(2), ...metadata }, spec: given })
}

const record = { claim: aClaim('first', 2), volume: aVolume() }
const plan = (claim?: PersistentVolumeClaim, volume?: PersistentVolume, of = record) =>
  planClaimRestore({ record: of, claim, volume, sinceMs })

test('a claim and a volume that the store lacks come back bound, with their uids', async (t) => {
  const both = plan()
  t.match(both, {
    claim: {
      step: 'create',
      object: { metadata: { uid: 'first' }, spec: { volumeName: 'pv' }, status: { phase: 'Bound' } },
    },
    volume: {
      step: 'create',
      object: {
        metadata: { uid: 'uid-pv' },
        spec: { claimRef: { uid: 'first' }, persistentVolumeReclaimPolicy: 'Delete' },
      },
    },
  })
  t.match(plan(aClaim('first', 2)), { claim: undefined, volume: { step: 'create' } }, 'its volume alone')
  t.match(plan(undefined, aVolume()), { claim: { step: 'create' }, volume: undefined }, 'its claim alone')
  t.same(plan(aClaim('first', 2), aVolume()), { plan: 'nothing' })
})

test('a claim and a volume that the backup has, but not bound, are bound to each other again', async (t) => {
  const free = aVolume({ claimRef: undefined })
  t.match(plan(aClaim('first', 2, ''), free), {
    claim: { step: 'write', object: { spec: { volumeName: 'pv' }, metadata: { annotations: completed } } },
    volume: { step: 'write', object: { spec: { claimRef: { uid: 'first' } } } },
  })
  t.match(plan(undefined, aVolume({ claimRef: undefined }, { uid: 'again' })), {
    ...{ claim: { step: 'create' }, volume: { step: 'write', object: { metadata: { uid: 'again' } } } },
  })
})

test('a volume that another claim has, or that is another one, is not given to the claim', async (t) => {
  const other = aVolume({ claimRef: claimRefTo('other', 'theirs') })
  t.match(plan(undefined, other), {
    plan: 'refuse',
    because: /"pv" is bound to the claim default\/other \(uid theirs\)/,
  })
  t.match(plan(undefined, aVolume({ claimRef: claimRefTo('db', 'second') })), { plan: 'refuse' }, 'of the same name')
  const elsewhere = aVolume({ claimRef: undefined, hostPath: { path: '/other' } }, { uid: 'again' })
  t.match(plan(undefined, elsewhere), { plan: 'refuse', because: /another volume with the name "pv" exists/ })
  t.match(plan(aClaim('first', 2, 'another')), { plan: 'refuse', because: /is bound to volume "another"/ })
})

test('of two claims with one name the later one comes back, and the data of the other stays', async (t) => {
  const earlier = aClaim('zero', 1, 'before')
  t.match(plan(earlier), {
    ...{
      claim: { step: 'replace', object: { metadata: { uid: 'first' } } },
      volume: { step: 'create' },
      retain: 'before',
    },
  })
  const sameVolume = aVolume({ claimRef: claimRefTo('db', 'zero') })
  t.match(plan(aClaim('zero', 1), sameVolume), {
    ...{ claim: { step: 'replace' }, volume: { step: 'write', object: { spec: { claimRef: { uid: 'first' } } } } },
    retain: undefined,
  })
  const later = aClaim('third', 3, 'after')
  t.match(plan(later), {
    claim: undefined,
    volume: {
      step: 'create',
      object: { spec: { claimRef: { uid: 'first' }, persistentVolumeReclaimPolicy: 'Retain' } },
    },
    note: /has the volume "after". Its volume "pv" stays by itself, with the policy Retain/,
  })
})

test('a claim that was made again after the loss gets the volume, if it has none', async (t) => {
  const again = (volumeName: string, more?: object) => ({
    ...aClaim('new', 6, volumeName, more),
  })
  t.equal(again('').metadata.creationTimestamp, afterLoss)
  t.match(plan(again('')), {
    claim: undefined,
    volume: { step: 'create', object: { spec: { claimRef: { uid: 'new' }, persistentVolumeReclaimPolicy: 'Retain' } } },
    note: /reserved for it/,
  })
  t.match(plan(again('fresh')), {
    claim: undefined,
    volume: {
      step: 'create',
      object: { spec: { claimRef: { uid: 'first' }, persistentVolumeReclaimPolicy: 'Retain' } },
    },
  })
  const fromNode = again('', { [learntFromAnnotation]: 'pi-2' })
  t.match(plan(fromNode), { volume: { object: { spec: { claimRef: { uid: 'first' } } } } }, 'not the claim of a node')
  t.match(
    plan(aClaim('third', 3, '')),
    { volume: { object: { spec: { claimRef: { uid: 'first' } } } } },
    'nor of the backup',
  )
  t.same(plan(again('pv'), aVolume({ claimRef: claimRefTo('db', 'first') })), { plan: 'nothing' })
})

test('a claim that was made in this store is not replaced by one of a node', async (t) => {
  const later = { claim: aClaim('late', 8), volume: aVolume({ claimRef: claimRefTo('db', 'late') }) }
  t.match(plan(aClaim('new', 6, 'fresh'), undefined, later), { claim: undefined, note: /has the volume "fresh"/ })
  t.match(plan(aClaim('learnt', 6, 'fresh', { [learntFromAnnotation]: 'pi-2' }), undefined, later), {
    claim: { step: 'replace' },
  })
})
