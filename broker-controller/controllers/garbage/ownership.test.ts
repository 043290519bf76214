import { test } from 'tap'
import type { OwnerReference } from '../../../api/meta.ts'
import { type OwnerState, type OwnershipStep, ownershipStep, withoutOwners } from './ownership.ts'

const owner = (uid: string): OwnerReference => ({ apiVersion: 'v1', kind: 'ConfigMap', name: `owner-${uid}`, uid })

test('an object is removed when all its owners are gone, and forgets those that are while one is there', async (t) => {
  const cases: readonly [readonly OwnerState[], OwnershipStep][] = [
    [[], { step: 'none' }],
    [['there'], { step: 'none' }],
    [['there', 'there'], { step: 'none' }],
    [['gone'], { step: 'remove', first: false }],
    [['gone', 'gone'], { step: 'remove', first: false }],
    [['waiting'], { step: 'remove', first: true }],
    [['gone', 'waiting'], { step: 'remove', first: true }],
    [['there', 'gone'], { step: 'forget', uids: ['1'] }],
    [['waiting', 'there', 'gone'], { step: 'forget', uids: ['0', '2'] }],
  ]
  for (const [states, step] of cases) {
    const owners = states.map((_, index) => owner(String(index)))
    t.same(
      ownershipStep(owners, ({ uid }) => states[Number(uid)] ?? 'gone'),
      step,
      states.join(', '),
    )
  }
})

test('an object without some of its owners', async (t) => {
  const object = { metadata: { name: 'a', ownerReferences: [owner('1'), owner('2')] }, data: { a: 'b' } }
  t.same(withoutOwners(object, ['1']), { metadata: { name: 'a', ownerReferences: [owner('2')] }, data: { a: 'b' } })
  t.same(withoutOwners(object, ['1', '2']), { metadata: { name: 'a' }, data: { a: 'b' } })
  t.equal(withoutOwners(object, ['3']), undefined, 'nothing is to be written')
  t.equal(withoutOwners({ metadata: {} }, ['1']), undefined)
})
