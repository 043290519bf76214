/**
 * Bounds of the terms by which one pod is placed. The scheduler compares the terms of each pod with all others, so that without a bound one
 * object costs everybody's decisions. Kubernetes has none.
 */
import type { LabelSelector } from '../meta.ts'
import type { NodeSelectorTerm, PodAffinityTerm, PodSpec } from '../pod.ts'
import type { Problem } from '../problem.ts'

/** Terms of one list, or of the lists that are read together. */
export const mostSchedulingTerms = 64
/** Requirements in the selectors of such terms, together. */
export const mostTermRequirements = 256

/** What of a pod's specification at the path `at` is above the bounds. */
export function schedulingExcesses(at: string, spec: PodSpec): readonly Problem[] {
  const { affinity = {}, topologySpreadConstraints = [] } = spec
  if (spec.affinity === undefined && topologySpreadConstraints.length === 0) return []
  const { nodeAffinity = {}, podAffinity = {}, podAntiAffinity = {} } = affinity
  const podTerms = [podAffinity, podAntiAffinity].flatMap((one) => [
    ...(one.requiredDuringSchedulingIgnoredDuringExecution ?? []),
    ...(one.preferredDuringSchedulingIgnoredDuringExecution ?? []).map(({ podAffinityTerm }) => podAffinityTerm),
  ])
  const nodeTerms = [
    ...(nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? []),
    ...(nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution ?? []).map(({ preference }) => preference),
  ]
  const constraintsAt = `${at}.topologySpreadConstraints`
  const requirements = 'requirements in the selectors of its terms'
  return [
    ...excess(`${at}.affinity`, podTerms.length, mostSchedulingTerms, 'terms in podAffinity and podAntiAffinity'),
    ...excess(`${at}.affinity`, sum(podTerms, requirementsOfTerm), mostTermRequirements, requirements),
    ...excess(`${at}.affinity.nodeAffinity`, nodeTerms.length, mostSchedulingTerms, 'terms'),
    ...excess(`${at}.affinity.nodeAffinity`, sum(nodeTerms, requirementsOfNodes), mostTermRequirements, requirements),
    ...excess(constraintsAt, topologySpreadConstraints.length, mostSchedulingTerms, 'items'),
    ...excess(constraintsAt, sum(topologySpreadConstraints, requirementsOfTerm), mostTermRequirements, requirements),
  ]
}

/** As Kubernetes puts it for lists that are too long (field.TooMany). */
function excess(field: string, count: number, most: number, what: string): readonly Problem[] {
  if (count <= most) return []
  return [{ field, reason: 'FieldValueTooMany', message: `Too many: ${count}: must have at most ${most} ${what}` }]
}

function sum<T>(items: readonly T[], amount: (item: T) => number): number {
  return items.reduce((total, item) => total + amount(item), 0)
}

type TermSelectors = Partial<
  Pick<PodAffinityTerm, 'labelSelector' | 'namespaceSelector' | 'matchLabelKeys' | 'mismatchLabelKeys'>
>

function requirementsOfTerm(term: TermSelectors): number {
  const { labelSelector, namespaceSelector, matchLabelKeys = [], mismatchLabelKeys = [] } = term
  const ofSelectors = requirementsOfSelector(labelSelector) + requirementsOfSelector(namespaceSelector)
  return ofSelectors + matchLabelKeys.length + mismatchLabelKeys.length
}

function requirementsOfSelector({ matchLabels = {}, matchExpressions = [] }: LabelSelector = {}): number {
  return Object.keys(matchLabels).length + matchExpressions.length
}

function requirementsOfNodes({ matchExpressions = [], matchFields = [] }: NodeSelectorTerm): number {
  return matchExpressions.length + matchFields.length
}
