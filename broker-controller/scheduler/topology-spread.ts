/** PodTopologySpread: spreads matching pods over the values of a node label. */
import type { Pod } from '../../api/pod.ts'
import type { Steps } from '../../daemon/watchdog/steps.ts'
import type { Cluster } from './cluster.ts'
import { addTo } from './counts.ts'
import { isWanted, repellingTaint, wantsAnyNode } from './node-choice.ts'
import type { NodeAllocation } from './node-usage.ts'
import { groupOf, type PodClass } from './pod-classes.ts'
import { podTerms, type SpreadConstraint } from './pod-terms.ts'

/** One constraint, with what it counts: worked out once for all nodes. */
export type SpreadRule = {
  readonly topologyKey: string
  readonly maxSkew: number
  /** Matching pods by domain; domains without any may be absent. */
  readonly counts: ReadonlyMap<string, number>
  /** What the emptiest domain has. */
  readonly least: number
  /** 1 when the pod itself would count. */
  readonly self: 0 | 1
}

const spreadText = "node(s) didn't match pod topology spread constraints"
export const missingLabelText = `${spreadText} (missing required label)`

/** The rules of the constraints with `DoNotSchedule`. */
export function* spreadRulesOf(pod: Pod, cluster: Cluster): Steps<readonly SpreadRule[]> {
  const constraints = podTerms(pod).hardSpread
  const rules: SpreadRule[] = []
  for (const constraint of constraints) rules.push(yield* ruleOf(constraint, constraints, pod, cluster))
  return rules
}

export function spreadRefusal(rules: readonly SpreadRule[], { labels }: NodeAllocation): string | undefined {
  for (const { topologyKey, maxSkew, counts, least, self } of rules) {
    const value = labels[topologyKey]
    if (value === undefined) return missingLabelText
    if ((counts.get(value) ?? 0) + self - least > maxSkew) return spreadText
  }
  return undefined
}

function* ruleOf(
  constraint: SpreadConstraint,
  all: readonly SpreadConstraint[],
  pod: Pod,
  cluster: Cluster,
): Steps<SpreadRule> {
  const { topologyKey, maxSkew, minDomains, selectsPods } = constraint
  const likes = yield* likesOf(constraint, pod, cluster)
  const { counts, domainCount } = countsEveryNode(constraint, all, pod, cluster)
    ? { counts: yield* summed(likes, topologyKey), domainCount: cluster.domains(topologyKey).size }
    : yield* countedByNode(constraint, all, likes, pod, cluster)
  const least = domainCount < minDomains || counts.size < domainCount ? 0 : leastOf(counts)
  const isLike = selectsPods?.(pod.metadata.labels) === true
  return { topologyKey, maxSkew, counts, least, self: isLike ? 1 : 0 }
}

/** Then the counts that are kept up anyway are the answer. */
function countsEveryNode(
  { honorsAffinity, honorsTaints }: SpreadConstraint,
  all: readonly SpreadConstraint[],
  pod: Pod,
  cluster: Cluster,
): boolean {
  if (honorsTaints || (honorsAffinity && !wantsAnyNode(pod))) return false
  return all.length === 1 || all.every(({ topologyKey }) => isOnEveryNode(topologyKey, cluster))
}

function isOnEveryNode(topologyKey: string, cluster: Cluster): boolean {
  let carriers = 0
  for (const count of cluster.domains(topologyKey).values()) carriers += count
  return carriers === cluster.nodeCount
}

function* countedByNode(
  constraint: SpreadConstraint,
  all: readonly SpreadConstraint[],
  likes: readonly PodClass[],
  pod: Pod,
  cluster: Cluster,
): Steps<{ readonly counts: ReadonlyMap<string, number>; readonly domainCount: number }> {
  const counts = new Map<string, number>()
  const domains = new Set<string>()
  const present = yield* countsOnNodes(likes)
  for (const usage of cluster.from(0)) {
    yield
    const value = usage.labels[constraint.topologyKey]
    if (value === undefined || all.some(({ topologyKey }) => usage.labels[topologyKey] === undefined)) continue
    if (!isCounted(constraint, pod, usage)) continue
    domains.add(value)
    addTo(counts, value, present.get(usage.name) ?? 0)
  }
  return { counts, domainCount: domains.size }
}

function isCounted({ honorsAffinity, honorsTaints }: SpreadConstraint, pod: Pod, usage: NodeAllocation): boolean {
  if (honorsAffinity && !isWanted(pod, usage)) return false
  return !honorsTaints || repellingTaint(pod, usage) === undefined
}

/** Pods on their way out do not count. */
function* likesOf(
  { selectsPods }: SpreadConstraint,
  { metadata }: Pod,
  { podClasses }: Cluster,
): Steps<readonly PodClass[]> {
  const likes: PodClass[] = []
  if (selectsPods === undefined) return likes
  for (const podClass of podClasses.in(metadata.namespace ?? '')) {
    const { pod, isLeaving } = podClass
    if (!isLeaving && selectsPods(pod.metadata.labels)) likes.push(podClass)
    yield
  }
  return likes
}

function* summed(podClasses: readonly PodClass[], topologyKey: string): Steps<ReadonlyMap<string, number>> {
  const [first] = podClasses
  if (first !== undefined && podClasses.length === 1) return first.domains(topologyKey)
  const sums = new Map<string, number>()
  for (const podClass of podClasses) {
    podClass.addDomains(topologyKey, sums)
    yield
  }
  return sums
}

/** Pods of all classes together, by the name of the node. */
function* countsOnNodes(podClasses: readonly PodClass[]): Steps<ReadonlyMap<string, number>> {
  const [first] = podClasses
  if (first !== undefined && podClasses.length === 1) return first.byNode
  const counts = new Map<string, number>()
  for (const podClass of podClasses) {
    for (const [nodeName, count] of podClass.byNode) addTo(counts, nodeName, count)
    yield
  }
  return counts
}

/** Least of the counts, which are not empty. */
function leastOf(counts: ReadonlyMap<string, number>): number {
  let least = Number.POSITIVE_INFINITY
  for (const count of counts.values()) least = Math.min(least, count)
  return least
}

type Preference = { readonly constraint: SpreadConstraint; readonly likes: readonly PodClass[] }

const hostname = 'kubernetes.io/hostname'

/** Kubernetes' default constraints: a skew of 3 between machines and of 5 between zones is fine. */
const usual: readonly SpreadConstraint[] = [
  { topologyKey: hostname, maxSkew: 3 },
  { topologyKey: 'topology.kubernetes.io/zone', maxSkew: 5 },
].map((one) => ({ ...one, minDomains: 1, selectsPods: undefined, honorsAffinity: true, honorsTaints: false }))

/** 0 to 100 for each of the nodes: the fewer of its likes are near, the more. Undefined: the pod is like no other. */
export function* spreadScores(
  pod: Pod,
  nodes: readonly NodeAllocation[],
  cluster: Cluster,
): Steps<readonly number[] | undefined> {
  const asked = (pod.spec.topologySpreadConstraints ?? []).length > 0
  const preferences = asked ? yield* askedPreferences(pod, cluster) : usualPreferences(pod, cluster)
  if (preferences.length === 0) return undefined
  // A node without a zone is still spread by machine, as long as the pod did not ask for both.
  const isScored = ({ labels }: NodeAllocation) =>
    !asked || preferences.every(({ constraint }) => labels[constraint.topologyKey] !== undefined)
  const scored = nodes.filter(isScored)
  const all = asked ? preferences.map(({ constraint }) => constraint) : []
  const views: ((usage: NodeAllocation) => number)[] = []
  for (const preference of preferences) {
    views.push(yield* crowding(preference, all, scored, isScored, pod, cluster))
  }
  const sums: (number | undefined)[] = []
  for (const usage of nodes) {
    sums.push(isScored(usage) ? Math.round(views.reduce((sum, view) => sum + view(usage), 0)) : undefined)
    yield
  }
  const present = sums.filter((count) => count !== undefined)
  const [least, most] = [Math.min(...present), Math.max(0, ...present)]
  return sums.map((count) => {
    if (count === undefined) return 0
    return most === 0 ? 100 : Math.trunc((100 * (most + least - count)) / most)
  })
}

function* askedPreferences(pod: Pod, cluster: Cluster): Steps<readonly Preference[]> {
  const preferences: Preference[] = []
  for (const constraint of podTerms(pod).softSpread) {
    preferences.push({ constraint, likes: yield* likesOf(constraint, pod, cluster) })
  }
  return preferences
}

function usualPreferences(pod: Pod, { podClasses }: Cluster): readonly Preference[] {
  const group = groupOf(pod)
  if (group === undefined) return []
  const likes = [...podClasses.ofGroup(group)].filter(({ isLeaving }) => !isLeaving)
  return usual.map((constraint) => ({ constraint, likes }))
}

/** How full the domain of a node is; rare domains are not watered down by frequent ones. */
function* crowding(
  { constraint, likes }: Preference,
  all: readonly SpreadConstraint[],
  scored: readonly NodeAllocation[],
  isScored: (usage: NodeAllocation) => boolean,
  pod: Pod,
  cluster: Cluster,
): Steps<(usage: NodeAllocation) => number> {
  const { topologyKey, maxSkew } = constraint
  const isByNode = topologyKey === hostname
  // Nodes without the label are one more value, as in podtopologyspread/scoring.go.
  const values = new Set(scored.map(({ labels }) => labels[topologyKey] ?? ''))
  const weight = Math.log((isByNode ? scored.length : values.size) + 2)
  const counts = isByNode
    ? yield* countsOnNodes(likes)
    : countsEveryNode(constraint, all, pod, cluster)
      ? yield* summed(likes, topologyKey)
      : yield* countedWherePresent(constraint, likes, isScored, pod, cluster)
  return (usage) => {
    const value = usage.labels[topologyKey]
    if (value === undefined) return 0
    return (counts.get(isByNode ? usage.name : value) ?? 0) * weight + (maxSkew - 1)
  }
}

function* countedWherePresent(
  constraint: SpreadConstraint,
  likes: readonly PodClass[],
  isScored: (usage: NodeAllocation) => boolean,
  pod: Pod,
  cluster: Cluster,
): Steps<ReadonlyMap<string, number>> {
  const counts = new Map<string, number>()
  for (const [nodeName, count] of yield* countsOnNodes(likes)) {
    yield
    const usage = cluster.node(nodeName)
    if (usage === undefined || !isScored(usage) || !isCounted(constraint, pod, usage)) continue
    addTo(counts, usage.labels[constraint.topologyKey], count)
  }
  return counts
}
