import { test } from 'tap'
import type { OwnerReference } from '../../../../api/meta.ts'
import { aPod } from '../../../../api/testing/builders.ts'
import type { StatefulSet } from '../../../../api/workloads/stateful-set.ts'
import type { AnyStored, StoredPod } from '../../../store/store.ts'
import { claimOwners, claimsOfPlace, goesWithEarlierPod, setsOfClaim, withClaimsOfPlace } from './stateful-claims.ts'

type Policy = NonNullable<StatefulSet['spec']['persistentVolumeClaimRetentionPolicy']>

const set = (spec: Partial<StatefulSet['spec']> = {}): AnyStored & StatefulSet => ({
  apiVersion: 'apps/v1',
  kind: 'StatefulSet',
  metadata: { name: 'db', namespace: 'default', uid: 'uid-db', resourceVersion: '1', creationTimestamp: '' },
  spec: {
    replicas: 2,
    selector: { matchLabels: { app: 'db' } },
    template: { spec: { containers: [] } },
    volumeClaimTemplates: [
      { metadata: { name: 'data', labels: { app: 'other', tier: 'one' } }, spec: { accessModes: ['ReadWriteOnce'] } },
      { metadata: { name: 'log' }, spec: { accessModes: ['ReadWriteOnce'] } },
    ],
    ...spec,
  },
})
const pod = (ordinal: number, uid = `uid-${ordinal}`): StoredPod => {
  const made = aPod({ name: `db-${ordinal}` })
  return { ...made, metadata: { ...made.metadata, namespace: 'default', uid } }
}
const ofSet = {
  apiVersion: 'apps/v1',
  kind: 'StatefulSet',
  name: 'db',
  uid: 'uid-db',
  controller: true,
  blockOwnerDeletion: true,
}
const ofPod = (ordinal: number) => {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    name: `db-${ordinal}`,
    uid: `uid-${ordinal}`,
    controller: true,
    blockOwnerDeletion: true,
  }
}
const stranger = { apiVersion: 'example.com/v1', kind: 'Backup', name: 'nightly', uid: 'b' }
const owners = (policy: Policy, ordinal: number, ownerReferences: readonly OwnerReference[] = []) =>
  claimOwners(set({ persistentVolumeClaimRetentionPolicy: policy }), pod(ordinal), { metadata: { ownerReferences } })

test('each place of a set has its claims, with the labels that the set selects by', async (t) => {
  t.match(claimsOfPlace(set(), 1), [
    {
      metadata: { name: 'data-db-1', namespace: 'default', labels: { app: 'db', tier: 'one' } },
      spec: { accessModes: ['ReadWriteOnce'] },
    },
    { metadata: { name: 'log-db-1', labels: { app: 'db' } } },
  ])
  t.same(claimsOfPlace(set({ volumeClaimTemplates: [] }), 1), [])
  t.same(setsOfClaim('my-data-my-db-12'), ['data-my-db', 'my-db', 'db'])
  t.same(setsOfClaim('data'), [])
})

test('the claims are volumes of the pod, in place of those of their names', async (t) => {
  const volumes = [
    { name: 'log', emptyDir: {} },
    { name: 'tmp', emptyDir: {} },
  ]
  t.same(withClaimsOfPlace(set(), 1, { containers: [], volumes }).volumes, [
    { name: 'data', persistentVolumeClaim: { claimName: 'data-db-1' } },
    { name: 'log', persistentVolumeClaim: { claimName: 'log-db-1' } },
    { name: 'tmp', emptyDir: {} },
  ])
})

test('the retention policy decides what a claim goes with', async (t) => {
  const wanted = (whenDeleted: string, whenScaled: string, ordinal: number) => {
    const before = [stranger, ofSet, ofPod(ordinal)]
    return (owners({ whenDeleted, whenScaled }, ordinal, before).change ?? before).map(({ kind }) => kind)
  }
  t.same(wanted('Retain', 'Retain', 0), ['Backup'])
  t.same(wanted('Retain', 'Retain', 5), ['Backup'])
  t.same(wanted('Delete', 'Retain', 0), ['Backup', 'StatefulSet'])
  t.same(wanted('Delete', 'Retain', 5), ['Backup', 'StatefulSet'])
  t.same(wanted('Retain', 'Delete', 0), ['Backup'])
  t.same(wanted('Retain', 'Delete', 5), ['Backup', 'Pod'])
  t.same(wanted('Delete', 'Delete', 0), ['Backup', 'StatefulSet'])
  t.same(wanted('Delete', 'Delete', 5), ['Backup', 'Pod'])
  t.same(claimOwners(set(), pod(0), { metadata: {} }), { change: undefined, isConflicting: false })
})

test('an owner that is right stays, and one that is not a controller becomes one', async (t) => {
  const policy = { whenDeleted: 'Delete', whenScaled: 'Delete' }
  t.equal(owners(policy, 0, [stranger, ofSet]).change, undefined)
  t.equal(owners(policy, 5, [ofPod(5)]).change, undefined)
  const { controller: _, ...plain } = ofSet
  t.same(owners(policy, 0, [plain]).change, [ofSet])
})

test('a claim of another controller is left to that', async (t) => {
  const other = { ...stranger, controller: true }
  const policy = { whenDeleted: 'Delete', whenScaled: 'Retain' }
  t.same(owners(policy, 0, [other]), { change: undefined, isConflicting: true })
  t.same(owners(policy, 0, [other, ofSet]), { change: [other], isConflicting: true })
  t.same(owners({ whenDeleted: 'Retain', whenScaled: 'Retain' }, 0, [other]), {
    change: undefined,
    isConflicting: false,
  })
})

test('a claim of an earlier set or pod goes with that', async (t) => {
  const policy = { whenDeleted: 'Delete', whenScaled: 'Delete' }
  t.same(owners(policy, 0, [{ ...ofSet, uid: 'earlier' }]), { change: undefined, isConflicting: false })
  t.same(owners(policy, 5, [{ ...ofPod(5), uid: 'earlier' }]), { change: undefined, isConflicting: false })
  const goes = (whenScaled: string, ...ownerReferences: OwnerReference[]) =>
    goesWithEarlierPod(set({ persistentVolumeClaimRetentionPolicy: { whenScaled } }), 'db-0', {
      metadata: { ownerReferences },
    })
  t.ok(goes('Delete', stranger, ofPod(0)))
  t.notOk(goes('Delete', stranger, ofPod(1)))
  t.notOk(goes('Retain', ofPod(0)))
})
