import { test } from 'tap'
import { aPod } from '../../../api/testing/builders.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { confirmationDelay, confirmedStart } from './confirmed-start.ts'
import { openGate } from './start-gate.ts'

const ownedBy = (kind: string, controller = true) =>
  aPod({ metadata: { ownerReferences: [{ apiVersion: 'apps/v1', kind, name: 'db', uid: 'u', controller }] } })
const db = ownedBy('StatefulSet')

test('after its start the agent holds pods of StatefulSets for half a minute, and no others', async (t) => {
  t.match(confirmationDelay(db, 0), { reason: 'WaitingForController', againInMs: 1_000, isNew: false })
  t.match(confirmationDelay(db, 29_500), { againInMs: 500 })
  t.equal(confirmationDelay(db, 30_000), undefined, 'a machine without a controller runs it')
  for (const pod of [aPod(), ownedBy('ReplicaSet'), ownedBy('StatefulSet', false)]) {
    t.equal(confirmationDelay(pod, 0), undefined)
  }
})

test('the first message of the controller lets them start, unless another gate holds them', async (t) => {
  const clock = fakeClock()
  const held = { reason: 'BootLoop', message: 'held', againInMs: 5, isNew: true }
  const gate = confirmedStart({ ...openGate, hold: (pod) => (pod === db ? undefined : held) }, clock)
  t.match(gate.hold(db), { reason: 'WaitingForController' })
  t.equal(gate.hold(aPod()), held)
  gate.confirm()
  t.equal(gate.hold(db), undefined)
  t.equal(gate.hold(aPod()), held)
})
