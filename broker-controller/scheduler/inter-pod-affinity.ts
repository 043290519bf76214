/** InterPodAffinity: affinity and anti-affinity, of the pod and of the pods that run already. */
import type { Pod } from '../../api/pod.ts'
import type { Cluster } from './cluster.ts'
import type { Crowd } from './crowds.ts'
import type { NodeAllocation } from './node-usage.ts'
import { type PodTerm, podTerms, termMatches, type WeightedTerm } from './pod-terms.ts'

/** What the neighbours mean for one pod, on all nodes. */
export type Neighbours = {
  /** Each must hold, unless `isFirst`. */
  readonly near: readonly Wish[]
  /** No such pod exists yet, and the pod matches its own term: it may run on any node with the topology label. */
  readonly isFirst: boolean
  readonly far: readonly Wish[]
  /** Required anti-affinity of existing pods that matches this pod. */
  readonly unwanted: readonly Wish[]
}

/** Values of that label of the nodes where matching pods are, with their number. */
type Wish = { readonly topologyKey: string; readonly domains: ReadonlyMap<string, number> }

export const affinityText = "node(s) didn't match pod affinity rules"
const antiAffinityText = "node(s) didn't match pod anti-affinity rules"
const unwantedText = "node(s) didn't satisfy existing pods anti-affinity rules"

/** Undefined: neither the pod nor an existing pod has such a term. */
export function neighboursOf(pod: Pod, cluster: Cluster): Neighbours | undefined {
  const { affinity, antiAffinity } = podTerms(pod)
  const unwanted = unwantedNear(pod, cluster)
  if (affinity.length + antiAffinity.length + unwanted.length === 0) return undefined
  const friends = [...crowdsFor(affinity, cluster)].filter((crowd) =>
    affinity.every((term) => matches(term, crowd.pod, cluster)),
  )
  const near = affinity.map(({ topologyKey }) => wish(topologyKey, friends))
  return {
    near,
    isFirst: near.every(({ domains }) => domains.size === 0) && affinity.every((term) => matches(term, pod, cluster)),
    far: antiAffinity.map((term) =>
      wish(
        term.topologyKey,
        [...crowdsFor([term], cluster)].filter((crowd) => matches(term, crowd.pod, cluster)),
      ),
    ),
    unwanted,
  }
}

/** The sentence of what stands against the node; removing pods never helps against the first of the three. */
export function neighbourRefusal(neighbours: Neighbours, { labels }: NodeAllocation): string | undefined {
  const { near, isFirst, far, unwanted } = neighbours
  const isThere = ({ topologyKey, domains }: Wish) => {
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
  const pulls = [...ownPulls(pod, cluster), ...othersPulls(pod, cluster)]
  if (pulls.length === 0) return undefined
  const sums = nodes.map(({ labels }) =>
    pulls.reduce((sum, { topologyKey, domains, weight }) => {
      const value = labels[topologyKey]
      return value === undefined ? sum : sum + weight * (domains.get(value) ?? 0)
    }, 0),
  )
  const [least, most] = [Math.min(...sums), Math.max(...sums)]
  return sums.map((sum) => (most === least ? 0 : Math.trunc((100 * (sum - least)) / (most - least))))
}

type Pull = Wish & { readonly weight: number }

function ownPulls(pod: Pod, cluster: Cluster): readonly Pull[] {
  return podTerms(pod).preferred.flatMap(({ term, weight }) =>
    [...crowdsFor([term], cluster)]
      .filter((crowd) => matches(term, crowd.pod, cluster))
      .map((crowd) => pull(term, crowd, weight)),
  )
}

function othersPulls(pod: Pod, cluster: Cluster): readonly Pull[] {
  return [...cluster.crowds.choosy].flatMap((crowd) => {
    const { affinity, preferred } = crowd.terms
    const required = affinity.map((term): WeightedTerm => ({ term, weight: requiredWeight }))
    return [...required, ...preferred]
      .filter(({ term }) => matches(term, pod, cluster))
      .map(({ term, weight }) => pull(term, crowd, weight))
  })
}

function pull({ topologyKey }: PodTerm, crowd: Crowd, weight: number): Pull {
  return { topologyKey, domains: crowd.domains(topologyKey), weight }
}

function unwantedNear(pod: Pod, cluster: Cluster): readonly Wish[] {
  const keepers = new Map<string, Crowd[]>()
  for (const crowd of cluster.crowds.choosy) {
    for (const term of crowd.terms.antiAffinity) {
      if (!matches(term, pod, cluster)) continue
      keepers.set(term.topologyKey, [...(keepers.get(term.topologyKey) ?? []), crowd])
    }
  }
  return [...keepers].map(([topologyKey, crowds]) => wish(topologyKey, crowds))
}

function wish(topologyKey: string, crowds: readonly Crowd[]): Wish {
  const [first, ...others] = crowds.map((crowd) => crowd.domains(topologyKey))
  if (first === undefined) return { topologyKey, domains: new Map() }
  return { topologyKey, domains: others.length === 0 ? first : new Map([first, ...others].flatMap((one) => [...one])) }
}

/** Those in the namespaces of the first term; a term with a selector of namespaces may mean any. */
function crowdsFor([term]: readonly PodTerm[], { crowds }: Cluster): Iterable<Crowd> {
  if (term === undefined) return []
  if (term.namespaceRequirements !== undefined) return crowds.all()
  if (term.namespaces.length === 1) return crowds.in(term.namespaces[0] ?? '')
  return new Set(term.namespaces.flatMap((namespace) => [...crowds.in(namespace)]))
}

function matches(term: PodTerm, pod: Pod, cluster: Cluster): boolean {
  return termMatches(term, pod, cluster.namespaceLabels(pod.metadata.namespace ?? ''))
}
