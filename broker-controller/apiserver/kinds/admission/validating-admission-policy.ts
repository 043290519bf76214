/** admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy (pkg/registry/admissionregistration/validatingadmissionpolicy/strategy.go). */

import {
  admissionPolicyProblems,
  admissionPolicyStatusProblems,
  samePolicyConditions,
} from '../../../../api/admission/admission-policy-validation.ts'
import { withMatchDefaults } from '../../../../api/admission/match-resources.ts'
import type {
  AdmissionPolicySpec,
  ValidatingAdmissionPolicy,
} from '../../../../api/admission/validating-admission-policy.ts'
import type { Problem } from '../../../../api/problem.ts'
import { resources } from '../../../../api/resources.ts'
import { equalJSON } from '../../../store/equal-json.ts'
import { compilationProblems, lengthProblems } from '../../expressions/expression-problems.ts'
import { ageOf, tableColumns } from '../../handlers/cells.ts'
import { type KindStrategy, statusSubresource } from '../../handlers/strategy.ts'
import { compilePolicy, expressionsOf } from '../../policies/compiled-policy.ts'
import { refuseHiddenParamKind } from './param-access.ts'

export const validatingAdmissionPolicyStrategy: KindStrategy<ValidatingAdmissionPolicy> = {
  ...resources.validatingadmissionpolicies,
  takesAnyFinalizer: true,
  needsVersion: true,
  table: {
    columns: [
      ...tableColumns('Name'),
      { name: 'Validations', type: 'integer', priority: 0 },
      ...tableColumns('ParamKind', 'Age'),
    ],
    cells: ({ metadata, spec: { validations = [], paramKind } = {} }, nowMs) => [
      metadata.name ?? '',
      validations.length,
      paramKind === undefined ? '<unset>' : `${paramKind.apiVersion ?? ''}/${paramKind.kind ?? ''}`,
      ageOf(metadata.creationTimestamp, nowMs),
    ],
  },
  resetFields: { '': ['status'], status: ['metadata', 'spec'] },
  selectableFields: [],
  subresources: {
    status: { ...statusSubresource, validateUpdate: (_, now) => admissionPolicyStatusProblems(now.status) },
  },
  emptyStatus: {},
  withDefaults: (policy) => {
    const { spec } = policy
    if (spec === undefined) return policy
    const { failurePolicy = 'Fail', matchConstraints: match } = spec
    return { ...policy, spec: { ...spec, failurePolicy, ...(match && { matchConstraints: withMatchDefaults(match) }) } }
  },
  prepareForCreate: ({ status: _, ...policy }) => policy,
  validateCreate: (policy) => admissionPolicyProblems(policy),
  validateUpdate: (old, now) => admissionPolicyProblems(now, !samePolicyConditions(old.spec ?? {}, now.spec ?? {})),
  lengthyProblems: (now, old) => expressionProblems(now.spec ?? {}, old?.spec),
  async admitCreate({ spec = {} }, identity, needs) {
    const refusal = await refuseHiddenParamKind(spec.paramKind, identity, needs)
    return { decorate: (prepared) => refusal(prepared) }
  },
  async admitUpdate(policy, needs, { old, requester, subresource }) {
    if (subresource !== '' || equalJSON(old.spec?.paramKind, policy.spec?.paramKind)) return
    const refusal = await refuseHiddenParamKind(policy.spec?.paramKind, requester, needs)
    refusal(policy)
  },
}

/** Expressions are compiled where something of the policy changes. */
function* expressionProblems(
  spec: AdmissionPolicySpec,
  old: AdmissionPolicySpec | undefined,
): Generator<undefined, readonly Problem[]> {
  if (old !== undefined && equalJSON(spec, old)) return []
  const lengths = lengthProblems('spec', expressionsOf(spec))
  if (lengths.length > 0) return lengths
  const isKept = old !== undefined && samePolicyConditions(spec, old)
  const found = yield* compilationProblems(compilePolicy(spec))
  return found.filter(({ field }) => !isKept || !field.startsWith('spec.matchConditions['))
}
