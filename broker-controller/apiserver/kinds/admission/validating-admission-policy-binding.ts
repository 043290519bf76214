/**
 * admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding
 * (pkg/registry/admissionregistration/validatingadmissionpolicybinding/strategy.go).
 */

import { policyBindingProblems } from '../../../../api/admission/admission-policy-validation.ts'
import { withMatchDefaults } from '../../../../api/admission/match-resources.ts'
import type {
  ParamRef,
  ValidatingAdmissionPolicyBinding,
} from '../../../../api/admission/validating-admission-policy-binding.ts'
import type { LabelSelector } from '../../../../api/meta.ts'
import { resources } from '../../../../api/resources.ts'
import { equalJSON } from '../../../store/equal-json.ts'
import { ageOf, tableColumns } from '../../handlers/cells.ts'
import type { KindStrategy } from '../../handlers/strategy.ts'
import { refuseHiddenParams } from './param-access.ts'

export const validatingAdmissionPolicyBindingStrategy: KindStrategy<ValidatingAdmissionPolicyBinding> = {
  ...resources.validatingadmissionpolicybindings,
  takesAnyFinalizer: true,
  needsVersion: true,
  table: {
    columns: tableColumns('Name', 'PolicyName', 'ParamRef', 'Age'),
    cells: ({ metadata, spec: { policyName = '', paramRef } = {} }, nowMs) => [
      metadata.name ?? '',
      policyName,
      paramRef === undefined ? '<unset>' : paramText(paramRef),
      ageOf(metadata.creationTimestamp, nowMs),
    ],
  },
  selectableFields: [],
  subresources: {},
  withDefaults: (binding) => {
    const match = binding.spec?.matchResources
    return match === undefined
      ? binding
      : { ...binding, spec: { ...binding.spec, matchResources: withMatchDefaults(match) } }
  },
  validateCreate: policyBindingProblems,
  validateUpdate: (_, now) => policyBindingProblems(now),
  async admitCreate({ spec = {} }, identity, needs) {
    const refusal = await refuseHiddenParams(spec, identity, needs)
    return { decorate: (prepared) => refusal(prepared) }
  },
  async admitUpdate(binding, needs, { old, requester }) {
    const [before, now] = [old.spec ?? {}, binding.spec ?? {}]
    if (before.policyName === now.policyName && equalJSON(before.paramRef, now.paramRef)) return
    const refusal = await refuseHiddenParams(now, requester, needs)
    refusal(binding)
  },
}

/** As `kubectl get` prints it (printValidatingAdmissionPolicyBinding). */
function paramText({ name = '', namespace = '', selector }: ParamRef): string {
  if (name !== '') return `${namespace || '*'}/${name}`
  return selector === undefined ? '<unset>' : selectorText(selector)
}

function selectorText({ matchLabels = {}, matchExpressions = [] }: LabelSelector): string {
  const labels = Object.entries(matchLabels)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([key, value]) => `${key}: ${value},`)
  const requirements = matchExpressions.map(
    ({ key, operator, values = [] }) =>
      `LabelSelectorRequirement{Key:${key},Operator:${operator},Values:[${values.join(' ')}],},`,
  )
  const all = `MatchExpressions:[]LabelSelectorRequirement{${requirements.join('')}}`
  return `&LabelSelector{MatchLabels:map[string]string{${labels.join('')}},${all},}`
}
