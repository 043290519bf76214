import { test } from 'tap'
import { volumeAnnotations } from '../../../api/storage/volume-names.ts'
import { aStorageClass, aStoredClaim, aStoredVolume, claimRefTo } from '../../testing/volume-objects.ts'
import { type ClaimFacts, planClaim } from './claim-plan.ts'

const { bindCompleted, selectedNode, provisioner, betaProvisioner } = volumeAnnotations
const late = aStorageClass('late', { volumeBindingMode: 'WaitForFirstConsumer' })
const bound = { metadata: { annotations: { [bindCompleted]: 'yes' } } }

const plan = (claim: ClaimFacts['claim'], facts: Partial<ClaimFacts> = {}) => {
  const { bind, write, event } = planClaim({
    claim,
    named: undefined,
    fitting: () => undefined,
    storageClass: undefined,
    defaultClass: undefined,
    waitingPods: () => [],
    hasNode: () => true,
    isHeld: false,
    ...facts,
  })
  return {
    bind: bind?.metadata.name,
    write: write && `${write.part} ${write.part === 'status' ? write.object.status?.phase : ''}`.trim(),
    event: event && `${event.type} ${event.reason} ${event.message}`,
    object: write?.object,
  }
}
const named = (volume: Parameters<typeof aStoredVolume>[1], claim: Parameters<typeof aStoredClaim>[1] = {}) =>
  plan(aStoredClaim('data', { ...claim, spec: { ...claim.spec, volumeName: 'disk' } }), {
    named: aStoredVolume('disk', volume),
  })
const nothing = { bind: undefined, write: undefined, event: undefined, object: undefined }
const only = (expected: Partial<typeof nothing> | { event?: string; bind?: string }) => ({ ...nothing, ...expected })

test('a claim is bound to the volume that fits', async (t) => {
  t.same(plan(aStoredClaim('data'), { fitting: () => aStoredVolume('disk') }), only({ bind: 'disk' }))
  const asked: boolean[] = []
  const fitting = (delayed: boolean) => void asked.push(delayed) as undefined
  plan(aStoredClaim('data', { spec: { storageClassName: 'late' } }), { fitting, storageClass: late })
  plan(aStoredClaim('data', { spec: { storageClassName: 'gone' } }), { fitting })
  plan(aStoredClaim('data', { spec: { storageClassName: 'now' } }), { fitting, storageClass: aStorageClass('now') })
  t.same(asked, [true, false, false], 'a class that does not exist delays nothing')
})

test('a claim without a class gets the default one, if no volume without a class fits', async (t) => {
  const given = plan(aStoredClaim('data'), { defaultClass: 'fast' })
  t.equal(given.write, 'whole')
  t.match(given.object, { spec: { storageClassName: 'fast' } })
  t.same(
    plan(aStoredClaim('data'), { defaultClass: 'fast', fitting: () => aStoredVolume('disk') }),
    only({ bind: 'disk' }),
  )
  const because = 'Normal FailedBinding no persistent volumes available for this claim and no storage class is set'
  t.same(
    plan(aStoredClaim('data', { spec: { storageClassName: '' } }), { defaultClass: 'fast' }),
    only({ event: because }),
  )
  t.same(plan(aStoredClaim('data')), only({ event: because }))
  const old = { metadata: { annotations: { 'volume.beta.kubernetes.io/storage-class': '' } } }
  t.same(plan(aStoredClaim('data', old), { defaultClass: 'fast' }), only({ event: because }))
})

test('a claim of a class that waits names the pods that it waits for', async (t) => {
  const claim = aStoredClaim('data', { spec: { storageClassName: 'late' } })
  const event = (...pods: string[]) => plan(claim, { storageClass: late, waitingPods: () => pods }).event
  t.equal(event(), 'Normal WaitForFirstConsumer waiting for first consumer to be created before binding')
  t.equal(event('web'), 'Normal WaitForPodScheduled waiting for pod web to be scheduled')
  t.equal(event('web', 'db'), 'Normal WaitForPodScheduled waiting for pods web,db to be scheduled')
})

test('a provisioner is asked by annotations of the claim: at once, or when the scheduler has chosen a node', async (t) => {
  const waiting =
    "Normal ExternalProvisioning Waiting for a volume to be created either by the external provisioner 'example.com/disk' " +
    'or manually by the system administrator. If volume creation is delayed, please verify that the provisioner is running ' +
    'and correctly registered.'
  const asked = plan(aStoredClaim('data', { spec: { storageClassName: 'now' } }), {
    storageClass: aStorageClass('now'),
  })
  t.same([asked.write, asked.event], ['whole', waiting])
  const annotations = { [provisioner]: 'example.com/disk', [betaProvisioner]: 'example.com/disk' }
  t.match(asked.object, { metadata: { annotations } })
  const spec = { storageClassName: 'late' }
  const placed = aStoredClaim('data', { metadata: { annotations: { [selectedNode]: 'pi-01', ...annotations } }, spec })
  t.same(plan(placed, { storageClass: late }), only({ event: waiting }))
  const other = { ...annotations, [provisioner]: 'example.com/old' }
  const renamed = aStoredClaim('data', { metadata: { annotations: other }, spec: { storageClassName: 'now' } })
  t.match(plan(renamed, { storageClass: aStorageClass('now') }).object, { metadata: { annotations } })
})

test('a node that was selected for a claim and is gone is selected no longer, so that the scheduler chooses another one', async (t) => {
  const annotations = { [selectedNode]: 'pi-01', [provisioner]: 'example.com/disk' }
  const placed = aStoredClaim('data', { metadata: { annotations }, spec: { storageClassName: 'late' } })
  const facts = { storageClass: late, hasNode: (name: string) => name !== 'pi-01' }
  const event = 'Warning ProvisioningFailed failed to get target node: node "pi-01" not found'
  const again = plan(placed, facts)
  t.match(again, { write: 'whole', event })
  t.same(again.object?.metadata.annotations, { [provisioner]: 'example.com/disk' }, 'the provisioner was asked already')
  const disk = aStoredVolume('disk')
  t.same(plan(placed, { ...facts, fitting: () => disk }), only({ bind: 'disk' }), 'it was made before the node went')
  t.equal(plan(placed, { ...facts, isHeld: true }).write, undefined, 'after a restore the node may come back')
  const named = aStoredClaim('data', { metadata: { annotations }, spec: { volumeName: 'disk' } })
  t.equal(plan(named, facts).write, undefined, 'it has a volume')
})

test('a class that does not exist, or whose provisioner is built in, is recorded', async (t) => {
  const event = (provisionedBy?: string) =>
    plan(aStoredClaim('data', { spec: { storageClassName: 'fast' } }), {
      storageClass: provisionedBy === undefined ? undefined : aStorageClass('fast', { provisioner: provisionedBy }),
    })
  t.same(event(), only({ event: 'Warning ProvisioningFailed storageclass.storage.k8s.io "fast" not found' }))
  t.same(
    event('kubernetes.io/no-provisioner'),
    only({ event: 'Warning ProvisioningFailed no volume plugin matched name: kubernetes.io/no-provisioner' }),
  )
})

test('a claim that names a volume gets that one, or a reason', async (t) => {
  const refused = (because: string) =>
    only({ event: `Warning VolumeMismatch Cannot bind to requested volume "disk": ${because}` })
  t.same(named({}), only({ bind: 'disk' }))
  t.same(named({ spec: { claimRef: claimRefTo('data', '') } }), only({ bind: 'disk' }))
  t.same(named({ spec: { claimRef: claimRefTo('data'), capacity: { storage: '1Mi' } } }), only({ bind: 'disk' }))
  t.same(
    named({ metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }),
    refused('the volume is marked for deletion "disk"'),
  )
  t.same(named({ spec: { capacity: { storage: '1Mi' } } }), refused('requested PV is too small'))
  t.same(named({ spec: { storageClassName: 'fast' } }), refused('storageClassName does not match'))
  t.same(named({ spec: { volumeMode: 'Block' } }), refused('incompatible volumeMode'))
  t.same(named({ spec: { accessModes: ['ReadOnlyMany'] } }), refused('incompatible accessMode'))
  t.same(
    named({ spec: { volumeAttributesClassName: 'gold' } }),
    refused('volumeAttributesClassName is not supported when the feature-gate VolumeAttributesClass is disabled'),
  )
  t.same(
    named({ spec: { claimRef: claimRefTo('other') } }),
    only({ event: 'Warning FailedBinding volume "disk" already bound to a different claim.' }),
  )
  t.same(
    named({ spec: { claimRef: claimRefTo('data', 'earlier') } }),
    only({ event: 'Warning FailedBinding volume "disk" already bound to a different claim.' }),
  )
  t.same(plan(aStoredClaim('data', { spec: { volumeName: 'disk' } })), nothing, 'the volume may be created later')
  t.equal(
    plan(aStoredClaim('data', { spec: { volumeName: 'disk' }, status: { phase: 'Lost' } })).write,
    'status Pending',
  )
})

test('a claim that was bound is bound again, or lost; never to another volume', async (t) => {
  t.same(named({ spec: { claimRef: claimRefTo('data') } }, bound), only({ bind: 'disk' }))
  t.same(named({}, bound), only({ bind: 'disk' }))
  const lost = (reason: string) => ({ bind: undefined, write: 'status Lost', event: `Warning ${reason}` })
  t.match(
    plan(aStoredClaim('data', bound), { fitting: () => aStoredVolume('free') }),
    lost('ClaimLost Bound claim has lost reference to PersistentVolume. Data on the volume is lost!'),
  )
  const gone = aStoredClaim('data', { ...bound, spec: { volumeName: 'disk' } })
  t.match(plan(gone), lost('ClaimLost Bound claim has lost its PersistentVolume. Data on the volume is lost!'))
  t.match(
    named({ spec: { claimRef: claimRefTo('data', 'other') } }, bound),
    lost('ClaimMisbound Two claims are bound to the same volume, this one is bound incorrectly'),
  )
  t.same(plan({ ...gone, status: { phase: 'Lost' } }), nothing, 'the Event is recorded once')
  t.same(
    named({ spec: { claimRef: claimRefTo('data') } }, { ...bound, status: { phase: 'Lost' } }),
    only({ bind: 'disk' }),
    'the volume came back',
  )
})

test('after a restore a volume that is missing is not lost yet', async (t) => {
  const gone = aStoredClaim('data', { ...bound, spec: { volumeName: 'disk' } })
  t.same(plan(gone, { isHeld: true }), nothing)
})
