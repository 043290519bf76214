import { test } from 'tap'
import type { Pod } from '../../../api/pod.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { aStoredClaim, aStoredVolume } from '../../testing/volume-objects.ts'
import { isUsedBy, isVolumeUsed, protectionStep } from './protection.ts'

const deletionTimestamp = '2026-01-01T00:00:00Z'
const user = (
  spec: Partial<Pod['spec']> = {},
  more: Partial<Pod['metadata']> = {},
  status: Pod['status'] = {},
): Pod => {
  const pod = aPod()
  const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }]
  return {
    ...pod,
    metadata: { ...pod.metadata, namespace: 'default', name: 'web', uid: 'uid-web', ...more },
    spec: { ...pod.spec, nodeName: 'pi-01', volumes, ...spec },
    status,
  }
}

test('a pod with a node uses its claims, also after it has ended', async (t) => {
  const claim = aStoredClaim('data')
  t.ok(isUsedBy(claim, user()))
  t.ok(isUsedBy(claim, user({}, {}, { phase: 'Succeeded' })))
  t.ok(isUsedBy(claim, user({}, { deletionTimestamp, deletionGracePeriodSeconds: 0 })))
  t.notOk(isUsedBy(claim, user({ nodeName: '' })), 'it will not get a node while the claim is being deleted')
  t.notOk(isUsedBy(claim, user({}, { namespace: 'other' })))
  t.notOk(isUsedBy(aStoredClaim('other'), user()))
})

test('a pod uses the claim that was made for it until its node is done with it', async (t) => {
  const volumes = [{ name: 'scratch', ephemeral: { volumeClaimTemplate: { spec: {} } } }]
  const owner = { apiVersion: 'v1', kind: 'Pod', name: 'web', uid: 'uid-web', controller: true }
  const claim = aStoredClaim('web-scratch', { metadata: { ownerReferences: [owner] } })
  t.ok(isUsedBy(claim, user({ volumes })))
  t.ok(isUsedBy(claim, user({ volumes }, { deletionTimestamp, deletionGracePeriodSeconds: 30 })))
  t.notOk(isUsedBy(claim, user({ volumes }, { deletionTimestamp, deletionGracePeriodSeconds: 0 })))
  t.notOk(isUsedBy(claim, user({ volumes }, { uid: 'later' })), 'another pod of the name')
  t.notOk(isUsedBy(aStoredClaim('web-scratch'), user({ volumes })), 'a claim of the name that is not for it')
})

test('what is not being deleted is protected, and what is, is removed when nothing uses it', async (t) => {
  const step = (metadata: object) => protectionStep(aStoredVolume('disk', { metadata }), 'mine')
  t.equal(step({}), 'protect')
  t.equal(step({ finalizers: ['mine'] }), 'none')
  t.equal(step({ finalizers: ['mine', 'other'], deletionTimestamp }), 'release-if-unused')
  t.equal(step({ finalizers: ['other'], deletionTimestamp }), 'none')
  t.equal(step({ deletionTimestamp, deletionGracePeriodSeconds: 0 }), 'release-if-unused')
  t.ok(isVolumeUsed(aStoredVolume('disk', { status: { phase: 'Bound' } })))
  t.notOk(isVolumeUsed(aStoredVolume('disk', { status: { phase: 'Released' } })))
})
