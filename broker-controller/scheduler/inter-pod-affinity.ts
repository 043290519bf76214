/** InterPodAffinity: affinity and anti-affinity, of the pod and of the pods that run already. */
import type { Pod } from '../../api/pod.ts'
import type { Cluster } from './cluster.ts'
import type { NodeAllocation } from './node-usage.ts'
import type { PodClass } from './pod-classes.ts'
import { type PodTerm, podTerms, termMatches, type WeightedTerm } from './pod-terms.ts'

/** The affinity of one pod and of its neighbours, on all nodes. */
export type Neighbours = {
  /** Each must hold, unless `isFirst`. */
  readonly near: readonly TermDomains[]
  /** No such pod exists yet, and the pod matches its own term: it may run on any node with the topology label. */
  readonly isFirst: boolean
  readonly far: readonly TermDomains[]
  /** Required anti-affinity of existing pods that matches this pod. */
  readonly unwanted: readonly TermDomains[]
}

/** The number of matching pods by the value of that label of their nodes. */
type TermDomains = { readonly topologyKey: string; readonly domains: ReadonlyMap<string, number> }

export const affinityText = "node(s) didn't match pod affinity rules"
const antiAffinityText = "node(s) didn't match pod anti-affinity rules"
const unwantedText = "node(s) didn't satisfy existing pods anti-affinity rules"

/** Undefined: neither the pod nor an existing pod has such a term. */
export function neighboursOf(pod: Pod, cluster: Cluster): Neighbours | undefined {
  const { affinity, antiAffinity } = podTerms(pod)
  const unwanted = unwantedNear(pod, cluster)
  if (affinity.length + antiAffinity.length + unwanted.length === 0) return undefined
  const friends = [...classesFor(affinity, cluster)].filter((podClass) =>
    affinity.every((term) => matches(term, podClass.pod, cluster)),
  )
  const near = affinity.map(({ topologyKey }) => termDomains(topologyKey, friends))
  return {
    near,
    isFirst: near.every(({ domains }) => domains.size === 0) && affinity.every((term) => matches(term, pod, cluster)),
    far: antiAffinity.map((term) =>
      termDomains(
        term.topologyKey,
        [...classesFor([term], cluster)].filter((podClass) => matches(term, podClass.pod, cluster)),
      ),
    ),
    unwanted,
  }
}

/** Why the pod does not fit on the node; undefined: it fits. Removing pods never resolves the first of the three reasons. */
export function neighbourRefusal(neighbours: Neighbours, { labels }: NodeAllocation): string | undefined {
  const { near, isFirst, far, unwanted } = neighbours
  const isThere = ({ topologyKey, domains }: TermDomains) => {
    const value = labels[topologyKey]
    return value !== undefined && domains.has(value)
  }
  const isNear = isFirst ? near.every(({ topologyKey }) => labels[topologyKey] !== undefined) : near.every(isThere)
  if (!isNear) return affinityText
  if (far.some(isThere)) return antiAffinityText
  return unwanted.some(isThere) ? unwantedText : undefined
}

/** Weight of the required affinity of existing pods (hardPodAffinityWeight). */
const requiredWeight = 1

/** 0 to 100 for each of the nodes, by the preferred terms of the pod and of the existing pods. */
export function neighbourScores(
  pod: Pod,
  nodes: readonly NodeAllocation[],
  cluster: Cluster,
): readonly number[] | undefined {
  const weighted = [...ownPreferences(pod, cluster), ...preferencesOfOthers(pod, cluster)]
  if (weighted.length === 0) return undefined
  const sums = nodes.map(({ labels }) =>
    weighted.reduce((sum, { topologyKey, domains, weight }) => {
      const value = labels[topologyKey]
      return value === undefined ? sum : sum + weight * (domains.get(value) ?? 0)
    }, 0),
  )
  const [least, most] = [Math.min(...sums), Math.max(...sums)]
  return sums.map((sum) => (most === least ? 0 : Math.trunc((100 * (sum - least)) / (most - least))))
}

type WeightedDomains = TermDomains & { readonly weight: number }

function ownPreferences(pod: Pod, cluster: Cluster): readonly WeightedDomains[] {
  return podTerms(pod).preferred.flatMap(({ term, weight }) =>
    [...classesFor([term], cluster)]
      .filter((podClass) => matches(term, podClass.pod, cluster))
      .map((podClass) => pull(term, podClass, weight)),
  )
}

function preferencesOfOthers(pod: Pod, cluster: Cluster): readonly WeightedDomains[] {
  return [...cluster.podClasses.withTerms].flatMap((podClass) => {
    const { affinity, preferred } = podClass.terms
    const required = affinity.map((term): WeightedTerm => ({ term, weight: requiredWeight }))
    return [...required, ...preferred]
      .filter(({ term }) => matches(term, pod, cluster))
      .map(({ term, weight }) => pull(term, podClass, weight))
  })
}

function pull({ topologyKey }: PodTerm, podClass: PodClass, weight: number): WeightedDomains {
  return { topologyKey, domains: podClass.domains(topologyKey), weight }
}

function unwantedNear(pod: Pod, cluster: Cluster): readonly TermDomains[] {
  const keepers = new Map<string, PodClass[]>()
  for (const podClass of cluster.podClasses.withTerms) {
    for (const term of podClass.terms.antiAffinity) {
      if (!matches(term, pod, cluster)) continue
      keepers.set(term.topologyKey, [...(keepers.get(term.topologyKey) ?? []), podClass])
    }
  }
  return [...keepers].map(([topologyKey, podClasses]) => termDomains(topologyKey, podClasses))
}

function termDomains(topologyKey: string, podClasses: readonly PodClass[]): TermDomains {
  const [first, ...others] = podClasses.map((podClass) => podClass.domains(topologyKey))
  if (first === undefined) return { topologyKey, domains: new Map() }
  return { topologyKey, domains: others.length === 0 ? first : new Map([first, ...others].flatMap((one) => [...one])) }
}

/** Those in the namespaces of the first term; a term with a selector of namespaces may mean any. */
function classesFor([term]: readonly PodTerm[], { podClasses }: Cluster): Iterable<PodClass> {
  if (term === undefined) return []
  if (term.namespaceRequirements !== undefined) return podClasses.all()
  if (term.namespaces.length === 1) return podClasses.in(term.namespaces[0] ?? '')
  return new Set(term.namespaces.flatMap((namespace) => [...podClasses.in(namespace)]))
}

function matches(term: PodTerm, pod: Pod, cluster: Cluster): boolean {
  return termMatches(term, pod, cluster.namespaceLabels(pod.metadata.namespace ?? ''))
}
