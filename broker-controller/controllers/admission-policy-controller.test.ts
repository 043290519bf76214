import { test } from 'tap'
import type { ValidatingAdmissionPolicy } from '../../api/admission/validating-admission-policy.ts'
import { fleet } from '../testing/fleet.ts'
import { admissionPolicyController, observedStatus } from './admission-policy-controller.ts'

const policy: ValidatingAdmissionPolicy = {
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingAdmissionPolicy',
  metadata: { name: 'mine' },
  spec: { validations: [{ expression: 'true' }] },
}

test('the status of a policy has the generation that is in force, and keeps what else is in it', async (t) => {
  const world = fleet(t)
  t.teardown(world.start(admissionPolicyController(world)))
  const key = { namespace: '', name: 'mine' }
  const observed = async () => {
    await world.pass(1)
    return world.store.get('validatingadmissionpolicies', key)
  }
  await world.store.create('validatingadmissionpolicies', policy)
  const first = await observed()
  t.same(first?.status, { observedGeneration: 1 })
  if (first === undefined) return
  const typeChecking = { expressionWarnings: [{ fieldRef: 'spec.validations[0].expression', warning: 'mine' }] }
  await world.store.update('validatingadmissionpolicies', {
    ...first,
    spec: { validations: [{ expression: 'false' }] },
    status: { ...first.status, typeChecking },
  })
  t.same((await observed())?.status, { observedGeneration: 2, typeChecking })
})

test('a status that has the generation already is not written', async (t) => {
  const at = (generation: number, observedGeneration: number) =>
    observedStatus({ ...policy, metadata: { name: 'mine', generation }, status: { observedGeneration } })
  t.equal(at(2, 2), undefined)
  t.equal(at(2, 3), undefined)
  t.same(at(3, 2), { observedGeneration: 3 })
})
