/**
 * Pods that no selector distinguishes and that ask the same of their neighbours, counted together: a decision then looks
 * at a handful of crowds in place of a hundred thousand pods.
 */
import type { Pod } from '../../api/pod.ts'
import type { Labels } from '../../api/selectors.ts'
import { addTo } from './counts.ts'
import { type PodTerms, podTerms } from './pod-terms.ts'

export interface Crowd {
  /** One of them: what holds for it holds for all. */
  readonly pod: Pod
  readonly terms: PodTerms
  readonly isLeaving: boolean
  on(nodeName: string): number
  /** How many are on each node that has any. */
  readonly byNode: ReadonlyMap<string, number>
  /** How many are on nodes with each value of that label; values without any are absent. */
  domains(topologyKey: string): ReadonlyMap<string, number>
}

export interface Crowds {
  enter(pod: Pod, nodeName: string): void
  leave(pod: Pod, nodeName: string): void
  all(): Iterable<Crowd>
  in(namespace: string): Iterable<Crowd>
  /** Pods that are one another's likes. */
  ofGroup(group: string): Iterable<Crowd>
  /** Those with required anti-affinity or affinity of their own. */
  readonly choosy: ReadonlySet<Crowd>
}

/** Pods that are one another's likes: of one controller, or else with the same labels. Undefined: it is like no other pod. */
export function groupOf({ metadata }: Pod): string | undefined {
  const owner = metadata.ownerReferences?.find(({ controller }) => controller === true)
  if (owner !== undefined) return owner.uid
  const labels = Object.entries(metadata.labels ?? {})
  return labels.length === 0 ? undefined : `${metadata.namespace}/${JSON.stringify(labels.sort())}`
}

/** `labelsOf`: of the node; they may not change while a pod of ours is on it. */
export function crowds(labelsOf: (nodeName: string) => Labels): Crowds {
  const byKey = new Map<string, Counted>()
  const byNamespace = new Map<string, Set<Crowd>>()
  const byGroup = new Map<string, Set<Crowd>>()
  const choosy = new Set<Crowd>()

  const open = (key: string, pod: Pod) => {
    const crowd = counted(pod, labelsOf)
    byKey.set(key, crowd)
    join(byNamespace, pod.metadata.namespace ?? '', crowd)
    join(byGroup, groupOf(pod), crowd)
    const { affinity, antiAffinity, preferred } = crowd.terms
    if (affinity.length + antiAffinity.length + preferred.length > 0) choosy.add(crowd)
    return crowd
  }

  const close = (key: string, crowd: Counted) => {
    byKey.delete(key)
    part(byNamespace, crowd.pod.metadata.namespace ?? '', crowd)
    part(byGroup, groupOf(crowd.pod), crowd)
    choosy.delete(crowd)
  }

  return {
    choosy,
    enter(pod, nodeName) {
      const key = crowdKey(pod)
      const crowd = byKey.get(key) ?? open(key, pod)
      crowd.count(nodeName, 1)
    },
    leave(pod, nodeName) {
      const key = crowdKey(pod)
      const crowd = byKey.get(key)
      if (crowd === undefined) return
      crowd.count(nodeName, -1)
      if (crowd.byNode.size === 0) close(key, crowd)
    },
    all: () => byKey.values(),
    in: (namespace) => byNamespace.get(namespace) ?? [],
    ofGroup: (group) => byGroup.get(group) ?? [],
  }
}

interface Counted extends Crowd {
  count(nodeName: string, change: 1 | -1): void
}

function counted(pod: Pod, labelsOf: (nodeName: string) => Labels): Counted {
  const byNode = new Map<string, number>()
  /** By label; kept for the labels that were queried. */
  const byTopology = new Map<string, Map<string, number>>()

  const domains = (topologyKey: string) => {
    const before = byTopology.get(topologyKey)
    if (before !== undefined) return before
    const counts = new Map<string, number>()
    for (const [nodeName, count] of byNode) addTo(counts, labelsOf(nodeName)[topologyKey], count)
    byTopology.set(topologyKey, counts)
    return counts
  }

  return {
    pod,
    terms: podTerms(pod),
    isLeaving: pod.metadata.deletionTimestamp !== undefined,
    byNode,
    domains,
    on: (nodeName) => byNode.get(nodeName) ?? 0,
    count(nodeName, change) {
      addTo(byNode, nodeName, change)
      for (const [topologyKey, counts] of byTopology) addTo(counts, labelsOf(nodeName)[topologyKey], change)
    },
  }
}

const keys = new WeakMap<Pod, string>()

function crowdKey(pod: Pod): string {
  const before = keys.get(pod)
  if (before !== undefined) return before
  const { namespace = '', labels = {}, deletionTimestamp } = pod.metadata
  const { podAffinity, podAntiAffinity } = pod.spec.affinity ?? {}
  const isLeaving = deletionTimestamp !== undefined
  const sorted = Object.entries(labels).sort()
  const key = JSON.stringify([namespace, sorted, groupOf(pod), isLeaving, podAffinity, podAntiAffinity])
  keys.set(pod, key)
  return key
}

function join(sets: Map<string, Set<Crowd>>, name: string | undefined, crowd: Crowd): void {
  if (name === undefined) return
  const set = sets.get(name) ?? new Set()
  sets.set(name, set.add(crowd))
}

function part(sets: Map<string, Set<Crowd>>, name: string | undefined, crowd: Crowd): void {
  const set = name === undefined ? undefined : sets.get(name)
  if (name === undefined || set === undefined) return
  set.delete(crowd)
  if (set.size === 0) sets.delete(name)
}
