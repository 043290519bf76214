/** The affinity, anti-affinity and topology spread terms of a pod, read once. */
import type { LabelSelector } from '../../api/meta.ts'
import type { Pod, PodAffinityTerm, TopologySpreadConstraint } from '../../api/pod.ts'
import { type Labels, matchesLabels, type Requirement, requirementsOf } from '../../api/selectors.ts'

/** Chooses pods. `requirements` undefined: none at all. */
export type PodTerm = {
  readonly topologyKey: string
  readonly requirements: readonly Requirement[] | undefined
  readonly namespaces: readonly string[]
  /** Namespaces with these labels are meant too. */
  readonly namespaceRequirements: readonly Requirement[] | undefined
}

/** Positive weights draw, negative ones push away. */
export type WeightedTerm = { readonly term: PodTerm; readonly weight: number }

export type SpreadConstraint = {
  readonly topologyKey: string
  readonly maxSkew: number
  readonly minDomains: number
  readonly requirements: readonly Requirement[] | undefined
  /** Whether nodes count that the pod does not select, or whose taints it does not tolerate. */
  readonly honorsAffinity: boolean
  readonly honorsTaints: boolean
}

export type PodTerms = {
  readonly affinity: readonly PodTerm[]
  readonly antiAffinity: readonly PodTerm[]
  readonly preferred: readonly WeightedTerm[]
  readonly hardSpread: readonly SpreadConstraint[]
  readonly softSpread: readonly SpreadConstraint[]
}

const known = new WeakMap<Pod, PodTerms>()

export function podTerms(pod: Pod): PodTerms {
  const before = known.get(pod)
  if (before !== undefined) return before
  const terms = termsOf(pod)
  known.set(pod, terms)
  return terms
}

/** Whether the other pod, in a namespace with these labels, matches the term. */
export function termMatches(
  { requirements, namespaces, namespaceRequirements }: PodTerm,
  { metadata }: Pod,
  namespaceLabels: Labels | undefined,
): boolean {
  if (requirements === undefined) return false
  const isMeant =
    namespaces.includes(metadata.namespace ?? '') ||
    (namespaceRequirements !== undefined && matchesLabels(namespaceRequirements, namespaceLabels))
  return isMeant && matchesLabels(requirements, metadata.labels)
}

function termsOf(pod: Pod): PodTerms {
  const { podAffinity = {}, podAntiAffinity = {} } = pod.spec.affinity ?? {}
  const weighted = (list: typeof podAffinity, sign: 1 | -1) =>
    (list.preferredDuringSchedulingIgnoredDuringExecution ?? []).map(({ weight, podAffinityTerm }) => ({
      term: termOf(podAffinityTerm, pod),
      weight: sign * weight,
    }))
  const required = (list: typeof podAffinity) =>
    (list.requiredDuringSchedulingIgnoredDuringExecution ?? []).map((term) => termOf(term, pod))
  const spread = (wanted: string) =>
    (pod.spec.topologySpreadConstraints ?? [])
      .filter(({ whenUnsatisfiable }) => whenUnsatisfiable === wanted)
      .map((constraint) => constraintOf(constraint, pod))
  return {
    affinity: required(podAffinity),
    antiAffinity: required(podAntiAffinity),
    preferred: [...weighted(podAffinity, 1), ...weighted(podAntiAffinity, -1)],
    hardSpread: spread('DoNotSchedule'),
    softSpread: spread('ScheduleAnyway'),
  }
}

/** Neither namespaces nor a selector of them: the pod's own. */
function termOf(term: PodAffinityTerm, { metadata }: Pod): PodTerm {
  const { topologyKey, labelSelector, namespaces = [], namespaceSelector } = term
  const isOwn = namespaces.length === 0 && namespaceSelector === undefined
  return {
    topologyKey,
    requirements: read(labelSelector),
    namespaces: isOwn ? [metadata.namespace ?? ''] : namespaces,
    namespaceRequirements: read(namespaceSelector),
  }
}

function constraintOf(constraint: TopologySpreadConstraint, { metadata }: Pod): SpreadConstraint {
  const { topologyKey, maxSkew, minDomains = 1, labelSelector, matchLabelKeys = [] } = constraint
  const requirements = read(labelSelector)
  const labels = metadata.labels ?? {}
  const own = matchLabelKeys.flatMap((key): Requirement[] => {
    const value = Object.hasOwn(labels, key) ? labels[key] : undefined
    return value === undefined ? [] : [{ key, operator: 'In', values: [value] }]
  })
  return {
    topologyKey,
    maxSkew,
    minDomains,
    requirements: requirements && [...requirements, ...own],
    honorsAffinity: constraint.nodeAffinityPolicy !== 'Ignore',
    honorsTaints: constraint.nodeTaintsPolicy === 'Honor',
  }
}

/** A selector that cannot be read chooses nothing. */
function read(selector: LabelSelector | undefined): readonly Requirement[] | undefined {
  const parsed = requirementsOf(selector)
  return parsed?.ok === true ? parsed.value : undefined
}
