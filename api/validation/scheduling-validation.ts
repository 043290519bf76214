/** Validates the scheduling fields of a pod: affinity, topology spread, scheduling gates, priority. */
import type { LabelSelector } from '../meta.ts'
import {
  dnsLabelProblem,
  dnsSubdomainProblem,
  labelKeyProblem,
  labelValueProblem,
  qualifiedNameProblem,
} from '../names.ts'
import type { NodeSelectorTerm, PodAffinityTerm, PodSpec, TopologySpreadConstraint } from '../pod.ts'
import { preemptionPolicies } from '../priority-class.ts'
import { duplicate, forbidden, invalid, notSupported, type Problem, required } from '../problem.ts'
import { labelProblems, problemsWith } from './metadata-validation.ts'
import { repeatedPlaces } from './repeated.ts'

/** Problems of the scheduling fields of a pod's specification with its defaults at the path `at`. */
export function schedulingProblems(at: string, spec: PodSpec): readonly Problem[] {
  const { affinity = {}, topologySpreadConstraints = [], preemptionPolicy, nodeName = '', schedulingGates = [] } = spec
  const { nodeAffinity = {}, podAffinity = {}, podAntiAffinity = {} } = affinity
  const required = nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution
  const preferred = nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution ?? []
  const affinityAt = `${at}.affinity`
  return [
    ...(required === undefined
      ? []
      : nodeTermsProblems(
          `${affinityAt}.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms`,
          required.nodeSelectorTerms,
        )),
    ...preferred.flatMap(({ weight, preference }, index) => {
      const field = `${affinityAt}.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[${index}]`
      const terms = nodeTermProblems(`${field}.preference`, preference, { valuesAreFree: true })
      return [...weightProblems(`${field}.weight`, weight), ...terms]
    }),
    ...podAffinityProblems(`${affinityAt}.podAffinity`, podAffinity),
    ...podAffinityProblems(`${affinityAt}.podAntiAffinity`, podAntiAffinity),
    ...spreadProblems(`${at}.topologySpreadConstraints`, topologySpreadConstraints),
    ...(preemptionPolicy === undefined ? [] : policyProblems(`${at}.preemptionPolicy`, preemptionPolicy)),
    ...gateProblems(`${at}.schedulingGates`, schedulingGates),
    ...(nodeName !== '' && schedulingGates.length > 0
      ? [forbidden(`${at}.nodeName`, 'cannot be set until all schedulingGates have been cleared')]
      : []),
  ]
}

/** Problems of a node selector. `field`: the path of its terms. */
export function nodeTermsProblems(field: string, terms: readonly NodeSelectorTerm[]): readonly Problem[] {
  if (terms.length === 0) return [required(field, 'must have at least one node selector term')]
  return terms.flatMap((term, index) => nodeTermProblems(`${field}[${index}]`, term))
}

type Requirement = { readonly key: string; readonly operator: string; readonly values?: readonly string[] }

/** `valuesAreFree`: they need not be values of labels, as in the terms that are only preferred (ValidatePreferredSchedulingTerms). */
function nodeTermProblems(
  field: string,
  { matchExpressions = [], matchFields = [] }: NodeSelectorTerm,
  { valuesAreFree = false } = {},
): readonly Problem[] {
  return [
    ...matchExpressions.flatMap((one, index) => {
      const at = `${field}.matchExpressions[${index}]`
      return [...nodeRequirementProblems(at, one), ...(valuesAreFree ? [] : valueProblems(at, one))]
    }),
    ...matchFields.flatMap((one, index) => fieldRequirementProblems(`${field}.matchFields[${index}]`, one)),
  ]
}

function nodeRequirementProblems(field: string, requirement: Requirement): readonly Problem[] {
  const { key, operator, values = [] } = requirement
  const isCompared = operator === 'Gt' || operator === 'Lt'
  const single = required(`${field}.values`, "must be specified single value when `operator` is 'Lt' or 'Gt'")
  return [
    ...(isCompared && values.length !== 1 ? [single] : []),
    ...(isCompared ? [] : operandProblems(field, operator, values)),
    ...problemsWith(`${field}.key`, key, labelKeyProblem),
  ]
}

/** A node has one field that can be asked for: its name. */
function fieldRequirementProblems(field: string, { key, operator, values = [] }: Requirement): readonly Problem[] {
  const single = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
  const counted = values.length === 1 ? [] : [required(`${field}.values`, single)]
  const known = operator === 'In' || operator === 'NotIn'
  return [
    ...(known ? counted : [invalid(`${field}.operator`, operator, 'not a valid selector operator')]),
    ...(key === 'metadata.name'
      ? values.flatMap((value, index) => problemsWith(`${field}.values[${index}]`, value, dnsSubdomainProblem))
      : [invalid(`${field}.key`, key, 'not a valid field selector key')]),
  ]
}

type PodAffinity = NonNullable<NonNullable<PodSpec['affinity']>['podAffinity']>

function podAffinityProblems(field: string, affinity: PodAffinity): readonly Problem[] {
  const required = affinity.requiredDuringSchedulingIgnoredDuringExecution ?? []
  const preferred = affinity.preferredDuringSchedulingIgnoredDuringExecution ?? []
  return [
    ...required.flatMap((term, index) =>
      podTermProblems(`${field}.requiredDuringSchedulingIgnoredDuringExecution[${index}]`, term),
    ),
    ...preferred.flatMap(({ weight, podAffinityTerm }, index) => {
      const at = `${field}.preferredDuringSchedulingIgnoredDuringExecution[${index}]`
      return [...weightProblems(`${at}.weight`, weight), ...podTermProblems(`${at}.podAffinityTerm`, podAffinityTerm)]
    }),
  ]
}

function podTermProblems(field: string, term: PodAffinityTerm): readonly Problem[] {
  const {
    labelSelector,
    namespaceSelector,
    namespaces = [],
    topologyKey,
    matchLabelKeys = [],
    mismatchLabelKeys = [],
  } = term
  const mismatched = new Set(mismatchLabelKeys)
  const both = matchLabelKeys.filter((key) => mismatched.has(key))
  return [
    ...selectorProblems(`${field}.labelSelector`, labelSelector),
    ...selectorProblems(`${field}.namespaceSelector`, namespaceSelector),
    ...namespaces.flatMap((name) => problemsWith(`${field}.namespaces`, name, dnsLabelProblem)),
    ...keysProblems(`${field}.matchLabelKeys`, matchLabelKeys, labelSelector),
    ...keysProblems(`${field}.mismatchLabelKeys`, mismatchLabelKeys, labelSelector),
    ...selectedKeys(labelSelector, matchLabelKeys).map(({ index, key }) =>
      invalid(`${field}[${index}]`, key, 'exists in both matchLabelKeys and labelSelector'),
    ),
    ...both.map((key) =>
      invalid(`${field}.matchLabelKeys`, key, 'exists in both matchLabelKeys and mismatchLabelKeys'),
    ),
    ...topologyKeyProblems(`${field}.topologyKey`, topologyKey),
  ]
}

/** Keys that the author selects by and wants to be added as well: one of them is in the selector already (validateMatchLabelKeysAndMismatchLabelKeys). */
function selectedKeys(selector: LabelSelector | undefined, matchLabelKeys: readonly string[]) {
  const names = new Set(Object.keys(selector?.matchLabels ?? {}))
  return (selector?.matchExpressions ?? []).flatMap(({ key }) => {
    const isAgain = names.has(key)
    names.add(key)
    const index = matchLabelKeys.lastIndexOf(key)
    return isAgain && index >= 0 ? [{ index, key }] : []
  })
}

function spreadProblems(field: string, constraints: readonly TopologySpreadConstraint[]): readonly Problem[] {
  const again = repeatedPlaces(
    constraints.map(({ topologyKey, whenUnsatisfiable }) => JSON.stringify([topologyKey, whenUnsatisfiable])),
  )
  return constraints.flatMap((constraint, index) => {
    const { topologyKey, whenUnsatisfiable } = constraint
    const at = `${field}[${index}]`
    const repeated = duplicate(`${at}.{topologyKey, whenUnsatisfiable}`, `{${topologyKey}, ${whenUnsatisfiable}}`)
    return [...constraintProblems(at, constraint), ...(again.has(index) ? [repeated] : [])]
  })
}

const positive = 'must be greater than zero'

function constraintProblems(field: string, constraint: TopologySpreadConstraint): readonly Problem[] {
  const { maxSkew, topologyKey, whenUnsatisfiable, minDomains, labelSelector, matchLabelKeys = [] } = constraint
  const selected = new Set(namesOf(labelSelector))
  const onlyHard = `can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ${whenUnsatisfiable}`
  return [
    ...(maxSkew > 0 ? [] : [invalid(`${field}.maxSkew`, maxSkew, positive)]),
    ...topologyKeyProblems(`${field}.topologyKey`, topologyKey),
    ...wordProblems(`${field}.whenUnsatisfiable`, whenUnsatisfiable, ['DoNotSchedule', 'ScheduleAnyway']),
    ...(minDomains !== undefined && minDomains <= 0 ? [invalid(`${field}.minDomains`, minDomains, positive)] : []),
    ...(minDomains !== undefined && whenUnsatisfiable !== 'DoNotSchedule'
      ? [invalid(`${field}.minDomains`, minDomains, onlyHard)]
      : []),
    ...wordProblems(`${field}.nodeAffinityPolicy`, constraint.nodeAffinityPolicy, inclusionPolicies),
    ...wordProblems(`${field}.nodeTaintsPolicy`, constraint.nodeTaintsPolicy, inclusionPolicies),
    ...keysProblems(`${field}.matchLabelKeys`, matchLabelKeys, labelSelector),
    ...matchLabelKeys.flatMap((key, index) =>
      selected.has(key)
        ? [invalid(`${field}.matchLabelKeys[${index}]`, key, 'exists in both matchLabelKeys and labelSelector')]
        : [],
    ),
    ...selectorProblems(`${field}.labelSelector`, labelSelector),
  ]
}

const inclusionPolicies = ['Honor', 'Ignore']

function gateProblems(field: string, gates: readonly { readonly name: string }[]): readonly Problem[] {
  const names = gates.map(({ name }) => name)
  const repeated = repeatedPlaces(names)
  return names.flatMap((name, index) => [
    ...problemsWith(`${field}[${index}]`, name, qualifiedNameProblem),
    ...(repeated.has(index) ? [duplicate(`${field}[${index}]`, name)] : []),
  ])
}

function weightProblems(field: string, weight: number): readonly Problem[] {
  return weight >= 1 && weight <= 100 ? [] : [invalid(field, weight, 'must be in the range 1-100')]
}

function topologyKeyProblems(field: string, key: string): readonly Problem[] {
  return key === '' ? [required(field, 'can not be empty')] : problemsWith(field, key, labelKeyProblem)
}

function keysProblems(field: string, keys: readonly string[], selector: LabelSelector | undefined): readonly Problem[] {
  if (keys.length > 0 && selector === undefined) {
    return [forbidden(field, 'must not be specified when labelSelector is not set')]
  }
  return keys.flatMap((key, index) => problemsWith(`${field}[${index}]`, key, labelKeyProblem))
}

function namesOf(selector: LabelSelector | undefined): readonly string[] {
  return [...Object.keys(selector?.matchLabels ?? {}), ...(selector?.matchExpressions ?? []).map(({ key }) => key)]
}

/** A selector as objects carry it; absent, it is fine. */
export function selectorProblems(field: string, selector: LabelSelector | undefined): readonly Problem[] {
  return [
    ...labelProblems(`${field}.matchLabels`, selector?.matchLabels),
    ...(selector?.matchExpressions ?? []).flatMap((one, index) =>
      requirementProblems(`${field}.matchExpressions[${index}]`, one),
    ),
  ]
}

function requirementProblems(field: string, requirement: Requirement): readonly Problem[] {
  const { key, operator, values = [] } = requirement
  return [
    ...operandProblems(field, operator, values),
    ...problemsWith(`${field}.key`, key, labelKeyProblem),
    ...valueProblems(field, requirement),
  ]
}

function valueProblems(field: string, { values = [] }: Requirement): readonly Problem[] {
  return values.flatMap((value, index) => problemsWith(`${field}.values[${index}]`, value, labelValueProblem))
}

function operandProblems(field: string, operator: string, values: readonly string[]): readonly Problem[] {
  switch (operator) {
    case 'In':
    case 'NotIn':
      if (values.length > 0) return []
      return [required(`${field}.values`, "must be specified when `operator` is 'In' or 'NotIn'")]
    case 'Exists':
    case 'DoesNotExist':
      if (values.length === 0) return []
      return [forbidden(`${field}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")]
    default:
      return [invalid(`${field}.operator`, operator, 'not a valid selector operator')]
  }
}

function wordProblems(field: string, word: string | undefined, words: readonly string[]): readonly Problem[] {
  return word === undefined || words.includes(word) ? [] : [notSupported(field, word, words)]
}

export function policyProblems(field: string, policy: string): readonly Problem[] {
  if (policy === '') return [required(field)]
  return preemptionPolicies.some((known) => known === policy) ? [] : [notSupported(field, policy, preemptionPolicies)]
}
