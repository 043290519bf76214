/** Scores the nodes that a pod can run on. Each plugin gives 0 to 100, with Kubernetes' weights. */

import { untolerated } from '../../api/pod/tolerations.ts'
import type { Pod } from '../../api/pod.ts'
import { matchesNodeSelectorTerm } from '../../api/selectors.ts'
import type { Steps } from '../../daemon/watchdog/steps.ts'
import type { Cluster } from './cluster.ts'
import { imageLocality, imagesOf } from './image-locality.ts'
import { neighbourScores } from './inter-pod-affinity.ts'
import type { NodeAllocation } from './node-usage.ts'
import { type PodAmounts, type PodNeeds, podNeeds } from './pod-needs.ts'
import { spreadScores } from './topology-spread.ts'

/** One of the best, by chance. Throws RangeError when there is none. */
export function* bestNode(
  pod: Pod,
  fitting: readonly NodeAllocation[],
  nodes: Cluster,
  random: () => number,
): Steps<NodeAllocation> {
  const scores = fitting.length === 1 ? [0] : yield* totalScores(pod, fitting, nodes)
  const highest = Math.max(...scores)
  const best = fitting.filter((_, i) => scores[i] === highest)
  const chosen = best[Math.floor(random() * best.length)]
  if (chosen === undefined) throw new RangeError('No node to choose from')
  return chosen
}

/** Undefined: this score does not apply to the pod. */
type View = readonly [weight: number, scores: readonly number[] | undefined]

function* totalScores(pod: Pod, fitting: readonly NodeAllocation[], nodes: Cluster): Steps<number[]> {
  const needs = podNeeds(pod)
  yield* nodes.prepareCarriers(imagesOf(pod))
  const locality = imageLocality(pod, nodes.carriers, nodes.nodeCount)
  const views: readonly View[] = [
    [3, upsideDown(yield* eachOf(fitting, (usage) => intolerable(pod, usage)))],
    [2, ofHighest(yield* eachOf(fitting, (usage) => preference(pod, usage)))],
    [1, fitting.map((usage) => leastAllocated(needs, usage))],
    [1, fitting.map((usage) => balancedAllocation(needs, usage))],
    [2, yield* spreadScores(pod, fitting, nodes)],
    [2, yield* neighbourScores(pod, fitting, nodes)],
    [1, yield* eachOf(fitting, locality)],
  ]
  return fitting.map((_, i) => views.reduce((sum, [weight, scores]) => sum + weight * (scores?.[i] ?? 0), 0))
}

/** The share of cpu and memory that stays free, the pod included. */
export function leastAllocated({ scored }: PodNeeds, usage: NodeAllocation): number {
  const free = capacities(usage).map(([name, capacity]) => {
    const left = Math.max(0, capacity - usage.scored(name) - (scored.get(name) ?? 0))
    return Math.floor((left * 100) / capacity)
  })
  return Math.floor(free.reduce((sum, share) => sum + share, 0) / Math.max(1, free.length))
}

/** How alike the used shares of cpu and memory would be. */
export function balancedAllocation({ requests }: PodNeeds, usage: NodeAllocation): number {
  const [first = 0, second = first] = capacities(usage).map(([name, capacity]) =>
    Math.min(1, (usage.requested(name) + (requests.get(name) ?? 0)) / capacity),
  )
  return Math.floor((1 - Math.abs(first - second) / 2) * 100)
}

type Capacities = readonly (readonly [name: string, capacity: number])[]

/** By what nodes have: equal ones share it. */
const known = new WeakMap<PodAmounts, Capacities>()

/** Cpu and memory. What a node has none of is not scored (noderesources/least_allocated.go, balanced_allocation.go). */
function capacities({ allocatable }: NodeAllocation): Capacities {
  const made = known.get(allocatable)
  if (made !== undefined) return made
  const scored = ['cpu', 'memory'].flatMap((name) => {
    const capacity = allocatable.get(name) ?? 0
    return capacity === 0 ? [] : [[name, capacity] as const]
  })
  known.set(allocatable, scored)
  return scored
}

/** PreferNoSchedule taints that the pod does not tolerate. */
function intolerable({ spec }: Pod, { taints }: NodeAllocation): number {
  return untolerated(taints, spec.tolerations ?? [], ['PreferNoSchedule']).length
}

/** The weights of the preferred terms that match the node. */
function preference({ spec }: Pod, { node }: NodeAllocation): number {
  const preferred = spec.affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []
  return preferred
    .filter((term) => matchesNodeSelectorTerm(term.preference, node))
    .reduce((sum, term) => sum + term.weight, 0)
}

function* eachOf(
  fitting: readonly NodeAllocation[],
  score: (usage: NodeAllocation) => number,
): Steps<readonly number[]> {
  const scores: number[] = []
  for (const usage of fitting) {
    scores.push(score(usage))
    yield
  }
  return scores
}

function ofHighest(counts: readonly number[]): number[] {
  const highest = Math.max(...counts)
  return counts.map((count) => (highest === 0 ? 0 : Math.floor((100 * count) / highest)))
}

function upsideDown(counts: readonly number[]): number[] {
  const highest = Math.max(...counts)
  return counts.map((count) => (highest === 0 ? 100 : 100 - Math.floor((100 * count) / highest)))
}
