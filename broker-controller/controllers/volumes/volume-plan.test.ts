import { test } from 'tap'
import { volumeAnnotations } from '../../../api/storage/volume-names.ts'
import { aStoredClaim, aStoredVolume, claimRefTo } from '../../testing/volume-objects.ts'
import { planVolume, type VolumeFacts } from './volume-plan.ts'

const { boundByController, provisionedBy, migratedTo } = volumeAnnotations

const plan = (given: Parameters<typeof aStoredVolume>[1], facts: Partial<VolumeFacts> = {}) => {
  const volume = aStoredVolume('disk', given)
  const { write, event, claimEvent, visitClaim } = planVolume({
    volume,
    claim: undefined,
    usedBy: () => [],
    isHeld: false,
    nowMs: 0,
    ...facts,
  })
  const shown = (one: typeof event) => one && `${one.type} ${one.reason} ${one.message}`
  return {
    ...(write && { write: write.part === 'status' ? `status ${write.object.status?.phase}` : 'whole' }),
    ...(event && { event: shown(event) }),
    ...(claimEvent && { claimEvent: shown(claimEvent) }),
    ...(visitClaim && { visitClaim }),
    ...(write?.resource === 'persistentvolumes' &&
      write.object.status?.message && { message: write.object.status.message }),
  }
}
const taken = (phase: string, spec: object = {}, annotations: { [name: string]: string } = {}) => ({
  metadata: { annotations },
  spec: { claimRef: claimRefTo('data'), ...spec },
  status: { phase },
})
const boundTo = (volumeName: string) => ({ claim: aStoredClaim('data', { spec: { volumeName } }) })

test('a volume that no claim has is available', async (t) => {
  t.same(plan({ status: { phase: 'Pending' } }), { write: 'status Available' })
  t.same(plan({ status: { phase: 'Released' } }), { write: 'status Available' }, 'a person removed its claimRef')
  t.same(plan({}), {})
  const reserved = { spec: { claimRef: claimRefTo('data', '') }, status: { phase: 'Pending' } }
  t.same(plan(reserved), { write: 'status Available' })
})

test('a volume is bound when its claim names it, and its claim is visited when that names none', async (t) => {
  t.same(plan(taken('Available'), boundTo('disk')), { write: 'status Bound' })
  t.same(plan(taken('Bound'), boundTo('disk')), {})
  t.same(
    plan(taken('Released'), boundTo('disk')),
    { write: 'status Bound' },
    'it is not released while its claim exists',
  )
  t.same(plan(taken('Available'), boundTo('')), { visitClaim: true })
  t.same(plan(taken('Available', { volumeMode: 'Block' }), boundTo('')), {
    event:
      'Warning VolumeMismatch Cannot bind PersistentVolume to requested PersistentVolumeClaim "data" due to incompatible volumeMode.',
    claimEvent:
      'Warning VolumeMismatch Cannot bind PersistentVolume "disk" to requested PersistentVolumeClaim due to incompatible volumeMode.',
  })
})

test('a volume that is deleted before its claim names it is let go', async (t) => {
  const deleted = { ...taken('Bound'), metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }
  t.same(plan(deleted, boundTo('')), { write: 'whole' })
  t.same(plan(deleted, boundTo('disk')), {}, 'one that is bound stays')
})

test('a volume whose claim has another volume is free again, or not needed', async (t) => {
  t.same(plan(taken('Bound'), boundTo('other')), { write: 'whole' })
  t.same(plan(taken('Bound', {}, { [boundByController]: 'yes' }), boundTo('other')), { write: 'whole' })
  const provisioned = { [provisionedBy]: 'example.com/disk' }
  t.same(plan(taken('Bound', {}, provisioned), boundTo('other')), { write: 'whole' }, 'it is retained')
  const policy = { persistentVolumeReclaimPolicy: 'Delete' }
  t.same(plan(taken('Bound', policy, provisioned), boundTo('other')), { write: 'status Released' })
  t.same(plan(taken('Released', policy, provisioned), boundTo('other')), {}, 'its provisioner deletes it')
  t.same(plan(taken('Bound', policy, provisioned), { ...boundTo('other'), isHeld: true }), {})
})

test('a volume whose claim is gone is released', async (t) => {
  t.same(plan(taken('Bound')), { write: 'status Released' })
  const again = { claim: aStoredClaim('data', { metadata: { uid: 'later' }, spec: { volumeName: 'disk' } }) }
  t.same(plan(taken('Bound'), again), { write: 'status Released' }, 'a later claim of the name is another one')
  t.same(plan(taken('Released')), {}, 'it is retained')
  t.same(plan(taken('Bound'), { isHeld: true }), {}, 'after a restore the claim may come back')
})

test('what cannot be deleted has failed, once, with the reason', async (t) => {
  const deleted = (phase: string, spec: object = {}, annotations: { [name: string]: string } = {}) =>
    plan(taken(phase, { persistentVolumeReclaimPolicy: 'Delete', ...spec }, annotations))
  const because = 'error getting deleter volume plugin for volume "disk": no deletable volume plugin matched'
  t.same(deleted('Released'), {
    write: 'status Failed',
    event: `Warning VolumeFailedDelete ${because}`,
    message: because,
  })
  t.same(deleted('Failed'), {})
  t.same(deleted('Released', { csi: { driver: 'd', volumeHandle: 'h' } }), {})
  t.same(deleted('Released', {}, { [provisionedBy]: 'example.com/disk' }), {})
  t.match(deleted('Released', {}, { [provisionedBy]: 'kubernetes.io/rbd' }), {
    event: 'Warning VolumeFailedDelete no volume plugin matched name: kubernetes.io/rbd',
  })
  t.same(deleted('Released', {}, { [migratedTo]: 'ebs.csi.aws.com' }), {})
})

test('a volume is not recycled: not while it is used, nor after', async (t) => {
  const recycled = (facts: Partial<VolumeFacts> = {}) =>
    plan(taken('Released', { persistentVolumeReclaimPolicy: 'Recycle' }), facts)
  t.same(recycled({ usedBy: () => ['default/a', 'default/b'] }), {
    event: 'Normal VolumeFailedRecycle Volume is used by pods: default/a,default/b',
  })
  const failed = 'No recycler plugin found for the volume!'
  t.same(recycled(), { write: 'status Failed', event: `Warning VolumeFailedRecycle ${failed}`, message: failed })
  const later = aStoredClaim('data', { metadata: { uid: 'later' } })
  t.match(
    recycled({ usedBy: () => ['default/a'], claim: later }),
    { write: 'status Failed' },
    'these use the later claim',
  )
  t.match(plan(taken('Released', { persistentVolumeReclaimPolicy: 'Burn' })), {
    event: 'Warning VolumeUnknownReclaimPolicy Volume has unrecognized PersistentVolumeReclaimPolicy',
  })
})
