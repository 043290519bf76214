/**
 * Classes of equivalent pods: pods that no selector distinguishes and that have the same affinity terms are counted together, so a
 * decision reads a few classes and not a hundred thousand pods.
 */
import type { Pod } from '../../api/pod.ts'
import type { Labels } from '../../api/selectors.ts'
import { sharedTexts } from '../store/shared-texts.ts'
import { addTo } from './counts.ts'
import { type PodTerms, podTerms } from './pod-terms.ts'

export interface PodClass {
  /** A representative: a term that matches it matches all pods of the class. */
  readonly pod: Pod
  readonly terms: PodTerms
  readonly isLeaving: boolean
  /** The number of pods by node; nodes without any are absent. */
  readonly byNode: ReadonlyMap<string, number>
  /** The number of pods by the value of that label of their nodes; values without any are absent. Kept for the next call. */
  domains(topologyKey: string): ReadonlyMap<string, number>
  /** Adds these numbers, times `weight`, to `sums`. */
  addDomains(topologyKey: string, sums: Map<string, number>, weight?: number): void
}

export interface PodClasses {
  enter(pod: Pod, nodeName: string): void
  leave(pod: Pod, nodeName: string): void
  all(): Iterable<PodClass>
  in(namespace: string): Iterable<PodClass>
  /** The classes of a group; see `groupOf`. */
  ofGroup(group: string): Iterable<PodClass>
  /** The classes with affinity or anti-affinity terms. */
  readonly withTerms: ReadonlySet<PodClass>
}

/** The group within which pods are spread by default: the controller of the pod, or else its labels. Undefined: none. */
export function groupOf({ metadata }: Pod): string | undefined {
  const owner = metadata.ownerReferences?.find(({ controller }) => controller === true)
  if (owner !== undefined) return owner.uid
  const labels = Object.entries(metadata.labels ?? {})
  return labels.length === 0 ? undefined : `${metadata.namespace}/${JSON.stringify(labels.sort())}`
}

/** `labelsOf`: the labels of a node; they must not change while it has pods here. */
export function podClasses(labelsOf: (nodeName: string) => Labels): PodClasses {
  const byKey = new Map<string, Counted>()
  const byNamespace = new Map<string, Set<PodClass>>()
  const byGroup = new Map<string, Set<PodClass>>()
  const withTerms = new Set<PodClass>()

  const open = (key: string, pod: Pod) => {
    const podClass = counted(pod, labelsOf)
    byKey.set(key, podClass)
    join(byNamespace, pod.metadata.namespace ?? '', podClass)
    join(byGroup, groupOf(pod), podClass)
    const { affinity, antiAffinity, preferred } = podClass.terms
    if (affinity.length + antiAffinity.length + preferred.length > 0) withTerms.add(podClass)
    return podClass
  }

  const close = (key: string, podClass: Counted) => {
    byKey.delete(key)
    part(byNamespace, podClass.pod.metadata.namespace ?? '', podClass)
    part(byGroup, groupOf(podClass.pod), podClass)
    withTerms.delete(podClass)
  }

  return {
    withTerms,
    enter(pod, nodeName) {
      const key = classKey(pod)
      const podClass = byKey.get(key) ?? open(key, pod)
      podClass.count(nodeName, 1)
    },
    leave(pod, nodeName) {
      const key = classKey(pod)
      const podClass = byKey.get(key)
      if (podClass === undefined) return
      podClass.count(nodeName, -1)
      if (podClass.byNode.size === 0) close(key, podClass)
    },
    all: () => byKey.values(),
    in: (namespace) => byNamespace.get(namespace) ?? [],
    ofGroup: (group) => byGroup.get(group) ?? [],
  }
}

interface Counted extends PodClass {
  count(nodeName: string, change: 1 | -1): void
}

const mostTopologies = 16
const fewNodes = 16

function counted(pod: Pod, labelsOf: (nodeName: string) => Labels): Counted {
  const byNode = new Map<string, number>()
  /** By label; kept for the labels that were queried. */
  const byTopology = new Map<string, Map<string, number>>()

  const domains = (topologyKey: string) => {
    const before = byTopology.get(topologyKey)
    if (before !== undefined) return before
    // Pods may name any number of labels, and each that is kept is counted with each pod that comes or goes.
    if (byTopology.size >= mostTopologies) byTopology.clear()
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
    addDomains(topologyKey, sums, weight = 1) {
      // For a few nodes, keeping a count costs more than it saves.
      if (byNode.size > fewNodes) {
        for (const [value, count] of domains(topologyKey)) addTo(sums, value, weight * count)
      } else {
        for (const [nodeName, count] of byNode) addTo(sums, labelsOf(nodeName)[topologyKey], weight * count)
      }
    },
    count(nodeName, change) {
      addTo(byNode, nodeName, change)
      for (const [topologyKey, counts] of byTopology) addTo(counts, labelsOf(nodeName)[topologyKey], change)
    },
  }
}

const keys = new WeakMap<Pod, string>()

/** A class has many pods, and each of their versions would have a text of its own. */
const sharedKey = sharedTexts({ texts: 8192, length: 2 * 1024 * 1024 })

function classKey(pod: Pod): string {
  const before = keys.get(pod)
  if (before !== undefined) return before
  const { namespace = '', labels = {}, deletionTimestamp } = pod.metadata
  const { podAffinity, podAntiAffinity } = pod.spec.affinity ?? {}
  const isLeaving = deletionTimestamp !== undefined
  const sorted = Object.entries(labels).sort()
  const key = sharedKey(JSON.stringify([namespace, sorted, groupOf(pod), isLeaving, podAffinity, podAntiAffinity]))
  keys.set(pod, key)
  return key
}

function join(sets: Map<string, Set<PodClass>>, name: string | undefined, podClass: PodClass): void {
  if (name === undefined) return
  const set = sets.get(name) ?? new Set()
  sets.set(name, set.add(podClass))
}

function part(sets: Map<string, Set<PodClass>>, name: string | undefined, podClass: PodClass): void {
  const set = name === undefined ? undefined : sets.get(name)
  if (name === undefined || set === undefined) return
  set.delete(podClass)
  if (set.size === 0) sets.delete(name)
}
