/** InterPodAffinity: affinity and anti-affinity, of the pod and of the pods that run already. */
import type { Pod } from '../../api/pod.ts'
import type { Labels } from '../../api/selectors.ts'
import type { Steps } from '../../daemon/watchdog/steps.ts'
import type { Cluster } from './cluster.ts'
import type { NodeAllocation } from './node-usage.ts'
import type { PodClass } from './pod-classes.ts'
import { type PodTerm, podTerms, termMatches } from './pod-terms.ts'

/** The affinity of one pod and of its neighbours, on all nodes. */
export type Neighbours = {
  /** Each must hold. While no such pod exists, one that matches its own terms may run on any node with the topology labels. */
  readonly near: Domains
  /** The number of pods that `near` counts, by topology key. */
  readonly nearTotals: ReadonlyMap<string, number>
  readonly matchesItself: boolean
  readonly far: Domains
  /** Required anti-affinity of existing pods that matches this pod. */
  readonly unwanted: Domains
}

/** By topology key: the number of matching pods by the value of that label of their nodes. */
export type Domains = ReadonlyMap<string, ReadonlyMap<string, number>>

export const affinityText = "node(s) didn't match pod affinity rules"
const antiAffinityText = "node(s) didn't match pod anti-affinity rules"
const unwantedText = "node(s) didn't satisfy existing pods anti-affinity rules"

/**
 * Which terms of a pod match other pods, and which of theirs match it. Kept during one decision: trials that move pods between nodes count
 * again, but compare nothing again.
 */
export interface PodRelations {
  /** Whether the other matches all required affinity terms. */
  isFriend(other: Pod): boolean
  /** The topology keys of the required anti-affinity terms that match the other. */
  avoids(other: Pod): readonly string[]
  /** The topology keys of the other's required anti-affinity terms that match the pod. */
  isAvoidedBy(other: Pod): readonly string[]
}

export function podRelations(pod: Pod, cluster: Cluster): PodRelations {
  const { affinity, antiAffinity } = podTerms(pod)
  const keysOf = (terms: readonly PodTerm[], matched: Pod): readonly string[] => {
    const keys = new Set<string>()
    for (const term of terms) {
      const { topologyKey } = term
      if (!keys.has(topologyKey) && cluster.hasLabel(topologyKey) && matches(term, matched, cluster))
        keys.add(topologyKey)
    }
    return keys.size === 0 ? noKeys : [...keys]
  }
  return {
    isFriend: remembered((other) => affinity.every((term) => matches(term, other, cluster))),
    avoids: remembered((other) => keysOf(antiAffinity, other)),
    isAvoidedBy: remembered((other) => keysOf(podTerms(other).antiAffinity, pod)),
  }
}

const noKeys: readonly string[] = []

function remembered<T>(answer: (pod: Pod) => T): (pod: Pod) => T {
  const answers = new Map<Pod, T>()
  return (pod) => {
    const before = answers.get(pod)
    if (before !== undefined) return before
    const now = answer(pod)
    answers.set(pod, now)
    return now
  }
}

/** Undefined: neither the pod nor an existing pod has such a term. */
export function* neighboursOf(
  pod: Pod,
  cluster: Cluster,
  relations: PodRelations = podRelations(pod, cluster),
): Steps<Neighbours | undefined> {
  const { affinity, antiAffinity } = podTerms(pod)
  const unwanted = yield* unwantedNear(cluster, relations)
  if (affinity.length + antiAffinity.length + unwanted.size === 0) return undefined
  const near = yield* friendsNear(affinity, cluster, relations)
  return {
    near,
    nearTotals: new Map([...near].map(([topologyKey, counts]) => [topologyKey, sumOf(counts.values())])),
    matchesItself: affinity.length > 0 && relations.isFriend(pod),
    far: yield* avoidedNear(antiAffinity, cluster, relations),
    unwanted,
  }
}

/** Why the pod does not fit on the node; undefined: it fits. Removing pods never resolves the first of the three reasons. */
export function neighbourRefusal(neighbours: Neighbours, { labels }: NodeAllocation): string | undefined {
  const { near, nearTotals, matchesItself, far, unwanted } = neighbours
  const isFirst = matchesItself && sumOf(nearTotals.values()) === 0
  for (const [topologyKey, values] of near) {
    const value = labels[topologyKey]
    if (value === undefined || !(isFirst || values.has(value))) return affinityText
  }
  if (isWithin(far, labels)) return antiAffinityText
  return isWithin(unwanted, labels) ? unwantedText : undefined
}

function sumOf(counts: Iterable<number>): number {
  let sum = 0
  for (const count of counts) sum += count
  return sum
}

function isWithin(domains: Domains, labels: Labels): boolean {
  for (const [topologyKey, values] of domains) {
    const value = labels[topologyKey]
    if (value !== undefined && values.has(value)) return true
  }
  return false
}

type ClassesByKey = Map<string, PodClass[]>

function* friendsNear(affinity: readonly PodTerm[], cluster: Cluster, { isFriend }: PodRelations): Steps<Domains> {
  const friends: PodClass[] = []
  for (const podClass of classesFor(affinity.slice(0, 1), cluster)) {
    if (isFriend(podClass.pod)) friends.push(podClass)
    yield
  }
  return yield* domainsOf(new Map(affinity.map(({ topologyKey }) => [topologyKey, friends])))
}

function* avoidedNear(terms: readonly PodTerm[], cluster: Cluster, { avoids }: PodRelations): Steps<Domains> {
  const avoided: ClassesByKey = new Map()
  for (const podClass of classesFor(terms, cluster)) {
    for (const topologyKey of avoids(podClass.pod)) append(avoided, topologyKey, podClass)
    yield
  }
  return yield* domainsOf(avoided)
}

function* unwantedNear({ podClasses }: Cluster, { isAvoidedBy }: PodRelations): Steps<Domains> {
  const keepers: ClassesByKey = new Map()
  for (const podClass of podClasses.withTerms) {
    for (const topologyKey of isAvoidedBy(podClass.pod)) append(keepers, topologyKey, podClass)
    yield
  }
  return yield* domainsOf(keepers)
}

function append(classes: ClassesByKey, topologyKey: string, podClass: PodClass): void {
  const present = classes.get(topologyKey)
  if (present === undefined) classes.set(topologyKey, [podClass])
  else present.push(podClass)
}

function* domainsOf(classes: ReadonlyMap<string, readonly PodClass[]>): Steps<Domains> {
  const domains = new Map<string, ReadonlyMap<string, number>>()
  for (const [topologyKey, podClasses] of classes) {
    const [first] = podClasses
    if (first !== undefined && podClasses.length === 1) {
      domains.set(topologyKey, first.domains(topologyKey))
      continue
    }
    const counts = new Map<string, number>()
    for (const podClass of podClasses) {
      podClass.addDomains(topologyKey, counts)
      yield
    }
    domains.set(topologyKey, counts)
  }
  return domains
}

/** Weight of the required affinity of existing pods (hardPodAffinityWeight). */
const requiredWeight = 1

/** 0 to 100 for each of the nodes, by the preferred terms of the pod and of the existing pods. */
export function* neighbourScores(
  pod: Pod,
  nodes: readonly NodeAllocation[],
  cluster: Cluster,
): Steps<readonly number[] | undefined> {
  const pulls: Pulls = new Map()
  yield* addOwnPreferences(pulls, pod, cluster)
  yield* addPreferencesOfOthers(pulls, pod, cluster)
  if (pulls.size === 0) return undefined
  const sums: number[] = []
  for (const { labels } of nodes) {
    let sum = 0
    for (const [topologyKey, weights] of pulls) {
      const value = labels[topologyKey]
      if (value !== undefined) sum += weights.get(value) ?? 0
    }
    sums.push(sum)
    yield
  }
  const [least, most] = [Math.min(...sums), Math.max(...sums)]
  return sums.map((sum) => (most === least ? 0 : Math.trunc((100 * (sum - least)) / (most - least))))
}

/** By topology key and value: what nodes with it gain. */
type Pulls = Map<string, Map<string, number>>

function* addOwnPreferences(pulls: Pulls, pod: Pod, cluster: Cluster): Steps<void> {
  for (const { term, weight } of podTerms(pod).preferred) {
    if (!cluster.hasLabel(term.topologyKey)) continue
    for (const podClass of classesFor([term], cluster)) {
      if (matches(term, podClass.pod, cluster)) addPull(pulls, term, podClass, weight)
      yield
    }
  }
}

function* addPreferencesOfOthers(pulls: Pulls, pod: Pod, cluster: Cluster): Steps<void> {
  for (const podClass of cluster.podClasses.withTerms) {
    const add = (term: PodTerm, weight: number) => {
      if (cluster.hasLabel(term.topologyKey) && matches(term, pod, cluster)) addPull(pulls, term, podClass, weight)
    }
    for (const term of podClass.terms.affinity) add(term, requiredWeight)
    for (const { term, weight } of podClass.terms.preferred) add(term, weight)
    yield
  }
}

function addPull(pulls: Pulls, { topologyKey }: PodTerm, podClass: PodClass, weight: number): void {
  const weights = pulls.get(topologyKey) ?? new Map<string, number>()
  pulls.set(topologyKey, weights)
  podClass.addDomains(topologyKey, weights, weight)
}

/** Those in the namespaces of the terms; a term with a selector of namespaces may mean any. */
function classesFor(terms: readonly PodTerm[], { podClasses }: Cluster): Iterable<PodClass> {
  if (terms.some(({ selectsNamespaces }) => selectsNamespaces !== undefined)) return podClasses.all()
  const [namespace = '', ...others] = new Set(terms.flatMap(({ namespaces }) => [...namespaces]))
  if (others.length === 0) return podClasses.in(namespace)
  return new Set([namespace, ...others].flatMap((one) => [...podClasses.in(one)]))
}

function matches(term: PodTerm, pod: Pod, cluster: Cluster): boolean {
  return termMatches(term, pod, cluster.namespaceLabels(pod.metadata.namespace ?? ''))
}
