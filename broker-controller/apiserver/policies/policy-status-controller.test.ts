import { test } from 'tap'
import type {
  AdmissionPolicySpec,
  ValidatingAdmissionPolicy,
} from '../../../api/admission/validating-admission-policy.ts'
import { builtInKinds } from '../../assembly/control-plane.ts'
import { fleet } from '../../testing/fleet.ts'
import { policyStatusController } from './policy-status-controller.ts'

const policy = (expression: string): ValidatingAdmissionPolicy => ({
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingAdmissionPolicy',
  metadata: { name: 'mine' },
  spec: specOf(expression),
})

const specOf = (expression: string): AdmissionPolicySpec => ({
  matchConstraints: {
    resourceRules: [{ operations: ['*'], apiGroups: ['apps'], apiVersions: ['v1'], resources: ['deployments'] }],
  },
  validations: [{ expression }],
})

test('the status of a policy has the generation that is in force, what does not fit in it, and what else is in it', async (t) => {
  const world = fleet(t)
  t.teardown(world.start(policyStatusController({ ...world, kinds: builtInKinds })))
  const key = { namespace: '', name: 'mine' }
  const observed = async () => {
    await world.pass(1)
    return world.store.get('validatingadmissionpolicies', key)
  }
  await world.store.create('validatingadmissionpolicies', policy("object.spec.replicas > '1'"))
  const first = await observed()
  t.equal(first?.status?.observedGeneration, 1)
  const [warning, ...others] = first?.status?.typeChecking?.expressionWarnings ?? []
  t.same(others, [])
  t.equal(warning?.fieldRef, 'spec.validations[0].expression')
  t.match(warning?.warning, /^apps\/v1, Kind=Deployment: ERROR: <input>:1:22: found no matching overload for '_>_'/)
  if (first === undefined) return
  const conditions = [
    { type: 'Mine', status: 'True', reason: 'Mine', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' },
  ]
  await world.store.update('validatingadmissionpolicies', {
    ...first,
    spec: specOf('object.spec.replicas > 1'),
    status: { ...first.status, conditions },
  })
  t.same((await observed())?.status, { observedGeneration: 2, typeChecking: {}, conditions })
})

test('a status that has the generation already is not written', async (t) => {
  const world = fleet(t)
  t.teardown(world.start(policyStatusController({ ...world, kinds: builtInKinds })))
  const status = { observedGeneration: 1 }
  const before = await world.store.create('validatingadmissionpolicies', { ...policy('true'), status })
  await world.pass(1)
  const after = await world.store.get('validatingadmissionpolicies', { namespace: '', name: 'mine' })
  t.equal(after?.metadata.resourceVersion, before.metadata.resourceVersion)
})
