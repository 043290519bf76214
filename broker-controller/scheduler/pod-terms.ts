/** The affinity, anti-affinity and topology spread terms of a pod, read once. */
import type { LabelSelector } from '../../api/meta.ts'
import type { Pod, PodAffinityTerm, TopologySpreadConstraint } from '../../api/pod.ts'
import {
  type LabelMatcher,
  type Labels,
  labelMatcher,
  matchesLabels,
  type Requirement,
  requirementsOf,
} from '../../api/selectors.ts'

/** Chooses pods. `selectsPods` undefined: none at all. */
export type PodTerm = {
  readonly topologyKey: string
  readonly selectsPods: LabelMatcher | undefined
  readonly namespaces: ReadonlySet<string>
  /** Namespaces with these labels are meant too. */
  readonly selectsNamespaces: LabelMatcher | undefined
}

/** Positive weights draw, negative ones push away. */
export type WeightedTerm = { readonly term: PodTerm; readonly weight: number }

export type SpreadConstraint = {
  readonly topologyKey: string
  readonly maxSkew: number
  readonly minDomains: number
  /** undefined: it counts no pods. */
  readonly selectsPods: LabelMatcher | undefined
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
  { selectsPods, namespaces, selectsNamespaces }: PodTerm,
  { metadata }: Pod,
  namespaceLabels: Labels | undefined,
): boolean {
  if (selectsPods === undefined) return false
  const isMeant = namespaces.has(metadata.namespace ?? '') || selectsNamespaces?.(namespaceLabels) === true
  return isMeant && selectsPods(metadata.labels)
}

function termsOf(pod: Pod): PodTerms {
  const { podAffinity = {}, podAntiAffinity = {} } = pod.spec.affinity ?? {}
  // A pod of an earlier version may have thousands of equal terms.
  const weighted = (list: typeof podAffinity, sign: 1 | -1) =>
    summed(list.preferredDuringSchedulingIgnoredDuringExecution ?? []).map(({ weight, podAffinityTerm }) => ({
      term: termOf(podAffinityTerm, pod),
      weight: sign * weight,
    }))
  const required = (list: typeof podAffinity) =>
    different(list.requiredDuringSchedulingIgnoredDuringExecution ?? []).map((term) => termOf(term, pod))
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

type Weighted = { readonly weight: number; readonly podAffinityTerm: PodAffinityTerm }

function summed(items: readonly Weighted[]): readonly Weighted[] {
  if (items.length < 2) return items
  const sums = new Map<string, Weighted>()
  for (const { weight, podAffinityTerm } of items) {
    const text = JSON.stringify(podAffinityTerm)
    sums.set(text, { podAffinityTerm, weight: weight + (sums.get(text)?.weight ?? 0) })
  }
  return [...sums.values()]
}

function different<T>(items: readonly T[]): readonly T[] {
  return items.length < 2 ? items : [...new Map(items.map((item) => [JSON.stringify(item), item])).values()]
}

/** Neither namespaces nor a selector of them: the pod's own. */
function termOf(term: PodAffinityTerm, { metadata }: Pod): PodTerm {
  const { topologyKey, labelSelector, namespaces = [], namespaceSelector } = term
  const isOwn = namespaces.length === 0 && namespaceSelector === undefined
  return {
    topologyKey,
    selectsPods: matcherOf(read(labelSelector)),
    namespaces: new Set(isOwn ? [metadata.namespace ?? ''] : namespaces),
    selectsNamespaces: matcherOf(read(namespaceSelector)),
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
    selectsPods: matcherOf(requirements && [...requirements, ...own]),
    honorsAffinity: constraint.nodeAffinityPolicy !== 'Ignore',
    honorsTaints: constraint.nodeTaintsPolicy === 'Honor',
  }
}

function matcherOf(requirements: readonly Requirement[] | undefined): LabelMatcher | undefined {
  if (requirements === undefined) return undefined
  // Most terms are short, and a set for each list of values would take more memory than the list.
  const isShort = requirements.length <= few && requirements.every(({ values }) => values.length <= few)
  return isShort ? (labels) => matchesLabels(requirements, labels) : labelMatcher(requirements)
}

const few = 4

/** A selector that cannot be read chooses nothing. */
function read(selector: LabelSelector | undefined): readonly Requirement[] | undefined {
  const parsed = requirementsOf(selector)
  return parsed?.ok === true ? parsed.value : undefined
}
