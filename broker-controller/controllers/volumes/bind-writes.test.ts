import { test } from 'tap'
import { volumeAnnotations } from '../../../api/storage/volume-names.ts'
import { aStoredClaim, aStoredVolume, claimRefTo } from '../../testing/volume-objects.ts'
import { claimPhase, nextBindWrite, type StoredClaim, unbinding, volumePhase } from './bind-writes.ts'
import type { StoredVolume } from './volume-index.ts'

const nowMs = Date.parse('2026-02-01T00:00:00Z')
const { bindCompleted, boundByController, preResizeCapacity } = volumeAnnotations

/** All writes from these objects on, each over what the ones before have made of them. */
function writesFrom(givenClaim: StoredClaim, givenVolume: StoredVolume) {
  let [claim, volume] = [givenClaim, givenVolume]
  const made: string[] = []
  for (;;) {
    const next = nextBindWrite(claim, volume, nowMs)
    if (next === undefined || made.length > 9) return { made, claim, volume }
    made.push(`${next.resource} ${next.part}`)
    if (next.resource === 'persistentvolumes') volume = next.object
    else claim = next.object
  }
}

test('a bind is four writes: the volume first, and each object before its status', async (t) => {
  const { made, claim, volume } = writesFrom(
    aStoredClaim('data'),
    aStoredVolume('disk', { spec: { capacity: { storage: '5Gi' } } }),
  )
  t.same(made, [
    'persistentvolumes whole',
    'persistentvolumes status',
    'persistentvolumeclaims whole',
    'persistentvolumeclaims status',
  ])
  t.match(volume, {
    metadata: { annotations: { [boundByController]: 'yes' } },
    spec: { claimRef: { ...claimRefTo('data'), resourceVersion: '1' } },
    status: { phase: 'Bound', lastPhaseTransitionTime: '2026-02-01T00:00:00Z' },
  })
  t.match(claim, {
    metadata: { annotations: { [boundByController]: 'yes', [bindCompleted]: 'yes' } },
    spec: { volumeName: 'disk' },
    status: { phase: 'Bound', accessModes: ['ReadWriteOnce'], capacity: { storage: '5Gi' } },
  })
})

test('what a person chose is not marked as chosen by the controller', async (t) => {
  const reserved = aStoredVolume('disk', { spec: { claimRef: claimRefTo('data', '') } })
  const byVolume = writesFrom(aStoredClaim('data'), reserved)
  t.notOk(byVolume.volume.metadata.annotations, 'the claimRef was there, without its uid')
  t.equal(byVolume.volume.spec?.claimRef?.uid, 'uid-data')
  t.equal(byVolume.claim.metadata.annotations?.[boundByController], 'yes')
  const byClaim = writesFrom(aStoredClaim('data', { spec: { volumeName: 'disk' } }), aStoredVolume('disk'))
  t.same(byClaim.claim.metadata.annotations, { [bindCompleted]: 'yes' })
  t.equal(byClaim.volume.metadata.annotations?.[boundByController], 'yes')
})

test('a bind that was cut off after any write is completed by the others', async (t) => {
  const whole = writesFrom(aStoredClaim('data'), aStoredVolume('disk'))
  let [claim, volume] = [aStoredClaim('data'), aStoredVolume('disk')]
  for (let cut = 0; cut <= 4; cut++) {
    const rest = writesFrom(claim, volume)
    t.same(rest.made, whole.made.slice(cut))
    t.same([rest.claim, rest.volume], [whole.claim, whole.volume])
    const next = nextBindWrite(claim, volume, nowMs)
    if (next?.resource === 'persistentvolumes') volume = next.object
    else if (next !== undefined) claim = next.object
  }
})

test('a bound claim keeps the capacity that its file system has, and one that grew before keeps the earlier one', async (t) => {
  const bound = aStoredClaim('data', {
    metadata: { annotations: { [bindCompleted]: 'yes' } },
    spec: { volumeName: 'disk' },
    status: { phase: 'Bound', accessModes: ['ReadWriteOnce'], capacity: { storage: '1Gi' } },
  })
  const larger = { spec: { capacity: { storage: '2Gi' }, claimRef: claimRefTo('data') }, status: { phase: 'Bound' } }
  t.same(writesFrom(bound, aStoredVolume('disk', larger)).made, [])
  const capacityOf = (annotations: { [name: string]: string }) =>
    writesFrom(aStoredClaim('data'), aStoredVolume('disk', { ...larger, metadata: { annotations } })).claim.status
      ?.capacity
  t.same(capacityOf({ [preResizeCapacity]: '1Gi' }), { storage: '1Gi' })
  t.same(capacityOf({ [preResizeCapacity]: 'much' }), { storage: '2Gi' })
})

test('a claim that is lost has neither access modes nor a capacity, and gets them back', async (t) => {
  const bound = { phase: 'Bound', accessModes: ['ReadWriteOnce'], capacity: { storage: '1Gi' } }
  const lost = claimPhase(aStoredClaim('data', { status: bound }), 'Lost')
  t.same(lost?.object.status, { phase: 'Lost' })
  t.equal(claimPhase(aStoredClaim('data', { status: { phase: 'Lost' } }), 'Lost'), undefined)
  t.same(
    claimPhase(aStoredClaim('data', { status: { phase: 'Lost' } }), 'Bound', aStoredVolume('disk'))?.object.status,
    bound,
  )
})

test('a volume that is taken from its claim stays reserved only if a person reserved it', async (t) => {
  const bound = { spec: { claimRef: claimRefTo('data') }, status: { phase: 'Bound' } }
  const byPerson = unbinding(aStoredVolume('disk', bound)).object
  t.match(byPerson, { spec: { claimRef: { name: 'data', uid: undefined } } })
  const chosen = { metadata: { annotations: { [boundByController]: 'yes' } }, ...bound }
  const byController = unbinding(aStoredVolume('disk', chosen)).object
  t.notOk('claimRef' in (byController.spec ?? {}))
  t.notOk(byController.metadata.annotations)
  const both = { ...chosen, metadata: { annotations: { [boundByController]: 'yes', a: 'b' } } }
  t.same(unbinding(aStoredVolume('disk', both)).object.metadata.annotations, { a: 'b' })
})

test('a phase has the time since when it is so, and no message of an earlier one', async (t) => {
  const failed = aStoredVolume('disk', { status: { phase: 'Failed', message: 'no deleter', reason: 'R' } })
  t.same(volumePhase(failed, 'Available', nowMs)?.object.status, {
    phase: 'Available',
    reason: 'R',
    lastPhaseTransitionTime: '2026-02-01T00:00:00Z',
  })
  t.equal(volumePhase(failed, 'Failed', nowMs, 'another'), undefined)
})
