import { test } from 'tap'
import type { ObjectMeta } from '../../../api/meta.ts'
import { type ClaimStep, claimStep, controllerOf } from './controller-ref.ts'

const ownedBy = (uid: string, controller = true) => [
  { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'r', uid, controller },
]
const leaving = { deletionTimestamp: '2026-11-30T00:00:00Z' }

test('what a controller does about an object that it finds', async (t) => {
  const owner = { uid: 'own', namespace: 'default' }
  const cases: readonly [string, object, Partial<ObjectMeta>, boolean, ClaimStep][] = [
    ['its own', {}, { ownerReferences: ownedBy('own') }, true, 'owned'],
    ['its own, which it no longer selects', {}, { ownerReferences: ownedBy('own') }, false, 'release'],
    ['its own, which leaves', {}, { ownerReferences: ownedBy('own'), ...leaving }, true, 'owned'],
    ['it leaves itself', leaving, { ownerReferences: ownedBy('own') }, false, 'ignore'],
    ['it leaves with what it selects', leaving, { ownerReferences: ownedBy('own') }, true, 'owned'],
    ['that of another', {}, { ownerReferences: ownedBy('other') }, true, 'ignore'],
    ['one without a controller', {}, {}, true, 'adopt'],
    ['one with an owner that does not control it', {}, { ownerReferences: ownedBy('other', false) }, true, 'adopt'],
    ['one that it does not select', {}, {}, false, 'ignore'],
    ['one that leaves', {}, leaving, true, 'ignore'],
    ['a leaving owner takes none', leaving, {}, true, 'ignore'],
    ['one of another namespace', {}, { namespace: 'other' }, true, 'ignore'],
  ]
  for (const [what, ofOwner, ofObject, matches, step] of cases) {
    const found = claimStep(
      { metadata: { ...owner, ...ofOwner } },
      { metadata: { namespace: 'default', ...ofObject } },
      matches,
    )
    t.equal(found, step, what)
  }
})

test('one owner at most controls an object', async (t) => {
  const [plain = ownedBy('')[0], controlling] = [...ownedBy('1', false), ...ownedBy('2')]
  t.equal(controllerOf({ metadata: { ownerReferences: [plain, controlling].flatMap((one) => one ?? []) } })?.uid, '2')
  t.equal(controllerOf({ metadata: { ownerReferences: ownedBy('1', false) } }), undefined)
  t.equal(controllerOf({ metadata: {} }), undefined)
})
